import type { SeededMedia } from "../capabilities/seeds/seeded-media.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { AnyStep } from "../runs/model/step.ts";
import type { Runbooks } from "../runs/steps/scripts/runbooks.ts";
import type { ServiceDeps } from "../services/call/deps.ts";
import type { RunDeps } from "../services/run/deps.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import type { Database } from "../store/postgres/database.ts";
import { wireClusterGate, wireClusterProbes } from "./cluster-gate.ts";
import type { MachineHardware } from "./machine-hardware.ts";
import { wireReadBoot, wireReadPower } from "./read-power.ts";
import { wireSeedDrives, wireUnfitImages } from "./seed-drives.ts";
import { wireStepTargets } from "./step-targets.ts";

/** What runs are started with, beside what all services have. */
export type RunParts = Omit<RunDeps, keyof ServiceDeps>;

/** One for callers and for runs that start others: whoever starts a run, the same is checked. */
export function wireRunParts({
  db,
  secrets,
  clock,
  hardware,
  steps,
  runbooks,
  seedsAt,
  seededMedia,
}: {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly clock?: Clock;
  readonly hardware: MachineHardware;
  readonly steps: ReadonlyMap<string, AnyStep>;
  readonly runbooks: Runbooks;
  readonly seedsAt: string | null;
  readonly seededMedia?: SeededMedia;
}): RunParts {
  const { clusterAccess, capabilitiesOf, takesSeeds } = hardware;
  const targetsOf = wireStepTargets({ db, secrets, runbooks });
  const probing = { db, secrets, ...(clock && { clock }) };
  return {
    ...{ steps, runbooks, seedsAt, capabilitiesOf, takesSeeds },
    clusterProbes: clusterAccess ? wireClusterProbes({ ...probing, gate: wireClusterGate(clusterAccess) }) : null,
    readPower: wireReadPower({ hardware, targetsOf }),
    readBoot: wireReadBoot({ hardware, targetsOf }),
    findNoSeedDrive: wireSeedDrives({ hardware, targetsOf }),
    ...(seededMedia && { findUnfitImage: wireUnfitImages(seededMedia) }),
  };
}
