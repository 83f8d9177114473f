import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type LifecycleSchema,
  type LifecycleTransitionSchema,
  TransitionOwner,
} from "../../../contract/millwright/v1/lifecycle_pb.js";
import { GONE, type Lifecycle, type Owner, type Row, STAY, type Thing } from "../../kernel/lifecycle.ts";
import { durationOf } from "../convert/fields.ts";

export const TRANSITION_OWNERS = {
  controller: TransitionOwner.CONTROLLER,
  handler: TransitionOwner.HANDLER,
  caller: TransitionOwner.CALLER,
  agent: TransitionOwner.AGENT,
  other: TransitionOwner.OTHER,
} as const satisfies Record<Owner, TransitionOwner>;

export const lifecycleOf = (lifecycle: Lifecycle<Thing>): MessageInitShape<typeof LifecycleSchema> => ({
  kind: lifecycle.kind,
  initial: lifecycle.initial,
  states: Object.entries(lifecycle.states).map(([name, spec]) => ({
    name,
    doc: spec.doc,
    resting: spec.rest ?? false,
    terminal: spec.terminal ?? false,
    trouble: spec.trouble ?? false,
    sla: durationOf(spec.sla ?? null),
    holdsClaim: spec.claims ?? false,
    deadline: durationOf(spec.deadline ?? null),
  })),
  transitions: lifecycle.transitions.map(transitionOf),
});

/** Names in the sources are in camelCase; those that people see have one spelling. */
const wordOf = (name: string): string => name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);

const transitionOf = ([from, trigger, to, options]: Row<Thing>): MessageInitShape<
  typeof LifecycleTransitionSchema
> => ({
  from,
  to: to === GONE || to === STAY ? "" : to,
  owner: TRANSITION_OWNERS[trigger.owner],
  trigger: trigger.name,
  failure: trigger.failure,
  doc: options?.added ?? "",
  deletes: to === GONE,
  stays: to === STAY,
  provided: wordOf(options?.provided?.name ?? ""),
  clears: (options?.clears ?? []).map(({ field }) => wordOf(field)),
  carries: wordOf(options?.carries?.name ?? ""),
  sets: wordOf(options?.sets?.name ?? ""),
});
