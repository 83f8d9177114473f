import { afterAll, beforeAll, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { Forge } from "../../../contract/forge/forge_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { forgetOld } from "../../../src/engine/retention.ts";
import { JournalTail } from "../../../src/engine/watch.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { createPlan } from "../../../src/services/run/plans.ts";
import { removeOldEntries } from "../../../src/store/lifecycle/journal-retention.ts";
import { eventually } from "../../support/eventually.ts";
import { sealJournal, testSealKey } from "../../support/journal/sealed-journal.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";

/** The retention that the server has unless told. */
const A_YEAR = hours(365 * 24);

let bench: RunSurface;
beforeAll(async () => {
  bench = await startRunSurface({ controller: true });
});
afterAll(() => bench.close());

/** Time goes by: everything in the journal is so many days older, as on a server that has run for as long. */
const age = (days: number) => bench.db.execute("update journal set at = at - $1 * interval '1 day'", [days]);
const keptFor = { retention: A_YEAR, refusalsKept: A_YEAR, sealKey: testSealKey };
async function forget(): Promise<void> {
  await sealJournal(bench.db);
  await forgetOld({ db: bench.db, log: silentLog, ...keptFor }, new AbortController().signal);
}
const historyOf = (kind: string, id: string) =>
  bench.client(HistoryService).listHistory({ kind, id, newestFirst: true, pageSize: 1_000 });
const typesOf = async (kind: string, id: string) => (await historyOf(kind, id)).events.map(({ type }) => type);

/** Nobody answers at its BMC: it gets as far as its controller alone can take it. */
async function addShelf(id: string, mac: string): Promise<void> {
  await bench
    .client(PowerShelfService)
    .createPowerShelf({ id, bmcMac: mac, bmcEndpoint: "192.0.2.1", bmcUsername: "root", bmcPassword: "secret" });
  await eventually(async () => (await typesOf("power_shelf", id)).includes("transition"), { what: `${id} has moved` });
}

test("a shelf that nobody touched for a year says how it came to its state, and what is missing before that", async () => {
  await addShelf("quiet", "02:0e:00:00:00:01");
  const before = await historyOf("power_shelf", "quiet");
  expect(before.removedEntries).toBe(0n);
  const last = before.events.find(({ type }) => type === "transition");
  await age(400);
  await forget();
  const after = await historyOf("power_shelf", "quiet");
  expect(after.events.map(({ cursor }) => cursor)).toContain(last?.cursor);
  const isOld = ({ at }: (typeof after.events)[number]) => Number(at?.seconds) < Date.now() / 1_000 - 399 * 86_400;
  expect(after.events.filter(isOld).length).toBeLessThanOrEqual(2); // the last change of state, and perhaps the last entry
  expect(Number(after.removedEntries)).toBeGreaterThan(0);
  expect(Number(after.removedUntil?.seconds)).toBeLessThan(Date.now() / 1_000 - 399 * 86_400);
  const { histories } = await bench.client(Forge).findPowerShelfStateHistories({ powerShelfIds: [{ id: "quiet" }] });
  expect(histories.quiet?.records.map(({ state }) => state)).toEqual([expect.stringContaining("fetchingdata")]);
  const unfiltered = await bench
    .client(HistoryService)
    .listHistory({ kind: "power_shelf", id: "quiet", types: ["created"] });
  expect(unfiltered).toMatchObject({ events: [], removedEntries: after.removedEntries });
});

test("a run that goes on keeps everything; once it has ended, it keeps its end", async () => {
  await createPlan(bench.deps, tester, {
    planId: "plan-silent",
    displayName: "silent",
    steps: [{ name: "reboot", kind: "reboot", payload: { mode: "bmc" }, timeoutSeconds: 7_200, maxRetries: 5 }],
  });
  const machineId = await bench.addMachine("silent");
  await bench.lifecycle.acceptMachine({ machineId });
  const { runId } = await bench.runs.startRun({ requestId: "r", machineId, planId: "plan-silent" });
  await eventually(async () => (await bench.runs.getRun({ runId })).phase === Run_Phase.RUNNING, { what: "it runs" });
  await age(400);
  const living = (await typesOf("run", runId)).filter((type) => type === "created" || type === "transition");
  await forget();
  expect((await typesOf("run", runId)).filter((type) => type === "created" || type === "transition")).toEqual(living);
  expect((await historyOf("run", runId)).removedEntries).toBe(0n);

  await bench.runs.cancelRun({ runId });
  await bench.ended(runId);
  await forget();
  const whole = (await typesOf("run", runId)).length;
  expect(whole).toBeGreaterThan(living.length); // its end is young, and so nothing of it was touched
  await age(400);
  await forget();
  const { events, removedEntries } = await historyOf("run", runId);
  expect(events.filter(({ type }) => type === "transition").map(({ toState }) => toState)).toEqual(["CANCELED"]);
  expect(Number(removedEntries)).toBe(whole - events.length);
});

test("a thing that was removed has its end on record, and goes on counting when it comes again", async () => {
  await addShelf("again", "02:0e:00:00:00:02");
  await bench.db.execute("update power_shelves set state = 'error' where id = 'again'");
  await bench.client(Forge).deletePowerShelf({ id: { id: "again" } });
  await eventually(async () => (await bench.db.query("select 1 from power_shelves where id = 'again'")).length === 0, {
    what: "it is gone",
  });
  await age(400);
  await forget();
  const [last] = (await historyOf("power_shelf", "again")).events;
  expect(last).toMatchObject({ toState: "", fromState: "deleting" });
  await addShelf("again", "02:0e:00:00:00:02");
  const [oldest] = (await historyOf("power_shelf", "again")).events.filter(({ type }) => type === "created");
  expect(oldest?.version).toBeGreaterThan(last?.version ?? 0n);
});

/** Of each of so many things: created, moved twice, and seen once more. */
const writeEntries = (prefix: string, things: number, version = 0) =>
  bench.db.execute(
    `insert into journal (epoch, kind, id, version, type, from_state, to_state, actor)
     select e.epoch, 'machine', $1 || n, $3 + v,
            case v when 1 then 'created' when 4 then 'facts_changed' else 'transition' end, 'A', 'B', 'test'
       from journal_epoch e, generate_series(1, $2::int) as n, generate_series(1, 4) as v order by n, v`,
    [prefix, things, version],
  );
const kept = async (prefix: string) =>
  (
    await bench.db.query<{ versions: string; things: number }>(
      `select versions, count(*) as things from (
         select id, string_agg(version::text, ' ' order by version) as versions from journal where id like $1 || '%' group by id) as t
        group by versions order by versions`,
      [prefix],
    )
  ).map(({ versions, things }) => `${things} have ${versions}`);

test("a journal of a year is worked through once, past all that is kept; another round examines nothing", async () => {
  await writeEntries("fleet-", 3_000); // more than one bite
  await age(400);
  await forget();
  expect(await kept("fleet-")).toEqual(["3000 have 3 4"]);
  expect(await removeOldEntries(bench.db, { retention: A_YEAR, most: 5_000, sealKey: testSealKey })).toEqual({
    examined: 0,
    removed: 0,
  });

  await writeEntries("fleet-", 1, 4); // fleet-1 moved on, and that is long ago as well
  await age(400);
  await writeEntries("fleet-", 2, 8); // and two of them did just now
  await forget();
  expect(await kept("fleet-")).toEqual(["2998 have 3 4", "1 have 3 4 9 10 11 12", "1 have 9 10 11 12"]);
});

test("two replicas at once remove and count every entry once", async () => {
  await writeEntries("twice-", 2_000);
  await age(400);
  await Promise.all([forget(), forget(), forget()]);
  await forget(); // those that gave way to the first one did nothing
  expect(await kept("twice-")).toEqual(["2000 have 3 4"]);
  const counted = await bench.db.query(
    "select entries, count(*) as things from journal_removals where id like 'twice-%' group by entries",
  );
  expect(counted).toEqual([{ entries: 2, things: 2_000 }]);
});

test("a watch from the oldest event begins where none is missing, and is not refused on the way", async () => {
  await writeEntries("gap-", 150);
  await age(400);
  await forget();
  await writeEntries("whole-", 60);
  const stop = new AbortController();
  const tail = new JournalTail({ db: bench.db, log: silentLog });
  const running = tail.run(stop.signal);
  const seen: string[] = [];
  for await (const item of tail.follow("oldest", { kinds: ["machine"] }, stop.signal)) {
    if (item.type === "event") seen.push(item.row.id);
    if (seen.filter((id) => id.startsWith("whole-")).length === 240) break;
  }
  stop.abort();
  await running;
  expect(seen.filter((id) => /^(gap|fleet|twice)-/.test(id))).toEqual(["gap-150", "gap-150"]); // after the last that is missing
});
