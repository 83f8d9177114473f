// @module-tag race
import { afterEach, expect, test } from "vitest";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { RackLimits } from "../../../src/lifecycles/rack/plan-work.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { explainRack } from "../../../src/services/explain/rack/rack.ts";
import {
  clearRackError,
  reprovisionRack,
  resumeRackMaintenance,
  startRackMaintenance,
} from "../../../src/services/rack/maintenance.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { type Database, openDatabase } from "../../../src/store/postgres/database.ts";
import { listRacks } from "../../../src/store/rack/racks.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { collectRackAdmission } from "../../../src/wiring/rack/maintenance-metrics.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { addWholeRack, createTrayTables, rackStores, startRackEngine } from "../../support/racks/rack-engine.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** How many racks are maintained by themselves at a time, whoever decides it, and when that stops. */
let database: TestDatabase;
let deps: ServiceDeps;
beforeAll(async () => {
  database = await createTestDatabase();
  await createTrayTables(database.db);
  deps = { db: database.db, stores: rackStores } as unknown as ServiceDeps;
});
afterAll(() => database.drop());

const running: { stop(): Promise<void> }[] = [];
/** Racks whose runs go on only once the test lets them. */
const held = new Set<string>();
const letGo: (() => void)[] = [];

const around =
  (handlers: HandlerOf): HandlerOf =>
  (state) => {
    const handler = handlers(state);
    return (
      handler &&
      (async (thing, frame) => {
        const target = (thing as Partial<RunThing>).target;
        while (target?.kind === "rack" && held.has(target.id))
          await new Promise<void>((resolve) => letGo.push(resolve));
        return handler(thing, frame);
      })
    );
  };
function hold(...racks: string[]): void {
  for (const rack of racks) held.add(rack);
}
function release(...racks: string[]): void {
  for (const rack of racks) held.delete(rack);
  for (const resolve of letGo.splice(0)) resolve();
}
const startEngine = async (
  rackLimits: Partial<RackLimits>,
  more: { instance?: string; inFlight?: number; db?: Database } = {},
) => {
  const engine = await startRackEngine(more.db ?? database.db, { around, rackLimits, ...more });
  running.push(engine);
  return engine;
};
afterEach(async () => {
  release(...held);
  for (const engine of running.splice(0).reverse()) await engine.stop();
});

const rack = async (id: string) => {
  const [found] = await listRacks(database.db, { ids: [id] });
  if (!found) throw new Error(`there is no rack ${id}`);
  return found;
};
const statesOf = async (ids: readonly string[]) =>
  (await listRacks(database.db, { ids })).map(({ state, outcome }) => outcome?.cause?.code ?? state.name).sort();
const untilAll = (ids: readonly string[], wanted: readonly string[]) =>
  eventually(async () => JSON.stringify(await statesOf(ids)) === JSON.stringify([...wanted].sort()), {
    what: `${ids.join(", ")} are ${wanted.join(", ")}`,
    seen: async () => JSON.stringify(await listRacks(database.db, { ids }), null, 1),
  });
const until = (id: string, state: string) => untilAll([id], [state]);

/** A rack whose shelves cannot deliver what it takes: its maintenance fails, whoever begins it. */
async function addFailingRack(id: string): Promise<void> {
  await addWholeRack(database.db, id, 1);
  await setWatts(id, 1_000);
}
const setWatts = (id: string, watts: number | null) =>
  database.db.execute(
    `update rack_profiles set compute = compute || jsonb_build_object('watts', $2::int), switches = switches || jsonb_build_object('watts', $2::int) where name = $1`,
    [id, watts],
  );

const WHOLE = { machine_ids: [], switch_ids: [], power_shelf_ids: [] };
const start = (rackId: string) => startRackMaintenance(deps, tester, { rackId, scope: WHOLE, activities: [] });

/** By the journal, in the order of commits: how many racks were in maintenance at the same time. */
async function mostAtOnce(ids: readonly string[]): Promise<number> {
  const rows = await database.db.query<{ id: string; to: string }>(
    `select id, to_state as to from journal where kind = 'rack' and id = any($1) and to_state is not null order by epoch, xid, seq`,
    [ids],
  );
  const atWork = new Set<string>();
  let most = 0;
  for (const { id, to } of rows) {
    if (to === "maintenance" || to === "validating") atWork.add(id);
    else atWork.delete(id);
    most = Math.max(most, atWork.size);
  }
  return most;
}

