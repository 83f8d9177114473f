import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { JsonObject, Thing } from "../../../src/kernel/lifecycle.ts";
import type { Outcome } from "../../../src/kernel/outcome.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import type { Plan } from "../../../src/runs/model/plan/plan.ts";
import type { Run } from "../../../src/runs/model/run.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { startOwnPlan, startRun } from "../../../src/services/run/starts.ts";
import { die, watchFailPoints } from "../../../src/store/postgres/fail-points.ts";
import { eventually } from "../eventually.ts";
import { openRunReplica } from "./run-replica.ts";

/**
 * How far a run of one step was, by what was on record when the pass began. Passes are not counted: how often a device is asked
 * depends on how long it takes.
 */
export const POSITIONS = ["not started", "PENDING", "RUNNING", "intent noted", "announced", "acted", "done"] as const;
export type Position = (typeof POSITIONS)[number];

/** A place to die at: the first pass of the fail point while the run is there. */
export interface Place {
  readonly position: Position;
  readonly failPoint: string;
}

/** What says nothing is null in what was loaded, and absent in what is about to be written. */
interface VisitOnRecord {
  readonly state: string;
  readonly evidence?: unknown;
  readonly actingAt?: unknown;
  readonly actedAt?: unknown;
}

function positionOf(state: string, visit: VisitOnRecord | undefined): Position {
  if (state === "PENDING") return "PENDING";
  if (!visit) return "RUNNING";
  if (visit.state !== "RUNNING") return "done";
  if (visit.actedAt != null) return "acted";
  if (visit.actingAt != null) return "announced";
  return visit.evidence == null ? "RUNNING" : "intent noted";
}

function positionAfter(run: RunThing, outcome: Outcome): Position {
  if (outcome.type === "happened" && outcome.event === "started") return "RUNNING";
  const steps = outcome.facts?.steps as readonly JsonObject[] | undefined;
  return positionOf(run.state.name, (steps?.at(-1) as VisitOnRecord | undefined) ?? run.facts.steps.at(-1));
}

/** A pass that lasts is written before the run goes on: on a slow computer runs would come by other places than on a fast one. */
const NO_LOOK_LASTS: Clock = { ...systemClock, monotonic: () => 0 };

export interface VictimOrder {
  readonly url: string;
  readonly keyFile: string;
  readonly instance: string;
  readonly machineId: string;
  readonly planId: string;
  /** One that no caller can name; absent: the plan of the id. */
  readonly ownPlan?: Plan | undefined;
  /** Where BMCs fetch seeds; absent: nobody serves them. */
  readonly seedsAt?: string | undefined;
  /** The site stands still until it is on record that the action was done; from then on it is this much faster than life. */
  readonly simulator: { readonly controlUrl: string; readonly speed: number };
  /** Absent: it lives until the run has ended, and prints the places that it came through. */
  readonly place?: Place;
}

/** Asked for again, it is the same run. */
export function startOnce(
  deps: RunDeps,
  { machineId, planId, ownPlan }: Pick<VictimOrder, "machineId" | "planId" | "ownPlan">,
): Promise<Run> {
  const caller = { name: "tester", roles: ["admin"], address: null };
  const asked = { requestId: "once", machineId };
  return ownPlan
    ? startOwnPlan(deps, caller, { ...asked, plan: ownPlan })
    : startRun(deps, caller, { ...asked, planId, type: "", params: {} });
}

/** As a process of its own: starts a run and carries it out, up to the place where it dies. */
async function carryOut({
  machineId,
  planId,
  ownPlan,
  place,
  simulator: { controlUrl, speed },
  ...replicaOptions
}: VictimOrder): Promise<void> {
  const setSpeed = async () => {
    const answer = await fetch(new URL("/speed", controlUrl), { method: "PUT", body: JSON.stringify({ speed }) });
    if (!answer.ok) throw new Error(`the speed cannot be set: ${await answer.text()}`);
  };
  let position: Position = "not started";
  let after: Position = "PENDING";
  const passed = new Set<string>();
  watchFailPoints((failPoint, subjects) => {
    if (failPoint.endsWith(":claimed") && subjects.length === 0) return; // it asked, and there was nothing
    passed.add(`${position} ${failPoint}`);
    if (place?.position === position && place.failPoint === failPoint) die();
    if (failPoint === "committer:after") position = after;
  });
  const around =
    (_: string, handlers: HandlerOf): HandlerOf =>
    (state) => {
      const handler = handlers(state);
      if (!handler) return undefined;
      return async (thing: Thing, frame) => {
        const run = thing as RunThing;
        position = positionOf(state, run.facts.steps.at(-1));
        if (position === "acted") await setSpeed();
        const outcome = await handler(thing, frame);
        after = positionAfter(run, outcome);
        return outcome;
      };
    };
  const replica = openRunReplica({ ...replicaOptions, handlerClock: NO_LOOK_LASTS, around });
  const { id } = await startOnce(replica.deps, { machineId, planId, ownPlan });
  position = "PENDING";
  await replica.work();
  const { db } = replica.deps;
  const isOver = "select 1 from runs where id = $1 and state not in ('PENDING', 'RUNNING')";
  await eventually(async () => (await db.query(isOver, [id])).length > 0, {
    what: `${id} has ended`,
    within: 60_000,
    seen: async () =>
      JSON.stringify(
        await db.query("select to_jsonb(w) as work, to_jsonb(r) as run from runs r join work w using (id)"),
      ),
  });
  await replica.stop(); // what ended it is seen before its pass is through
  process.stdout.write(`${JSON.stringify([...passed])}\n`);
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await carryOut(JSON.parse(order) as VictimOrder);
}
