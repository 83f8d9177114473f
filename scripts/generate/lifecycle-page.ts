import { create } from "@bufbuild/protobuf";
import { LifecycleSchema } from "../../contract/millwright/v1/lifecycle_pb.js";
import { lifecycleOf } from "../../src/api/millwright/lifecycle-messages.ts";
import { mermaidOf } from "../../src/cli/commands/lifecycle/show.ts";
import {
  ANY,
  GONE,
  type Lifecycle,
  OWNERS,
  type Owner,
  type Row,
  STAY,
  type Thing,
} from "../../src/kernel/lifecycle.ts";
import { type Duration, describeDuration } from "../../src/kernel/time/duration.ts";
import { code, page, pageHead, table } from "./markdown.ts";

type AnyLifecycle = Lifecycle<Thing>;

const OWNER_HEADINGS: Readonly<Record<Owner, readonly [heading: string, doc: string]>> = {
  controller: [
    "Made by the controller",
    "As soon as the condition holds. In each state they are tried from top to bottom, before the state's own work.",
  ],
  handler: ["Made by the state's own work", "By what came of it."],
  caller: ["Made by a caller", "By a verb, in the caller's own transaction; the answer carries the new state."],
  agent: ["Made by the thing's agent", "By a report, in its own transaction."],
  other: ["Made by another thing, run or workflow", "In that one's transaction; the history names it."],
};

/** One lifecycle for people: what its states mean, who makes its transitions, and a diagram. */
export function lifecyclePage(lifecycle: AnyLifecycle): string {
  return page(
    pageHead(`Lifecycle: ${spoken(lifecycle.kind)}`, "its table in `src/lifecycles`"),
    `Kind ${code(lifecycle.kind)}. A new one begins in ${[lifecycle.initial, ...(lifecycle.alsoInitial ?? [])].map(code).join(" or ")}.`,
    `\`\`\`mermaid\n${diagram(lifecycle)}\n\`\`\``,
    "## States",
    states(lifecycle),
    "A working state has an SLA: a thing that is there for longer is shown as stuck, with the reason why it waits. After its deadline, waiting and retrying end along the failure transition. While a state holds the claim, no other work begins on the thing. A state that means trouble says so: lists, counts and alerts go by that word.",
    "## Transitions",
    OWNERS.flatMap((owner) => transitionsOf(lifecycle, owner)),
    addedEdges(lifecycle),
  );
}

export function lifecycleIndex(lifecycles: readonly AnyLifecycle[]): string {
  const rows = lifecycles.map((lifecycle) => [
    `[${spoken(lifecycle.kind)}](${lifecycleFileName(lifecycle)})`,
    code(lifecycle.kind),
    Object.keys(lifecycle.states).map(code).join(", "),
  ]);
  return page(
    pageHead("Lifecycles", "the tables in `src/lifecycles`"),
    "Every thing is in one state of its lifecycle. These are the very tables that the server decides by; `millwright lifecycle show KIND` prints those of a running server.",
    table(["Lifecycle", "Kind", "States"], rows),
  );
}

export const lifecycleFileName = ({ kind }: AnyLifecycle): string => `${kind.replaceAll("_", "-")}.md`;

const spoken = (kind: string): string => kind.replaceAll("_", " ");
const orDash = (duration: Duration | undefined): string => (duration === undefined ? "–" : describeDuration(duration));

function states({ states: specs }: AnyLifecycle): string {
  const rows = Object.entries(specs).map(([name, spec]) => [
    code(name),
    `${spec.terminal ? "terminal" : spec.rest ? "resting" : "working"}${spec.trouble ? ", trouble" : ""}`,
    orDash(spec.sla),
    orDash(spec.deadline),
    spec.claims ? "held" : "–",
    spec.doc,
  ]);
  return table(["State", "Kind", "SLA", "Deadline", "Claim", "Meaning"], rows);
}

function transitionsOf(lifecycle: AnyLifecycle, owner: Owner): string[] {
  const rows = lifecycle.transitions.filter(([, trigger]) => trigger.owner === owner);
  if (rows.length === 0) return [];
  const [heading, doc] = OWNER_HEADINGS[owner];
  return [
    `### ${heading}`,
    doc,
    table(
      ["From", owner === "controller" ? "When" : owner === "caller" ? "Verb" : "Event", "To", "Notes"],
      rows.map((row) => [fromText(row, lifecycle), code(row[1].name), toText(row), notes(row)]),
    ),
  ];
}

const fromText = ([from, , to]: Row<Thing>, { states: specs }: AnyLifecycle): string => {
  if (from !== ANY) return code(from);
  const terminal = Object.keys(specs).filter((name) => specs[name]?.terminal && name !== to);
  const excepted = [...(to === GONE || to === STAY ? [] : [to]), ...terminal].map(code);
  return excepted.length === 0 ? "any" : `any but ${excepted.join(", ")}`;
};

const toText = ([, , to]: Row<Thing>): string => {
  if (to === GONE) return "*(removed)*";
  return to === STAY ? "*(stays)*" : code(to);
};

function notes([, trigger, , options = {}]: Row<Thing>): string {
  const parts: string[] = [];
  if (trigger.failure) parts.push("taken when the work fails for good or its deadline passes");
  if (options.provided) parts.push(`only if ${spoken(separated(options.provided.name))}`);
  for (const { field } of options.clears ?? []) parts.push(`ends the ${code(separated(field))} that it was for`);
  if (options.carries) parts.push(`carries the ${code(separated(options.carries.name))}`);
  if (options.sets) parts.push(`notes ${code(separated(options.sets.name))} on the thing`);
  for (const field of options.withdraws ?? []) parts.push(`withdraws a ${code(field)} that is not carried out`);
  for (const field of options.refuses ?? []) parts.push(`ends the pending ${code(field)} as failed`);
  for (const field of options.expires ?? []) parts.push(`ends a ${code(field)} that has waited too long as expired`);
  if (options.added !== undefined) parts.push("added");
  return parts.join("; ");
}

function addedEdges(lifecycle: AnyLifecycle): string[] {
  const rows = lifecycle.transitions.flatMap((row) => {
    const reason = row[3]?.added;
    return reason === undefined ? [] : [[fromText(row, lifecycle), code(row[1].name), toText(row), reason]];
  });
  if (rows.length === 0) return [];
  return [
    "## Added transitions",
    "These are not in the specification of the lifecycle.",
    table(["From", "By", "To", "Why it is there"], rows),
  ];
}

/** `ANY` rows are drawn once, from a note of their own: an arrow from every state would hide all others. */
const diagram = (lifecycle: AnyLifecycle): string =>
  mermaidOf(create(LifecycleSchema, lifecycleOf(lifecycle))).trimEnd();

/** Conditions are functions in camelCase; their names are read as words. */
const separated = (name: string): string => name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
