import {
  type Lifecycle,
  LifecycleSchema,
  LifecycleService,
  type LifecycleState,
  type LifecycleTransition,
  TransitionOwnerSchema,
} from "../../../../contract/millwright/v1/lifecycle_pb.js";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column, Style } from "../../terminal/output.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { tableOf } from "../../terminal/table.ts";
import { describeDuration, toMilliseconds } from "../../terminal/times.ts";
import { kindOf } from "../event/kind.ts";

const lifecycleJson = (lifecycle: Lifecycle) => jsonOf(LifecycleSchema, lifecycle);
const columns: readonly Column<Lifecycle>[] = [
  { title: "KIND", cell: ({ kind }) => kind },
  { title: "INITIAL", cell: ({ initial }) => initial },
  { title: "TRANSITIONS", cell: ({ transitions }) => String(transitions.length) },
  { title: "STATES", cell: ({ states }) => states.map(({ name }) => name).join(" ") },
];

export async function listLifecycles(session: Session): Promise<undefined> {
  const client = await session.client(LifecycleService);
  const { lifecycles } = await client.listLifecycles({}, { signal: session.signal });
  await printList(session, { items: lifecycles, columns, json: lifecycleJson }, "No lifecycles.");
}

export async function showLifecycle(
  session: Session,
  kind: string,
  options: { readonly mermaid?: boolean },
): Promise<undefined> {
  const client = await session.client(LifecycleService);
  const { lifecycle } = await client.getLifecycle({ kind: kindOf(kind) }, { signal: session.signal });
  if (!lifecycle) throw new Error(`the server answered without the lifecycle ${kind}`);
  if (options.mermaid) {
    session.terminal.stdout.write(mermaidOf(lifecycle));
    return;
  }
  const style = session.style();
  await printOne(session, {
    item: lifecycle,
    columns,
    json: lifecycleJson,
    details: [
      ["Lifecycle", lifecycle.kind, "bold"],
      ["Initial", lifecycle.initial],
    ],
    sections: [
      { title: "States", body: statesTable(lifecycle.states, style) },
      {
        title: "Transitions, in the order in which they are tried",
        body: transitionsTable(lifecycle.transitions, style),
      },
    ],
  });
}

function statesTable(states: readonly LifecycleState[], style: Style): string {
  const stay = (state: LifecycleState) => {
    if (state.terminal) return "terminal";
    return state.resting ? "rests" : state.sla ? `works, ${describeDuration(toMilliseconds(state.sla))}` : "works";
  };
  const nature = (state: LifecycleState) => `${stay(state)}${state.trouble ? ", trouble" : ""}`;
  const rows = states.map((state) =>
    [state.name, nature(state), state.holdsClaim ? "yes" : "", state.doc].map((text) => ({ text, tone: undefined })),
  );
  return tableOf(["STATE", "NATURE", "CLAIMS", "MEANING"], rows, style);
}

const targetOf = ({ to, deletes, stays }: LifecycleTransition): string => (deletes ? "(gone)" : stays ? "(stays)" : to);

function transitionsTable(transitions: readonly LifecycleTransition[], style: Style): string {
  const rows = transitions.map((transition) =>
    [
      transition.from === "*" ? "(any)" : transition.from,
      targetOf(transition),
      enumWord(TransitionOwnerSchema, transition.owner),
      `${transition.trigger}${transition.failure ? " (failure)" : ""}`,
      transition.doc,
    ].map((text) => ({ text, tone: undefined })),
  );
  return tableOf(["FROM", "TO", "BY", "TRIGGER", "WHY"], rows, style);
}

const ANY_STATE = "any_state";

/** A state diagram for any Markdown viewer that draws Mermaid; the generated pages have the very same. */
export function mermaidOf({ initial, states, transitions }: Lifecycle): string {
  const lines = [`[*] --> ${initial}`];
  if (transitions.some(({ from }) => from === "*")) lines.push(`state "any state" as ${ANY_STATE}`);
  for (const { from, to, deletes, stays, trigger, failure } of transitions) {
    const source = from === "*" ? ANY_STATE : from;
    const label = `${trigger.replaceAll("_", " ")}${failure ? " (failure)" : ""}`;
    lines.push(`${source} --> ${deletes ? "[*]" : stays ? source : to} : ${label}`);
  }
  for (const { name, terminal } of states) if (terminal) lines.push(`${name} --> [*]`);
  return `${["stateDiagram-v2", ...lines.map((line) => `    ${line}`)].join("\n")}\n`;
}
