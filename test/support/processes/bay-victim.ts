import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { Thing } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { die, watchFailPoints } from "../../../src/store/postgres/fail-points.ts";
import { eventually } from "../eventually.ts";
import { requestMaintenance, startBayEngine } from "../rigs/bay-engine.ts";

export interface BayVictimOrder {
  readonly url: string;
  readonly instance: string;
  readonly bayId: string;
  /** Absent: it lives until the bay is ready again, and prints the places that it came through. */
  readonly place?: BayPlace;
}

/** What the pass is about in which a replica dies, by what was on record when it began, and at which fail point. */
export interface BayPlace {
  readonly position: string;
  readonly failPoint: string;
}

export function positionOf(thing: Thing): string {
  if (!("children" in thing)) return `bay ${thing.state.name}`;
  const run = thing as RunThing;
  const visit = run.facts.steps.at(-1);
  const who = run.parent === null ? "parent" : `child of round ${run.parent.round}`;
  if (visit === undefined) return `${who} ${run.state.name}`;
  const how = visit.actedAt !== null ? "acted" : visit.actingAt !== null ? "announced" : visit.state;
  return `${who} ${run.state.name} in ${visit.name} ${visit.round} ${how}`;
}

/** A pass that lasts is written before the run goes on: on a slow computer runs would come by other places than on a fast one. */
const NO_PASS_LASTS: Clock = { ...systemClock, monotonic: () => 0 };

/** As a process of its own: asks for a bay's maintenance and carries it out, one thing at a time, up to the place where it dies. */
async function carryOut({ url, instance, bayId, place }: BayVictimOrder): Promise<void> {
  const db = openDatabase(url, { log: silentLog, applicationName: instance });
  let position = "asking";
  const passed = new Set<string>();
  watchFailPoints((failPoint, subjects) => {
    if (failPoint.endsWith(":claimed") && subjects.length === 0) return; // it asked, and there was nothing
    passed.add(JSON.stringify({ position, failPoint } satisfies BayPlace));
    if (place?.position === position && place.failPoint === failPoint) die();
    if (failPoint === "committer:after") position = "between";
  });
  const around =
    (handlers: HandlerOf): HandlerOf =>
    (state) => {
      const handler = handlers(state);
      return (
        handler &&
        (async (thing: Thing, frame) => {
          position = positionOf(thing);
          return handler(thing, frame);
        })
      );
    };
  await requestMaintenance(db, bayId);
  position = "between";
  const engine = await startBayEngine(db, { instance, around, clock: NO_PASS_LASTS, inFlight: 1 });
  const isDone = "select 1 from bays where id = $1 and state = 'ready' and maintenance_requested is null";
  await eventually(async () => (await db.query(isDone, [bayId])).length > 0, {
    what: `${bayId} is ready again`,
    within: 60_000,
    seen: async () => JSON.stringify(await db.query("select id, state, outcome, facts from runs")),
  });
  process.stdout.write(`${JSON.stringify([...passed])}\n`);
  await engine.stop();
  await db.close();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await carryOut(JSON.parse(order) as BayVictimOrder);
}
