import type { Thing } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { eventually } from "../eventually.ts";
import { requestMaintenance, startBayEngine } from "../rigs/bay-engine.ts";
import { NO_PASS_LASTS, type Place, PlacesPassed } from "./places.ts";

export interface BayVictimOrder {
  readonly url: string;
  readonly instance: string;
  readonly bayId: string;
  /** Absent: it lives until the bay is ready again, and prints the places that it came through. */
  readonly place?: Place;
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

/** As a process of its own: asks for a bay's maintenance and carries it out, one thing at a time, up to the place where it dies. */
async function carryOut({ url, instance, bayId, place }: BayVictimOrder): Promise<void> {
  const db = openDatabase(url, { log: silentLog, applicationName: instance });
  const places = new PlacesPassed(place);
  await requestMaintenance(db, bayId);
  places.position = "between";
  const around = places.around(positionOf);
  const engine = await startBayEngine(db, { instance, around, clock: NO_PASS_LASTS, inFlight: 1 });
  const isDone = "select 1 from bays where id = $1 and state = 'ready' and maintenance_requested is null";
  await eventually(async () => (await db.query(isDone, [bayId])).length > 0, {
    what: `${bayId} is ready again`,
    within: 60_000,
    seen: async () => JSON.stringify(await db.query("select id, state, outcome, facts from runs")),
  });
  await engine.stop(); // what ended it is seen before its pass is through
  places.print();
  await db.close();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await carryOut(JSON.parse(order) as BayVictimOrder);
}
