import { LRUCache } from "lru-cache";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { PowerState, Told } from "../../capabilities/power-control.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";

type Desired = "on" | "off";

interface Commanded {
  readonly desired: Desired;
  /** On the monotonic clock. */
  readonly until: number;
}

const REMEMBERED = 20_000;

/**
 * Which commands for power devices have been given a moment ago.
 *
 * Not needed to be right, only to be quiet: callers ask until they see the state, and the device shall hear it once. It holds
 * what callers cannot keep: commands whose answer was lost, and those that nobody got round to noting.
 */
export class PowerCommands {
  readonly #clock: Clock;
  readonly #settles: Duration;
  readonly #commanded = new LRUCache<string, Commanded>({ max: REMEMBERED });

  /** `settles`: how long an accepted command is given to show before it is sent again. */
  constructor(clock: Clock, settles: Duration) {
    this.#clock = clock;
    this.#settles = settles;
  }

  note(key: string, desired: Desired, settles: Duration = this.#settles): void {
    this.#commanded.set(key, { desired, until: this.#clock.monotonic() + settles });
  }

  /** The state is reached: should somebody undo it, the next wish is a new one. */
  forget(key: string): void {
    this.#commanded.delete(key);
  }

  /**
   * Whether the opposite was commanded a moment ago and may still come: a device that shows the old state until then shows nothing
   * that could be believed.
   */
  isUndoing(key: string, desired: Desired): boolean {
    return this.isAwaited(key, desired === "on" ? "off" : "on", undefined);
  }

  /** By our own memory, or by what the caller kept. */
  isAwaited(key: string, desired: Desired, told: Told | undefined): boolean {
    const last = this.#commanded.get(key);
    if (last?.desired === desired && this.#clock.monotonic() < last.until) return true;
    // Either way: the clock of the replica that noted it may be ahead of ours.
    return told !== undefined && Math.abs(this.#clock.now().getTime() - told.at.getTime()) < this.#settles;
  }
}

export const isReachedOrUnderWay = (power: PowerState, desired: Desired): boolean =>
  power === desired || power === `powering_${desired}`;

/** What a device answers that did not even begin: it was told so often, or is held by somebody else. */
const TURNED_AWAY: readonly (number | undefined)[] = [409, 429];

/** No answer, half an answer, or nobody waited for it: the command may be on its way to being carried out. */
export function mayHaveArrived(error: unknown): boolean {
  if (!(error instanceof DeviceFailure)) return error instanceof StepFailure;
  return error.disposition === "retry" && !TURNED_AWAY.includes(error.status);
}
