import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { Thing } from "../../../src/kernel/lifecycle.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { die, watchFailPoints } from "../../../src/store/postgres/fail-points.ts";
import { PROBED, stepsHeardOf } from "./dying-steps.ts";
import { openRunReplica, stopWhenTold } from "./run-replica.ts";

export interface FleetVictimOrder {
  readonly url: string;
  readonly keyFile: string;
  readonly instance: string;
  /** Where each death is noted, so that at each place one replica dies, and no second one. */
  readonly deaths: string;
  /** A file with how many milliseconds have passed that nobody waited for. */
  readonly later: string;
  readonly failPoint: string;
}

/** What is on record of the run when its pass begins: its stage, and how far that is. */
function positionOf({ state, facts }: RunThing): string {
  const visit = facts.steps.at(-1);
  if (visit === undefined) return state.name;
  if (visit.state !== "RUNNING") return `${visit.name} ${visit.state}`;
  return `${visit.name} ${visit.actedAt !== null ? "acted" : visit.actingAt !== null ? "announced" : "begun"}`;
}

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

/** For all replicas alike: as much later as the test says. */
const clockOf = (laterFile: string): Clock => ({
  ...systemClock,
  now: () => new Date(Date.now() + Number(readFileSync(laterFile, "utf8"))),
  // A pass that lasts is written before the run goes on: on a slow computer runs would come by other places than on a fast one.
  monotonic: () => 0,
});

/** As a process of its own: a replica that works on everything, one thing at a time, up to the first place where nobody has died yet. */
async function work({ deaths, later, failPoint, ...options }: FleetVictimOrder): Promise<void> {
  let position: string | undefined;
  watchFailPoints((at) => {
    if (at === failPoint && position !== undefined && isFirstAt(deaths, position)) die();
    if (at === "committer:after") position = undefined;
  });
  const around =
    (kind: string, handlers: HandlerOf): HandlerOf =>
    (state) => {
      const handler = handlers(state);
      return (
        handler &&
        (async (thing: Thing, frame) => {
          position = kind === "run" ? positionOf(thing as RunThing) : undefined;
          return handler(thing, frame);
        })
      );
    };
  const steps = stepsHeardOf((kind) => {
    if (failPoint === PROBED && isFirstAt(deaths, `${kind} probed`)) die();
  });
  const replica = openRunReplica({
    ...options,
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
  await work(JSON.parse(order) as FleetVictimOrder);
}
