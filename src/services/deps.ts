import { type Clock, systemClock } from "../kernel/clock.ts";
import type { Database } from "../store/database.ts";
import type { SecretStore } from "../store/secrets.ts";
import type { ThingStores } from "../store/things.ts";

/** What services stand on. */
export interface ServiceDeps {
  readonly db: Database;
  readonly stores: ThingStores;
  readonly secrets: SecretStore;
  /** The most ids that one call may name. */
  readonly maxFindByIds: number;
  /** Whether there is an environment that erases disks; without one, nothing is asked to be erased. */
  readonly canErase?: boolean;
  /** What machines may name as their provider. Absent: all that there are. */
  readonly providers?: readonly string[];
  /** Absent: the system's. */
  readonly clock?: Clock;
}

export const nowOf = ({ clock = systemClock }: Pick<ServiceDeps, "clock">): Date => clock.now();
