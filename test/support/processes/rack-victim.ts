import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { Thing } from "../../../src/kernel/lifecycle.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { die, watchFailPoints } from "../../../src/store/postgres/fail-points.ts";
import { PROBED, stepsHeardOf } from "./dying-steps.ts";
import { type FirmwareDirectory, openRunReplica, stopWhenTold } from "./run-replica.ts";

export interface RackVictimOrder {
  readonly url: string;
  readonly keyFile: string;
  readonly instance: string;
  readonly firmware: FirmwareDirectory;
  readonly simulator: { readonly controlUrl: string; readonly speed: number; readonly slow: number };
  /** Where each death is noted, so that at each place one replica dies, and no second one. */
  readonly deaths: string;
  /** A file with how many milliseconds have passed that nobody waited for. */
  readonly later: string;
  readonly failPoints: readonly string[];
  /** Absent: at every position. */
  readonly positions?: string;
}

/** A replica that is alive takes these for its own. Others, such as the reading of a switch, are killed elsewhere. */
const KINDS: ReadonlySet<string> = new Set(["rack", "run", "rack_firmware", "host_reprovision"]);
const AT_REST: ReadonlySet<string> = new Set(["host_reprovision ready"]);

/** What is on record of the thing when its pass begins; undefined for what nobody dies at. */
function positionOf(kind: string, thing: Thing): string | undefined {
  if (!KINDS.has(kind)) return undefined;
  if (kind !== "run") {
    const position = `${kind} ${thing.state.name}`;
    return AT_REST.has(position) ? undefined : position;
  }
  const run = thing as RunThing;
  const visit = run.facts.steps.at(-1);
  const canceled = run.cancelRequestedAt === null ? "" : ", canceled";
  const who = run.parent === null ? (run.plan.workflow ?? run.plan.planId) : `${run.target.kind} in ${run.parent.step}`;
  if (visit === undefined) return `${who} ${run.state.name}${canceled}`;
  return `${who}, ${visit.name} ${howFar(run)}${canceled}`;
}

function howFar({ facts }: RunThing): string {
  const visit = facts.steps.at(-1);
  if (visit === undefined || visit.state !== "RUNNING") return visit?.state ?? "";
  if (visit.actedAt !== null) return "acted";
  return visit.actingAt !== null ? "announced" : "begun";
}

/** For all replicas alike: as much later as the test says. */
const clockOf = (laterFile: string): Clock => ({
  ...systemClock,
  now: () => new Date(Date.now() + Number(readFileSync(laterFile, "utf8"))),
  // A pass that lasts is written before the run goes on: on a slow computer runs would come by other places than on a fast one.
  monotonic: () => 0,
});

/** Of those who come by a place together, one: the file is made by nobody else. */
function isFirstAt(deaths: string, place: string): boolean {
  try {
    closeSync(openSync(join(deaths, encodeURIComponent(place)), "wx"));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** As a process of its own: a replica that works on everything, one thing at a time, up to the first place where nobody has died yet. */
async function work({
  simulator,
  deaths,
  later,
  failPoints,
  positions,
  ...replicaOptions
}: RackVictimOrder): Promise<void> {
  const wanted = new RegExp(positions ?? "");
  let position: string | undefined;
  /** A stream goes on between the passes over its thing. */
  let latest: string | undefined;
  /** Of the run whose pass it is. */
  let workflow: string | undefined;
  watchFailPoints((failPoint) => {
    const at = failPoint.startsWith("stream:") ? latest : position;
    if (at !== undefined && failPoints.includes(failPoint) && wanted.test(at))
      if (isFirstAt(deaths, `${at} at ${failPoint}`)) die();
    if (failPoint === "committer:after") position = undefined;
  });
  const setSpeed = async (speed: number) => {
    const answer = await fetch(new URL("/speed", simulator.controlUrl), {
      method: "PUT",
      body: JSON.stringify({ speed }),
    });
    if (!answer.ok) throw new Error(`the speed cannot be set: ${await answer.text()}`);
  };
  const isToBeSeen = (at: string) =>
    at.includes(" announced") &&
    wanted.test(at) &&
    !readdirSync(deaths).some((each) => decodeURIComponent(each).startsWith(`${at} at `));
  const around =
    (kind: string, handlers: HandlerOf): HandlerOf =>
    (state) => {
      const handler = handlers(state);
      return (
        handler &&
        (async (thing: Thing, frame) => {
          position = positionOf(kind, thing);
          latest = position ?? latest;
          if (kind === "run") workflow = (thing as RunThing).plan.workflow;
          // A device that is done in the very pass that commanded it would keep its replica from dying in between.
          if (position !== undefined && kind === "run" && (thing as RunThing).parent !== null)
            await setSpeed(isToBeSeen(position) ? simulator.slow : simulator.speed);
          return handler(thing, frame);
        })
      );
    };
  const steps = stepsHeardOf((kind) => {
    const place = `${workflow}, ${kind} probed`;
    if (failPoints.includes(PROBED) && wanted.test(place) && isFirstAt(deaths, `${place} at ${PROBED}`)) die();
  });
  const replica = openRunReplica({
    ...replicaOptions,
    steps,
    handlerClock: clockOf(later),
    handlesAll: true,
    inFlight: 1,
    around,
  });
  stopWhenTold(replica);
  await replica.work();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await work(JSON.parse(order) as RackVictimOrder);
}
