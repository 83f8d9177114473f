import type { Rack } from "../../../lifecycles/rack/rack.ts";
import type { ChildRun } from "../../children/child-run.ts";
import { areAllProven, describeWritten } from "../../targets/left-by-steps.ts";
import type { RunOn } from "../../targets/target-kind.ts";

/** Which activities were skipped although they were requested, and which devices were left out, each with why. Empty: nothing. */
export function describeSkipped({ plan, target, facts }: RunOn<Rack>): string {
  const skipped = plan.steps.flatMap(({ name, payload: { skip, notRequested } }) =>
    typeof skip === "string" && notRequested !== true && !name.startsWith("power_") ? [`${name} skipped: ${skip}`] : [],
  );
  const leftOut = (target.thing.facts.workSet?.leftOut ?? []).map(({ id, why }) => `${id} left out: ${why}`);
  const impossible = facts.steps.flatMap(({ name, verdict, message }) =>
    verdict === "skipped" ? [`${name} ${message}`] : [],
  );
  return [...skipped, ...impossible, ...leftOut].join("; ");
}

const ENDS = {
  PENDING: "not begun",
  RUNNING: "under way",
  SUCCEEDED: "done",
  FAILED: "failed",
  CANCELED: "canceled",
} as const;

/** How a terminated run has left each device; those that it left alike stand together. */
export function describeLeft({ children, target }: RunOn<Rack>): string {
  const { machines = [], switches = [], shelves = [] } = target.thing.facts.workSet ?? {};
  const last = new Map(children.map((child) => [child.target.id, child]));
  const ends = Map.groupBy([...machines, ...switches, ...shelves], (id) => describe(last.get(id)));
  return ["terminated", ...[...ends].map(([end, ids]) => `${ids.join(", ")}: ${end}`)].join("; ");
}

function describe(child: ChildRun | undefined): string {
  if (child === undefined) return "not begun";
  const { id, step, phase, isUnproven, message, left } = child;
  if (isUnproven) return `${step} unproven, run ${id} goes on`;
  if (areAllProven(left)) return `${step} ${ENDS.SUCCEEDED}`;
  const said = phase === "SUCCEEDED" ? "" : phase === "CANCELED" ? describeWritten(left) : message;
  return `${step} ${ENDS[phase]}${said === "" ? "" : ` (${said})`}`;
}
