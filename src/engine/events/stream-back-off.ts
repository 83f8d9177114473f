import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { CauseCode, DeviceFamily } from "../../kernel/causes.ts";
import { type Duration, milliseconds, minutes, seconds } from "../../kernel/time/duration.ts";
import { type BackOff, pauseBefore } from "../../kernel/time/retry.ts";

/** Why a stream ended: a cause, or that it was of no use, that its device is elsewhere or gone, or that we stop. */
export type StreamEnd = CauseCode | "silent" | "changed";

export interface StreamBackOff {
  /** After a stream that was cut or not answered. Some BMCs ask for half a minute between two streams of one client. */
  readonly broken: BackOff;
  /** After one that the BMC had no room for. */
  readonly busy: BackOff;
  /** After one that is not offered, or not to us: nothing of that changes soon, and what changes on our side is noticed at once. */
  readonly refused: BackOff;
}

export const STREAM_BACK_OFF: StreamBackOff = {
  broken: { first: seconds(20), most: minutes(10) },
  busy: { first: minutes(5), most: minutes(30) },
  refused: { first: minutes(30), most: minutes(120) },
};

const KIND_OF: Readonly<Record<DeviceFamily, keyof StreamBackOff>> = {
  silent: "broken",
  busy: "busy",
  odd: "refused",
  declines: "refused",
  keeps_out: "refused",
  forbids: "refused",
  unproven: "refused",
};

/** When a stream may be opened again after one that ended so; `failures` in a row, this one included. */
export function pauseAfter(error: unknown, failures: number, backOff: StreamBackOff, random?: () => number): Duration {
  if (!(error instanceof DeviceFailure)) return pauseBefore(failures, backOff.broken, random);
  const pause = pauseBefore(failures, backOff[KIND_OF[error.family]], random);
  return milliseconds(Math.max(pause, error.retryAfterMs ?? 0));
}
