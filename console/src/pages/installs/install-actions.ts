import {
  type Lifecycle,
  type LifecycleTransition,
  TransitionOwner,
} from "../../../../contract/millwright/v1/lifecycle_pb.js";
import { type Node, NodeService, type Workflow } from "../../../../contract/millwright/v1/node_pb.js";
import { type Action, defineAction } from "../../actions/action.ts";
import type { AskedField } from "../../actions/action-fields.ts";
import { shellWord } from "../../parts/copy-as.tsx";

/** What people can do with a node now: the moves that its lifecycle's table leaves to callers, and what lets it boot. */
export function actionsOf(
  node: Node,
  lifecycle: Lifecycle | undefined,
  workflows: readonly Workflow[],
): readonly Action[] {
  if (lifecycle === undefined) return [];
  const ends = new Set(lifecycle.states.filter(({ terminal }) => terminal).map(({ name }) => name));
  const moves = lifecycle.transitions
    .filter(({ owner, from, to }) => owner === TransitionOwner.CALLER && to !== "" && leads(from, to, node.state, ends))
    .map((transition) => moveOf(node, transition, workflows, ends));
  const all = [...moves, ...(AWAITS_BOOT.has(node.state) ? [armOf(node)] : [])];
  return [...all.filter(({ isDangerous }) => !isDangerous), ...all.filter(({ isDangerous }) => isDangerous)];
}

/** As the contract has it: what these states are asked with. */
const WITH_WORKFLOW = "pending";
const WITH_REPLACEMENT = "migrating";
const FAILED = "install_failed";
const AWAITS_BOOT: ReadonlySet<string> = new Set(["pending", "deprovisioning"]);
/** Verbs of the table that are called otherwise in a terminal, and those that only the API has. */
const TYPED: Readonly<Record<string, string>> = { reset: "retry", start: "", complete: "", give_up: "" };

const leads = (from: string, to: string, state: string, ends: ReadonlySet<string>): boolean =>
  from === state || (from === "*" && to !== state && !ends.has(state));

function moveOf(
  { id, state }: Node,
  { trigger, to, doc }: LifecycleTransition,
  workflows: readonly Workflow[],
  ends: ReadonlySet<string>,
): Action {
  const verb = TYPED[trigger] ?? trigger.replaceAll("_", "-");
  const cli = verb === "" ? "" : `millwright node ${verb} ${shellWord(id)}`;
  const says = `${id}: ${state} → ${to}. ${doc}`;
  const label = sentence(trigger);
  // That its disks are gone somebody vouches for: the move has a call of its own.
  if (trigger === "confirm_erased")
    return defineAction({
      ...{ label, says, cli, isDangerous: true },
      method: NodeService.method.confirmNodeErased,
      request: { id },
    });
  const isAgain = state === FAILED && to === WITH_WORKFLOW;
  return defineAction({
    label,
    says: isAgain ? `${says} Its failed attempts are counted from 0 again.` : says,
    method: NodeService.method.changeNodeState,
    request: { id, from: state, state: to, ...(isAgain && { force: true }) },
    cli: isAgain ? `${cli} --force` : cli,
    isDangerous: ends.has(to) || trigger === "deprovision",
    asks: fieldsOf(to, workflows),
  });
}

function fieldsOf(to: string, workflows: readonly Workflow[]): readonly AskedField[] {
  const choices = [
    { value: "", label: "the one that it has" },
    ...workflows.map(({ id, name }) => ({ value: id, label: name === id ? id : `${id}: ${name}` })),
  ];
  return [
    ...(to === WITH_WORKFLOW ? [{ name: "workflowId", label: "Workflow", isFlag: false, choices }] : []),
    ...(to === WITH_REPLACEMENT
      ? [{ name: "replacementId", label: "Machine that takes its place", isFlag: false }]
      : []),
    { name: "comment", label: "Comment", isFlag: false },
  ];
}

const armOf = ({ id }: Node): Action =>
  defineAction({
    label: "Expect its boot",
    says: `The next boot of ${id} from the network gets its script, and what it reports counts. Boots that nobody expects get none.`,
    method: NodeService.method.armNode,
    request: { id },
    cli: `millwright node arm ${shellWord(id)}`,
  });

const sentence = (verb: string): string => verb.charAt(0).toUpperCase() + verb.slice(1).replaceAll("_", " ");
