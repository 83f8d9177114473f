import type { ClusterAccess, ClusterReport } from "../capabilities/clusters/access.ts";
import { LONGEST_CALL } from "../engine/lease/lease.ts";
import { AppError } from "../kernel/errors.ts";
import { type Clock, systemClock } from "../kernel/time/clock.ts";
import { milliseconds, seconds } from "../kernel/time/duration.ts";
import { targetOfKubeconfig } from "../providers/kubernetes/kubeconfig.ts";
import { type ClusterGate, type ClusterVerdict, judgeCluster } from "../services/catalog/cluster-gate.ts";
import type { ClusterProbes } from "../services/run/cluster-checks.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import { getKubeconfigs } from "../store/catalog/clusters.ts";
import type { Database } from "../store/postgres/database.ts";

/** Shorter than callers wait for an answer. */
const LONGEST_PROBE = seconds(10);
/** Who starts a hundred runs has each of their clusters tried once. */
const GOOD_FOR = seconds(15);

export const wireClusterGate = (access: ClusterAccess): ClusterGate => ({
  read: (name, kubeconfig) => targetOfKubeconfig(name, kubeconfig),
  probe: (target) =>
    access.probe(target, {
      signal: AbortSignal.timeout(LONGEST_PROBE),
      subject: `probe of cluster ${target.name}`,
      mayTouchDevice: (wanted) => milliseconds(Math.min(wanted, LONGEST_CALL, LONGEST_PROBE / 2)),
    }),
});

interface Tried {
  readonly kubeconfig: string | AppError;
  readonly until: number;
  readonly verdict: Promise<ClusterVerdict>;
}

/** Those who ask for the same cluster at the same time, or soon after, are given one answer. Another kubeconfig is tried anew. */
export function wireClusterProbes({
  db,
  secrets,
  gate,
  clock = systemClock,
}: {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly gate: ClusterGate;
  readonly clock?: Clock;
}): ClusterProbes {
  const tried = new Map<string, Tried>();

  const probe = async (name: string, kubeconfig: string | AppError): Promise<ClusterReport> => {
    if (kubeconfig instanceof AppError) throw kubeconfig;
    return gate.probe(gate.read(name, kubeconfig));
  };

  function verdictOf(name: string, kubeconfig: string | AppError): Promise<ClusterVerdict> {
    const known = tried.get(name);
    if (known && known.kubeconfig === kubeconfig && clock.monotonic() < known.until) return known.verdict;
    const verdict = judgeCluster(() => probe(name, kubeconfig));
    const entry = { kubeconfig, until: clock.monotonic() + GOOD_FOR, verdict };
    tried.set(name, entry);
    const forget = () => tried.get(name) === entry && tried.delete(name);
    // What was wrong may be put right at any moment: only what was good is remembered.
    verdict.then(({ is }) => is !== "open" && forget(), forget);
    return verdict;
  }

  return {
    async verdictsOf(names) {
      const kubeconfigs = await getKubeconfigs(db, secrets, names);
      return new Map(
        await Promise.all(
          [...kubeconfigs].map(async ([name, kubeconfig]) => [name, await verdictOf(name, kubeconfig)] as const),
        ),
      );
    },
  };
}
