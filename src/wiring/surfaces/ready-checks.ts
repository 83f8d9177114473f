import { setTimeout as pause } from "node:timers/promises";
import type { HealthSwitch } from "../../api/transport/health-service.ts";
import { followReadiness, type ReadyCheck, type ReadyChecks } from "../../api/transport/readiness.ts";
import type { ReplicaPresence } from "../../engine/replica-presence.ts";
import { namedList } from "../../kernel/named-list.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { SharedClock } from "../../kernel/time/shared-clock.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { findMissingFiles } from "../../services/rack-firmware/files.ts";
import type { Engine } from "../engine.ts";
import { restoreRemark } from "../restore/restore-remark.ts";
import type { TlsFiles } from "./tls-files.ts";

/** How often the health service learns whether we are ready. */
const READY_CHECK = seconds(2);
const REMARK_PATIENCE = seconds(1);

/** Tells the health service whether we are ready, until it is stopped together with what is answered. */
export function withReadiness(
  about: {
    readonly checks: ReadyChecks;
    readonly health: HealthSwitch;
    readonly presence: ReplicaPresence;
    readonly drainDelay: Duration;
  },
  answering: readonly { close(): unknown }[],
): () => Promise<void> {
  const { checks, health, presence, drainDelay } = about;
  const stopping = new AbortController();
  const tell = (ready: boolean) => health.set(ready);
  const following = followReadiness(checks, { every: READY_CHECK, tell }, stopping.signal);
  return async () => {
    presence.stopping();
    stopping.abort();
    health.set(false);
    await pause(drainDelay);
    await Promise.all([...answering.map((each) => each.close()), following]);
  };
}

export interface ReadyParts {
  readonly deps: ServiceDeps;
  readonly engine: Engine;
  readonly clock: SharedClock;
  readonly presence: ReplicaPresence;
  /** Absent: the listeners speak no TLS. */
  readonly tls: TlsFiles | undefined;
}

function whyNoWork({ presence, engine }: ReadyParts): string | null {
  if (presence.isStopping) return "this server is stopping";
  return presence.isDraining ? "this replica was drained (millwright replica resume)" : engine.trouble();
}

export const readyChecks = (about: ReadyParts): ReadyChecks => ({
  database: async () => about.presence.trouble(),
  engine: async () => whyNoWork(about),
  firmware: onlyRemarks(() => missingFirmware(about.deps)),
  clock: async () => about.clock.trouble && { remark: about.clock.trouble },
  ...(about.tls && { tls: onlyRemarks(async () => remarkOf(about.tls)) }),
  restore: onlyRemarks(() => restoreRemark(about.deps.db)),
});

const remarkOf = (tls: TlsFiles | undefined) => (tls?.trouble ? { remark: tls.trouble } : null);

/** What can only give a remark keeps nobody from being ready when it fails, or waits for a connection: `database` says what is wrong. */
const onlyRemarks =
  (check: ReadyCheck): ReadyCheck =>
  (signal) =>
    Promise.race([check(signal).catch(() => null), pause(REMARK_PATIENCE, null, { ref: false })]);

/** The catalogue is all replicas' own, and the files are in a directory that each of them must have. */
async function missingFirmware(deps: ServiceDeps): ReturnType<ReadyChecks[string]> {
  const missing = await findMissingFiles(deps);
  if (missing.length === 0) return null;
  const remark = `files of rack firmware ${namedList(missing, 5)} are not in the firmware directory of this server`;
  return {
    remark: `${remark}; they are downloaded when a device needs them: share firmware.directory between all replicas, or run millwright rack-firmware download`,
  };
}
