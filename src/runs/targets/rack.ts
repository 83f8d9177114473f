import { type Effect, move } from "../../kernel/effects.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import type { Rack } from "../../lifecycles/rack/rack.ts";
import { releasesDevices } from "../../lifecycles/rack/release.ts";
import { fabricEnded } from "../steps/rack/configure-fabric.ts";
import { describeLeft, describeSkipped } from "../workflows/rack/outcome-of-rack.ts";
import { progressOf } from "../workflows/rack/rack-progress.ts";
import { RACK_MAINTENANCE } from "../workflows/rack/words.ts";
import type { RunEnd, RunOn, TargetKind } from "./target-kind.ts";

const MAINTENANCE_ENDS = { SUCCEEDED: "run_succeeded", FAILED: "run_failed", CANCELED: "run_canceled" } as const;
const VALIDATION_ENDS = {
  SUCCEEDED: "validation_succeeded",
  FAILED: "validation_failed",
  CANCELED: "validation_canceled",
} as const;

/**
 * The rack is in maintenance or validating before its run begins: the commit that made it so started the run. Each activity that the
 * run comes to is an entry of the rack's history, and the run's end leads the rack on.
 */
export const rackTarget: TargetKind<Rack> = {
  kind: rackLifecycle.kind,
  whenStarted: () => [],
  whenProgressed(run, before, after) {
    const { plan, target } = run;
    if (plan.workflow !== RACK_MAINTENANCE || !isItsRun(run)) return [];
    const known = progressOf(before).at(-1);
    const seen = progressOf(after);
    const from = seen.findIndex((each) => each.activity === known?.activity && each.phase === known.phase);
    return seen.slice(from + 1).map((data) => progressed(target.id, data));
  },
  whenEnded(run, end) {
    if (!isItsRun(run)) return [];
    return run.plan.workflow === RACK_MAINTENANCE ? maintenanceEnded(run, end) : validationEnded(run, end);
  },
};

/** A run of a rack that was deleted by force, and made again since, leads the new one nowhere. */
const isItsRun = ({ id, target }: RunOn<Rack>): boolean => target.thing.state.run === id;

/** The rack may have been deleted by force, and made again since. */
const progressed = (id: string, data: JsonObject): Effect =>
  move(rackLifecycle, id, "activity_changed", { ifPossible: true, data });

function maintenanceEnded(run: RunOn<Rack>, end: RunEnd): readonly Effect[] {
  const { phase } = end;
  const completed =
    phase === "SUCCEEDED" ? [progressed(run.target.id, { activity: "completed", phase: "completed" })] : [];
  const facts = factsOf(run);
  const moved = { ...outcomeOf(run, end), ...(facts && { facts }) };
  const switches = run.target.thing.facts.workSet?.switches ?? [];
  // A switch without the fabric is in error; those that only waited for their rack are released.
  const released = [
    ...run.facts.steps.flatMap((visit) => fabricEnded(visit, switches)),
    ...releasesDevices(run.target.thing),
  ];
  return [...completed, move(rackLifecycle, run.target.id, MAINTENANCE_ENDS[phase], moved), ...released];
}

const validationEnded = (run: RunOn<Rack>, end: RunEnd): readonly Effect[] => [
  move(rackLifecycle, run.target.id, VALIDATION_ENDS[end.phase], outcomeOf(run, end)),
];

/** What people read of it: of a success what was skipped, of a failure why, of a termination how each device was left. */
function outcomeOf(run: RunOn<Rack>, { phase, message, cause }: RunEnd) {
  const said = phase === "SUCCEEDED" ? describeSkipped(run) : phase === "FAILED" ? message : describeLeft(run);
  const failure = phase === "CANCELED" ? { code: "terminated" } : cause && { ...cause };
  return {
    ifPossible: true,
    ...(said !== "" && { message: said }),
    ...(phase !== "SUCCEEDED" && failure && { data: { failure } }),
  } as const;
}

/** A fabric that turned out to be impossible to configure, and was implied, is not validated either. */
function factsOf({ facts, target: { thing } }: RunOn<Rack>): JsonObject | undefined {
  const { workSet } = thing.facts;
  const isSkipped = facts.steps.some(({ name, verdict }) => name === "configure_nmx_cluster" && verdict === "skipped");
  return isSkipped && workSet ? { workSet: { ...workSet, fabric: false } } : undefined;
}
