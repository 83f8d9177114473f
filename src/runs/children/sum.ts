import { namedList } from "../../kernel/named-list.ts";
import { isActive } from "../model/run.ts";
import type { RunTarget } from "../targets/run-target.ts";
import type { ChildRun } from "./child-run.ts";

/** How runs on many targets have ended. */
export interface Sum {
  readonly succeeded: readonly ChildRun[];
  readonly failed: readonly ChildRun[];
  readonly canceled: readonly ChildRun[];
  /** Those that have not ended. */
  readonly active: readonly ChildRun[];
  /** Targets for which no run was started. */
  readonly unstarted: readonly RunTarget[];
}

const isOn =
  ({ kind, id }: RunTarget) =>
  ({ target }: ChildRun) =>
    target.kind === kind && target.id === id;

export function sumUp(targets: readonly RunTarget[], children: readonly ChildRun[]): Sum {
  const inPhase = (...phases: readonly string[]) => children.filter(({ phase }) => phases.includes(phase));
  return {
    succeeded: inPhase("SUCCEEDED"),
    failed: children.filter(({ phase, isUnproven }) => phase === "FAILED" || (isActive(phase) && isUnproven)),
    canceled: inPhase("CANCELED"),
    active: children.filter(({ phase, isUnproven }) => isActive(phase) && !isUnproven),
    unstarted: targets.filter((target) => !children.some(isOn(target))),
  };
}

/** More would drown the reader: `run show` lists all. */
const MOST_NAMED = 5;

const named = (what: string, children: readonly ChildRun[]): string[] => {
  if (children.length === 0) return [];
  const each = children.map(
    ({ target: { kind, id }, message }) => `${kind} ${id}${message === "" ? "" : ` (${message})`}`,
  );
  return [`${what}: ${namedList(each, MOST_NAMED)}`];
};

/** For people: `3 of 5 succeeded; failed: switch sw-1 (no answer); canceled: switch sw-2`. */
export function describeSum({ succeeded, failed, canceled, active, unstarted }: Sum): string {
  const all = succeeded.length + failed.length + canceled.length + active.length + unstarted.length;
  return [
    `${succeeded.length} of ${all} succeeded`,
    ...(active.length > 0 ? [`${active.length} running`] : []),
    ...(unstarted.length > 0 ? [`${unstarted.length} not started`] : []),
    ...named("failed", failed),
    ...named("canceled", canceled),
  ].join("; ");
}
