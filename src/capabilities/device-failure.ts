import { CAUSES, type CauseFacts, type DeviceFamily, type Disposition, type Peer } from "../kernel/causes.ts";
import { StepFailure } from "../kernel/errors.ts";

/** The causes that are a device's, or the way's to it. */
export type DeviceCause = {
  [C in keyof typeof CAUSES]: (typeof CAUSES)[C] extends { readonly family: DeviceFamily } ? C : never;
}[keyof typeof CAUSES];

interface DeviceOptions {
  readonly disposition?: Disposition;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
  readonly facts?: CauseFacts;
  readonly status?: number;
  readonly said?: string;
}

/** Work on a device failed, and the device (or the way to it) is why. */
export class DeviceFailure extends StepFailure<DeviceCause> {
  declare readonly code: DeviceCause;
  /** What the device answered, where it answered with a status at all. */
  readonly status: number | undefined;
  /** What it said to that, for those who go by it; where it was not asked for, it stands in the message alone. */
  readonly said: string | undefined;

  constructor(code: DeviceCause, at: Peer, message: string, options: DeviceOptions = {}) {
    const { status, said, facts, ...others } = options;
    super(code, message, { ...others, facts: { ...facts, at, ...(status !== undefined && { status }) } });
    this.name = "DeviceFailure";
    this.status = status;
    this.said = said;
  }

  /** What it tells of the device. */
  get family(): DeviceFamily {
    return CAUSES[this.code].family;
  }
}

const isOf =
  (...families: readonly DeviceFamily[]) =>
  (error: unknown): error is DeviceFailure =>
    error instanceof DeviceFailure && families.some((family) => family === error.family);

/** Nobody answered at all. */
export const isUnreachable = isOf("silent");
/** Nobody answered, or not now. */
export const isSilence = isOf("silent", "busy");
/** Understood, and declined. */
export const isRefusal = isOf("declines");
/** We were let in, and this one request is not for our account. */
export const isForbidden = isOf("forbids");
/** Somebody answers, and does not let us in, or not for this. */
export const isKeptOut = isOf("keeps_out", "forbids");
/** The same, or it did not prove to be the one that we know. */
export const isStranger = isOf("keeps_out", "forbids", "unproven");

/** Of the device; anything else ends the work. */
export async function failureOf(work: () => Promise<unknown>): Promise<DeviceFailure | undefined> {
  try {
    await work();
  } catch (error) {
    if (error instanceof DeviceFailure) return error;
    throw error;
  }
  return undefined;
}