test("racks that come together are maintained a few at a time, wait by name, and follow by themselves", async () => {
  const ids = ["a-1", "a-2", "a-3", "a-4", "a-5"];
  for (const id of ids) await addWholeRack(database.db, id, 1);
  hold(...ids);
  await startEngine({ ingestionAtOnce: 2 });
  await untilAll(ids, ["maintenance", "maintenance", ...Array(3).fill("maintenance_limit")]);
  const all = await listRacks(database.db, { ids });
  const waiting = all.find(({ state }) => state.name === "discovering");
  expect(waiting?.outcome?.reason).toBe(
    "waiting for its turn: 2 racks are in maintenance, as many as rack.ingestion_at_once allows",
  );
  const atWork = all.filter(({ state }) => state.name === "maintenance").map(({ id }) => `rack ${id}`);
  const explanation = await explainRack(deps, waiting?.id ?? "");
  expect(explanation.waitingFor).toEqual([waiting?.outcome?.reason, ...atWork]);
  expect(explanation.nextCommands[0]?.command).toBe("millwright rack list --state maintenance");
  const metrics = createMetrics({ processMetrics: false });
  metrics.collectWith(collectRackAdmission(database.db));
  expect((await metrics.render()).body).toContain(
    'millwright_racks_waiting_for_maintenance{cause="maintenance_limit"} 3',
  );
  release(...ids);
  await untilAll(ids, Array(5).fill("ready"));
  expect(await mostAtOnce(ids)).toBe(2);
});

test("of two replicas that see the last place free, one takes it", async () => {
  await addWholeRack(database.db, "b-1", 1);
  await addWholeRack(database.db, "b-2", 1);
  hold("b-1", "b-2");
  // Over a connection of its own: the replicas meet at the lock that their commits need, each with its rack.
  const other = openDatabase(database.url, { log: silentLog, applicationName: "test" });
  try {
    await other.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "admission", id: "rack" }]);
      for (const instance of ["one", "two"]) await startEngine({ ingestionAtOnce: 1 }, { instance, inFlight: 1 });
      await eventually(
        async () => {
          const [row] = await database.db.query<{ waiting: number }>(
            `select count(*)::int as waiting from pg_locks
              where locktype = 'advisory' and not granted and ((classid::bigint << 32) | objid::bigint) = hashtextextended('admission/rack', 0)`,
          );
          return (row?.waiting ?? 0) >= 2;
        },
        { what: "both replicas have decided to begin" },
      );
    });
  } finally {
    await other.close();
  }
  await untilAll(["b-1", "b-2"], ["maintenance", "maintenance_limit"]);
  release("b-1", "b-2");
  await untilAll(["b-1", "b-2"], ["ready", "ready"]);
  expect(await mostAtOnce(["b-1", "b-2"])).toBe(1);
});

test("what an operator asks for by name goes ahead, and is counted", async () => {
  const ids = ["c-1", "c-2", "c-3"];
  for (const id of ids) await addWholeRack(database.db, id, 1);
  await startEngine({ maintenanceAtOnce: 1 });
  await untilAll(ids, ["ready", "ready", "ready"]);
  hold(...ids);
  await reprovisionRack(deps, tester, { rackId: "c-1" });
  await until("c-1", "maintenance");
  await reprovisionRack(deps, tester, { rackId: "c-3" });
  await until("c-3", "maintenance_limit");
  await start("c-2");
  await until("c-2", "maintenance");
  release("c-1");
  await until("c-1", "ready");
  // The one that was asked for has its place: the other goes on waiting, although it was woken.
  await eventually(async () => (await passesOf("c-3")) > 0, { what: "c-3 has looked again" });
  expect(await statesOf(["c-3"])).toEqual(["maintenance_limit"]);
  // Asked for by name itself, it goes ahead of its own reprovision, which stays.
  const { requestId } = await start("c-3");
  await until("c-3", "maintenance");
  expect(await rack("c-3")).toMatchObject({
    state: { trigger: "on_demand", request: { id: requestId } },
    maintenanceRequest: { id: requestId },
  });
  expect((await rack("c-3")).reprovisionRequest).not.toBeNull();
  release(...ids);
  await eventually(
    async () => {
      const { state, reprovisionRequest } = await rack("c-3");
      return state.name === "ready" && reprovisionRequest === null;
    },
    { what: "its reprovision follows" },
  );
  expect(await rack("c-3")).toMatchObject({
    lastMaintenanceRequest: { id: requestId, outcome: "completed" },
    lastReprovisionRequest: { outcome: "completed" },
  });
});

