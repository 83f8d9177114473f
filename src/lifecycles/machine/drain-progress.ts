import type { DrainProgress, RefusedEviction } from "../../capabilities/cluster.ts";
import { namedPods, podsRemain } from "./observation.ts";

/** "3 pods remain: a, b, c; a disruption budget keeps a, b (Cannot evict pod as …)". */
export function describeDrain({ remaining, refused }: DrainProgress): string {
  const budget = refused.filter(({ by }) => by === "disruption_budget");
  const others = refused.filter(({ by }) => by === "cluster");
  const bare = refused.filter(({ by }) => by === "bare");
  const local = refused.filter(({ by }) => by === "local_data");
  return [
    podsRemain(remaining),
    ...(budget.length === 0 ? [] : [`a disruption budget keeps ${named(budget)}`]),
    ...(others.length === 0 ? [] : [`the cluster does not let go now of ${named(others)}`]),
    ...(bare.length === 0
      ? []
      : [`no controller would start ${named(bare)} again: enter-maintenance --evict-bare-pods evicts them`]),
    ...(local.length === 0
      ? []
      : [`data of ${named(local)} would be lost: enter-maintenance --delete-local-data evicts them`]),
  ].join("; ");
}

function named(refused: readonly RefusedEviction[]): string {
  const words = [...new Set(refused.map(({ why }) => why).filter((why) => why !== ""))];
  return `${namedPods(refused.map(({ pod }) => pod))}${words.length === 0 ? "" : ` (${words[0]})`}`;
}
