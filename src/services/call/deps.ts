import type { Artifacts } from "../../capabilities/rack/artifacts.ts";
import type { SecretReferences } from "../../capabilities/secrets/secret-references.ts";
import type { SeedWriter } from "../../capabilities/seeds/seed.ts";
import type { SeededMedia } from "../../capabilities/seeds/seeded-media.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { RackLimits } from "../../lifecycles/rack/plan-work.ts";
import type { SecretStore } from "../../store/access/secrets.ts";
import type { ThingStores } from "../../store/lifecycle/things.ts";
import type { Database, Queryable } from "../../store/postgres/database.ts";
import type { ClusterGate } from "../catalog/cluster-gate.ts";
import type { AgentDesk } from "../fleet/agent/desk.ts";
import type { MaasGate } from "../fleet/site-target.ts";
import type { TokenBinding } from "../install/boot/armed-boot.ts";
import type { MissingFiles } from "../rack-firmware/missing-files.ts";

/** What services stand on. */
export interface ServiceDeps {
  readonly db: Database;
  /**
   * Where lists are read: over a few connections of their own, so that callers who list a lot keep neither the engine nor other
   * callers from the database. Absent: `db`.
   */
  readonly lists?: Queryable;
  readonly stores: ThingStores;
  readonly secrets: SecretStore;
  /** Reads credentials that are kept elsewhere. Absent: callers give none by reference. */
  readonly references?: SecretReferences;
  /** The most ids that one call may name. */
  readonly maxFindByIds: number;
  /** Whether there is an environment that erases disks; without one, nothing is asked to be erased. */
  readonly canErase?: boolean;
  /** What machines may name as their provider. Absent: all that there are. */
  readonly providers?: readonly string[];
  /** Absent: this server calls no clusters, and keeps kubeconfigs as they are given. */
  readonly clusterGate?: ClusterGate;
  /** Absent: this server calls no MAAS. */
  readonly maas?: MaasGate;
  /** At which address agents of fleet nodes reach the server. Absent or null: nobody has said. */
  readonly fleetServer?: string | null;
  /** Where the agents of fleet nodes call. Absent: this server has none. */
  readonly agents?: AgentDesk;
  /** Writes what installers read. Absent: nothing is installed with a seed here. */
  readonly seedWriter?: SeedWriter;
  /** Serves images with a seed in them. Absent: none are. */
  readonly seededMedia?: SeededMedia;
  /** The firmware files of this server. Absent: it has none. */
  readonly artifacts?: Artifacts;
  /** Those of them that only other replicas have. Absent: what is not here does not come. */
  readonly missingFiles?: MissingFiles;
  /** What tokens keep to. Absent: they grow as old as they like. */
  readonly tokenRules?: TokenRules;
  /** What racks keep to. Absent: the defaults of the settings. */
  readonly rackLimits?: RackLimits;
  /** What counts as one place, where a boot asks for its script and reports. Absent: its subnet. */
  readonly tokenBinding?: TokenBinding;
  /** How long a node that was armed may take to boot. Absent: the usual time. */
  readonly armedFor?: Duration;
  /** Absent: the system's. */
  readonly clock?: Clock;
}

export interface TokenRules {
  /** Null: none. */
  readonly maxAge: Duration | null;
  /** The names of the tokens in the configuration. */
  readonly configured: readonly string[];
}

export const nowOf = ({ clock = systemClock }: Pick<ServiceDeps, "clock">): Date => clock.now();