/** Rests after a pass: the lease is given back, and the next look is due later. */
const passesOf = async (id: string): Promise<number> => {
  const [row] = await database.db.query<{ rests: number }>(
    `select count(*)::int as rests from work where kind = 'rack' and id = $1 and lease_owner is null and wake_at > now() + interval '5 seconds'`,
    [id],
  );
  return row?.rests ?? 0;
};

test("after too many failures none begins by itself, until an operator lets it; what is asked for still does", async () => {
  await addFailingRack("d-1");
  await addFailingRack("d-2");
  const warned: string[] = [];
  const log = { ...silentLog, warn: (_: object, message: string) => void warned.push(message) };
  const logged = openDatabase(database.url, { log, applicationName: "test" });
  running.push({ stop: () => logged.close() });
  await startEngine({ stopAfterFailures: 2 }, { db: logged });
  await untilAll(["d-1", "d-2"], ["error", "error"]);
  await addWholeRack(database.db, "d-3", 1);
  await until("d-3", "maintenance_stopped");
  await addWholeRack(database.db, "d-4", 1);
  await until("d-4", "maintenance_stopped");
  expect((await rack("d-3")).outcome?.reason).toBe(
    "maintenance does not begin by itself: it failed on racks d-1, d-2, and rack.stop_after_failures is 2",
  );
  const explanation = await explainRack(deps, "d-3");
  expect(explanation.nextCommands.map(({ command }) => command).slice(0, 2)).toEqual([
    "millwright explain rack d-1",
    "millwright rack maintenance resume",
  ]);
  // A retry that fails again is no further failure of its own, and one that is under way mends nothing yet.
  await start("d-1");
  await eventually(async () => (await rack("d-1")).lastMaintenanceRequest?.outcome === "failed", {
    what: "the retry has failed",
  });
  expect(await statesOf(["d-3"])).toEqual(["maintenance_stopped"]);
  expect(await resumeRackMaintenance(deps, tester)).toEqual({ overlooked: ["d-1", "d-2"], waiting: ["d-3", "d-4"] });
  await untilAll(["d-3", "d-4"], ["ready", "ready"]);
  const [entry] = await database.db.query<{ actor: string }>(
    "select actor from journal where kind = 'rack' and id = 'd-1' and owner = 'caller' and type = 'transition' order by epoch desc, xid desc, seq desc limit 1",
  );
  expect(entry?.actor, "who let it go on is on record").toBe("tester");
  expect(
    warned.filter((line) => line.startsWith("maintenance of racks has failed too often")),
    "one line for the site",
  ).toHaveLength(1);
});

test("a failure counts no more once the rack is ready, or its error was cleared", async () => {
  await addFailingRack("e-1");
  await addFailingRack("e-2");
  await startEngine({ stopAfterFailures: 2 });
  await untilAll(["e-1", "e-2"], ["error", "error"]);
  await addWholeRack(database.db, "e-3", 1);
  await until("e-3", "maintenance_stopped");
  await setWatts("e-1", null);
  await start("e-1");
  await untilAll(["e-1", "e-3"], ["ready", "ready"]);
  await addFailingRack("e-4");
  await until("e-4", "error");
  await addWholeRack(database.db, "e-5", 1);
  await until("e-5", "maintenance_stopped");
  await setWatts("e-4", null);
  await clearRackError(deps, tester, "e-4");
  await untilAll(["e-4", "e-5"], ["ready", "ready"]);
});
