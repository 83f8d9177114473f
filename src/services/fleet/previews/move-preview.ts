import { followOrRefuse } from "../../../kernel/decide.ts";
import { actionCommand } from "../../../lifecycles/fleet-node/actions.ts";
import { fleetNodeLifecycle } from "../../../lifecycles/fleet-node/lifecycle.ts";
import type { FleetNodeRecord } from "../../../store/fleet/nodes.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { refusal } from "../../catalog/entries.ts";
import { findNode } from "../find-node.ts";
import { findSystem } from "../node-power.ts";
import {
  checkComment,
  happeningOf,
  isByCancel,
  type Locked,
  MOVES,
  type NodeVerb,
  readNode,
  type Verb,
} from "../node-verbs.ts";

/** As callers spell them. */
const VERBS = {
  quarantine: "quarantine",
  recover: "recover",
  reactivate: "reactivate",
  "drain-abort": "abort_drain",
  "remove-rollback": "rollback_removal",
} as const satisfies Readonly<Record<string, Verb>>;
export type MoveWord = keyof typeof VERBS;
const MOVE_WORDS = Object.keys(VERBS) as readonly MoveWord[];

export interface MovePreview {
  readonly node: FleetNodeRecord;
  /** Where it would be; the state that it is in where the call changes nothing. */
  readonly to: string;
  /** What else would happen. */
  readonly notes: readonly string[];
}

/** What moving a node by hand would do as things are now; what the call would be refused with, this is refused with. Writes nothing, here or in MAAS. */
export async function previewMove(
  deps: ServiceDeps,
  input: NodeVerb & { readonly move: string },
): Promise<MovePreview> {
  const word = MOVE_WORDS.find((each) => each === input.move);
  if (word === undefined) throw refusal("move", `must be one of ${MOVE_WORDS.join(", ")}`);
  const name = VERBS[word];
  const comment = checkComment(input.comment, name === "quarantine");
  const { id } = await findNode(deps.db, input.node);
  const now = await readNode(deps.db, id);
  const notes = await notesOn(deps, name, now);
  const { node, job } = now;
  if (name === "abort_drain" || name === "rollback_removal") {
    const back = node.facts.quarantineReason === null ? "offline" : "quarantined";
    const to = name === "abort_drain" ? back : "retired";
    if (job && isByCancel(now, name))
      return { node, to, notes: [`run ${job.id} would be canceled, as ${actionCommand(id, "cancel")} does`, ...notes] };
  } else if (!MOVES[name](now, comment)) return { node, to: node.state.name, notes: ["nothing would change"] };
  return { node, to: followOrRefuse(fleetNodeLifecycle, node, happeningOf(name, comment)).to, notes };
}

async function notesOn(deps: ServiceDeps, name: Verb, { node }: Locked): Promise<readonly string[]> {
  if (name !== "reactivate" || node.state.name !== "retired") return [];
  const system = await findSystem(deps, node);
  return system?.isOff ? [`MAAS would switch machine ${system.systemId} on`] : [];
}
