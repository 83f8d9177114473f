import type { SeededValues } from "../seeded-values.ts";
import type { SimulatedClock } from "../simulated-clock.ts";
import type { Firmware } from "./firmware/firmware.ts";
import type { ComponentSpec, FirmwareState, UpdateConduct } from "./firmware/firmware-state.ts";
import type { Trait } from "./profile.ts";

/** What every device with a management controller is known by. */
export interface ManagedDeviceSpec {
  readonly id: string;
  readonly rack: string;
  readonly slot: number;
  /** Of the management controller, like the MAC and the account. */
  readonly address: string;
  readonly mac: string;
  readonly uuid: string;
  readonly username: string;
  readonly password: string;
  readonly lockout: { readonly failures: number; readonly seconds: number };
  readonly serial: string;
  readonly vendor: string;
  readonly model: string;
  /** The management controller first. */
  readonly components: readonly ComponentSpec[];
  /** Of its management controller, as delivered. */
  readonly traits: readonly Trait[];
}

/** One line of a management controller's event log, as it is shown. */
export interface DeviceEvent {
  readonly sequence: number;
  /** Real time in milliseconds. */
  readonly at: number;
  readonly severity: "OK" | "Warning" | "Critical";
  readonly messageId: string;
  readonly message: string;
}

/** What the parts of Redfish that all management controllers share need of a device. */
export interface ManagedDevice {
  readonly spec: ManagedDeviceSpec;
  /** Redfish requests that reached this device since the simulator started. */
  requests: number;
  /** Open streams of its events, and how many there were since the simulator started. */
  readonly eventStreams: { open: number; opened: number };
  /** What is not well, in words that change with it. */
  readonly ailing: string;
  /** False while the management controller restarts: it then answers nothing at all. */
  readonly reachable: boolean;
  /** Oldest first. */
  readonly events: readonly DeviceEvent[];
  /** The traits of its management controller at present. */
  readonly traits: readonly Trait[];
  setTraits(traits: readonly Trait[]): void;
  restartManager(): void;
  /** Does what makes new firmware run, as whoever stands beside it would. */
  activate(): void;
  /** How often that happened. */
  readonly managerRestarts: number;
  /** When it last happened, in real milliseconds; 0 for never. */
  readonly managerRestartedAt: number;
  readonly firmware: Firmware;
}

/** What a device needs of the world around it. */
export interface DeviceSurroundings {
  readonly clock: SimulatedClock;
  readonly seeded: SeededValues;
  /** The persisted state, or undefined for a device that nobody has touched yet. */
  load(id: string): unknown;
  /** Must have written through when it returns. */
  save(id: string, state: unknown): void;
  isFaultPresent(faultId: string): boolean;
  readonly firmware: {
    load(id: string): unknown;
    save(id: string, state: FirmwareState): void;
    /** Asked once for each update, when it is taken. */
    conduct(id: string): UpdateConduct;
  };
}

/** Sequence number, real time in milliseconds, what. A tuple, since the log is written again with each change of state. */
export type LogEntry<Code extends string> = readonly [number, number, Code];

const LOG_ENTRIES_KEPT = 64;

/** When that was last written into the log, in real milliseconds; 0 for never. */
export const lastInLog = <Code extends string>(log: readonly LogEntry<Code>[], code: Code): number =>
  log.findLast(([, , each]) => each === code)?.[1] ?? 0;

/** The oldest entries are forgotten; no number is ever used again. */
export function appendToLog<Code extends string>(
  log: readonly LogEntry<Code>[],
  code: Code,
  realAt: number,
): readonly LogEntry<Code>[] {
  const sequence = (log.at(-1)?.[0] ?? 0) + 1;
  return [...log.slice(-(LOG_ENTRIES_KEPT - 1)), [sequence, Math.round(realAt), code]];
}
