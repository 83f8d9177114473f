import { LRUCache } from "lru-cache";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { Ailment } from "../../capabilities/vitals.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { keyOf } from "../transport/bmc-gateway.ts";
import type { IpmiClient } from "./client.ts";
import { readSensorList } from "./machine-sensors.ts";
import { sensorsNotWell } from "./sensor-list.ts";

const REMEMBERED = 20_000;

interface Known {
  ailments: readonly Ailment[];
  /** When they are read again, on the monotonic clock. */
  until: number;
  underWay?: Promise<readonly Ailment[]> | undefined;
}

/**
 * The sensors of each BMC that are in a critical or non-recoverable range. To read them takes a message for each sensor, which is too
 * much for every check of a fleet: so they are read now and then, and what was found holds until then.
 */
export class SensorWatch {
  readonly #client: IpmiClient;
  readonly #clock: Clock;
  readonly #every: Duration;
  readonly #known = new LRUCache<string, Known>({ max: REMEMBERED });

  constructor(client: IpmiClient, clock: Clock, every: Duration) {
    this.#client = client;
    this.#clock = clock;
    this.#every = every;
  }

  async read(target: BmcTarget, call: CallContext): Promise<readonly Ailment[]> {
    const key = keyOf(target);
    const known: Known = this.#known.get(key) ?? { ailments: [], until: 0 };
    this.#known.set(key, known);
    if (known.underWay !== undefined) return known.underWay;
    const now = this.#clock.monotonic();
    if (now < known.until) return known.ailments;
    known.until = now + this.#every;
    known.underWay = this.#readNow(target, call, known).finally(() => {
      known.underWay = undefined;
    });
    return known.underWay;
  }

  /** A BMC that does not tell its sensors in time still tells its vitals: what was known of the sensors stays. */
  async #readNow(target: BmcTarget, call: CallContext, known: Known): Promise<readonly Ailment[]> {
    try {
      known.ailments = sensorsNotWell(await readSensorList(this.#client, target, call));
    } catch (error) {
      if (call.signal.aborted || !(error instanceof StepFailure)) throw error;
    }
    return known.ailments;
  }
}
