import { silentLog } from "../../../src/kernel/log.ts";
import { activeChildren } from "../../../src/runs/executor/children.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { cancelRun } from "../../../src/services/run/cancel.ts";
import type { SecretStore } from "../../../src/store/access/secrets.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { eventually } from "../eventually.ts";
import { rigStores, startRigEngine, startRigRun } from "../rigs/rig-engine.ts";
import { NO_PASS_LASTS, type Place, PlacesPassed } from "./places.ts";

/** What the pass is about in which a replica dies, by what was on record when it began. */
export const POSITIONS = [
  "asking",
  "between",
  "parent PENDING",
  "parent before",
  "parent waiting",
  "parent starting more",
  "parent summing up",
  "parent stopping children",
  "parent ending",
  "child PENDING",
  "child before",
  "child announced",
  "child acted",
  "child canceling",
] as const;
export type Position = (typeof POSITIONS)[number];

export interface RigVictimOrder {
  readonly url: string;
  readonly instance: string;
  readonly rigId: string;
  readonly gadgets: readonly string[];
  readonly kind: string;
  /** Cancels the run once so many gadgets were begun. */
  readonly cancelsAfter?: number;
  /** Absent: it lives until the run has ended, and prints the places that it came through. */
  readonly place?: Place<Position>;
}

export function positionOf(run: RunThing, gadgets: number): Position {
  const [visit] = run.facts.steps;
  if (run.parent !== null) {
    if (run.state.name === "PENDING") return "child PENDING";
    if (run.cancelRequestedAt !== null) return "child canceling";
    if (visit?.actedAt != null) return "child acted";
    return visit?.actingAt != null ? "child announced" : "child before";
  }
  if (run.state.name === "PENDING") return "parent PENDING";
  const active = activeChildren(run).length;
  if (run.cancelRequestedAt !== null) return active > 0 ? "parent stopping children" : "parent ending";
  if (visit === undefined) return "parent before";
  if (run.children.length < gadgets && active < AT_ONCE) return "parent starting more";
  return active > 0 ? "parent waiting" : "parent summing up";
}

/** Of `poke_few`. */
const AT_ONCE = 2;
export async function cancelRigRun(db: ReturnType<typeof openDatabase>, runId: string): Promise<void> {
  const deps = { db, stores: rigStores, secrets: {} as SecretStore, maxFindByIds: 100 };
  await cancelRun(deps, { name: "tester", roles: ["admin"], address: null }, runId);
}

/** As a process of its own: starts a run on a rig and carries it out, one thing at a time, up to the place where it dies. */
async function carryOut(order: RigVictimOrder): Promise<void> {
  const { url, instance, rigId, gadgets, kind, cancelsAfter, place } = order;
  const db = openDatabase(url, { log: silentLog, applicationName: instance });
  const places = new PlacesPassed(place);
  const runId = await startRigRun(db, rigId, [kind]);
  places.position = "between";
  const around = places.around((thing) => positionOf(thing as RunThing, gadgets.length));
  const engine = await startRigEngine(db, { instance, around, clock: NO_PASS_LASTS, inFlight: 1 });
  if (cancelsAfter !== undefined) {
    const begun = "select count(*)::int as count from gadget_world where id = any($1) and pokes > 0";
    const countBegun = async () => (await db.query<{ count: number }>(begun, [gadgets]))[0]?.count ?? 0;
    await eventually(async () => (await countBegun()) >= cancelsAfter, { what: "enough are begun", within: 60_000 });
    await cancelRigRun(db, runId);
  }
  const isOver = "select 1 from runs where id = $1 and state not in ('PENDING', 'RUNNING')";
  await eventually(async () => (await db.query(isOver, [runId])).length > 0, {
    what: `${runId} has ended`,
    within: 60_000,
    seen: async () => JSON.stringify(await db.query("select id, state, outcome, facts from runs")),
  });
  await engine.stop(); // what ended it is seen before its pass is through
  places.print();
  await db.close();
}

if (process.argv[1] === import.meta.filename) {
  const [order = ""] = process.argv.slice(2);
  await carryOut(JSON.parse(order) as RigVictimOrder);
}
