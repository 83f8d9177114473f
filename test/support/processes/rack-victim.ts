import type { Thing } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { eventually } from "../eventually.ts";
import { startRackEngine } from "../racks/rack-engine.ts";
import { NO_PASS_LASTS, type Place, PlacesPassed } from "./places.ts";

export interface RackVictimOrder {
  readonly url: string;
  readonly instance: string;
  readonly rackId: string;
  /** Absent: it lives until the rack is ready, and prints the places that it came through. */
  readonly place?: Place;
}

function positionOf(thing: Thing): string {
  if (!("children" in thing)) return `rack ${thing.state.name}`;
  const run = thing as RunThing;
  const visit = run.facts.steps.at(-1);
  const who = run.parent === null ? (run.plan.workflow ?? "") : `child of ${run.parent.step}`;
  if (visit === undefined) return `${who} ${run.state.name}`;
  const how = visit.actedAt !== null ? "acted" : visit.actingAt !== null ? "announced" : visit.state;
  return `${who} ${run.state.name} in ${visit.name} ${how}`;
}

/** As a process of its own: takes a rack from its first pass to ready, one thing at a time, up to the place where it dies. */
async function carryOut({ url, instance, rackId, place }: RackVictimOrder): Promise<void> {
  const db = openDatabase(url, { log: silentLog, applicationName: instance });
  const places = new PlacesPassed(place);
  places.position = "between";
  const around = places.around(positionOf);
  const engine = await startRackEngine(db, { instance, around, clock: NO_PASS_LASTS, inFlight: 1 });
  const isDone = "select 1 from racks where id = $1 and state = 'ready'";
  await eventually(async () => (await db.query(isDone, [rackId])).length > 0, {
    what: `${rackId} is ready`,
    within: 60_000,
    seen: async () => JSON.stringify(await db.query("select id, state, outcome, facts from runs")),
  });
  places.print();
  await engine.stop();
  await db.close();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await carryOut(JSON.parse(order) as RackVictimOrder);
}
