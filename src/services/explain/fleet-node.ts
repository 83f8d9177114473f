import { describeDuration, milliseconds } from "../../kernel/time/duration.ts";
import { DRIFT_REASONS, type DriftReason, isDriftReason, remedyOfDrift } from "../../lifecycles/fleet-node/drift.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeStore } from "../../store/fleet/nodes.ts";
import { type FleetObservation, findObservations } from "../../store/fleet/observations.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { viewNode } from "../fleet/nodes.ts";
import { explainAnyThing } from "./any-thing.ts";
import { type Explanation, inOrder, type NextCommand, say } from "./explanation.ts";

const KIND = fleetNodeStore.lifecycle.kind;

/** What a node does or waits for, why it is quarantined, what MAAS shows of it, and what helps. */
export async function explainFleetNode(deps: ServiceDeps, id: string): Promise<Explanation> {
  const base = await explainAnyThing(deps, KIND, id, "millwright fleet list");
  const [node] = (await fleetNodeStore.load(deps.db, [id])).things;
  if (!node) return base;
  const observation = (await findObservations(deps.db, [id])).get(id);
  const drift = driftOfNode(node, observation);
  const why = whyQuarantined(node);
  const { next } = await viewNode(deps, id);
  const seen = observation && observation.systemId === node.facts.systemId ? describe(observation, nowOf(deps)) : "";
  return {
    ...base,
    headline: why === "" ? base.headline : `${base.headline}: ${why}`,
    doing: [base.doing, seen].filter((text) => text !== "").join(" "),
    // As `fleet show` says it.
    nextCommands: inOrder([
      ...(next.command === "" ? [] : [next]),
      ...(drift === undefined ? [] : remedies(node, drift)),
      say(`fleet show ${id}`, "shows its job, its stage, and what MAAS and its agent said last"),
      ...base.nextCommands,
    ]),
  };
}

/** What it was quarantined for comes first; what MAAS shows of it since is told beside it. */
function driftOfNode({ state, facts }: FleetNode, observation: FleetObservation | undefined): DriftReason | undefined {
  const reason = state.name === "quarantined" ? facts.quarantineReason : (observation?.drift ?? null);
  return isDriftReason(reason) ? reason : undefined;
}

function whyQuarantined({ state, facts: { quarantineReason } }: FleetNode): string {
  if (state.name !== "quarantined" || quarantineReason === null) return "";
  return isDriftReason(quarantineReason) ? DRIFT_REASONS[quarantineReason] : quarantineReason;
}

function remedies(node: FleetNode, reason: DriftReason): NextCommand[] {
  const command = remedyOfDrift(node, reason);
  return command === null ? [] : [{ command, why: DRIFT_REASONS[reason] }];
}

function describe({ systemId, observed, statusName, drift, seenAt, failure }: FleetObservation, now: Date): string {
  const ago = describeDuration(
    milliseconds(Math.max(0, Math.round((now.getTime() - seenAt.getTime()) / 1_000) * 1_000)),
  );
  const shows =
    observed === "absent"
      ? `MAAS had no machine ${systemId} ${ago} ago.`
      : `MAAS showed its machine ${systemId} as ${statusName} ${ago} ago.`;
  const wrong = drift === null ? "" : ` That is not as it should be: ${DRIFT_REASONS[drift]}.`;
  return `${shows}${wrong}${failure === null ? "" : ` It does not answer now: ${failure}.`}`;
}
