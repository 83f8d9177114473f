import { describe, expect, test, vi } from "vitest";
import { acquire, releaseAll } from "../../src/store/lifecycle/claims/claims.ts";
import { announce } from "../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../src/store/lifecycle/locks.ts";
import { wake } from "../../src/store/lifecycle/work.ts";
import { addChore, addCrate, createCrateTables, requestCrateWork } from "../support/crate.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { letLeasesEnd } from "../support/processes/killed-servers.ts";
import { openProcessBench, type ProcessBench, type StartedProcess } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";
import { createWidgetTable, widgetKey } from "../support/widget.ts";

/**
 * Kill -9 while sets of claims are taken, awaited, handed on and released: no set is ever half held, and whoever comes next gives
 * every one of them its turn. The crates' sets overlap, and a chore works on one widget for its crate.
 */
const CRATES = { c1: ["w1", "w2", "w3"], c2: ["w3", "w4"], c3: ["w4", "w1"], c4: ["w5"], c5: ["w5", "w2"] } as const;

// biome-ignore format: read as a list
const FAIL_POINTS = [
  "claims:wished:widget", "claims:wished:widget@2", "claims:wished:widget@3",
  "claims:granted:widget", "claims:granted:widget@2", "claims:granted:widget@3",
  "claims:released:crate", "claims:released:crate@2", "claims:released:crate@3", "claims:released:chore",
  "transitions:locked:crate:ready", "transitions:journaled:crate:ready", "transitions:journaled:crate:ready@2",
  "transitions:journaled:crate:checking", "committer:inside:crate:ready", "committer:inside:crate:checking",
  "committer:after:crate:ready", "committer:after:crate:checking",
];

let bench: ProcessBench;
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

const start = ({ url }: TestDatabase, failPoint = "") =>
  startProgram(bench, { program: "crate-process.ts", args: [url], env: { MILLWRIGHT_FAILPOINT: failPoint } });

const WIDGETS = ["w1", "w2", "w3", "w4", "w5"].map(widgetKey);
const claimant = { kind: "run", id: "first" };

/** Whatever the process is killed at, everybody has asked by then: so that every claim is waited for, and handed on. */
async function releaseOnceAllWait({ db }: TestDatabase, victim: StartedProcess): Promise<void> {
  await vi.waitFor(
    async () => {
      const waiting = await db.query("select distinct holder_kind, holder_id from claims where granted_at is null");
      if (!victim.hasExited()) expect(waiting).toHaveLength(Object.keys(CRATES).length + 2);
    },
    { timeout: 50_000, interval: 20 },
  );
  await db.transaction(async (tx) => {
    await lockThings(tx, WIDGETS);
    await wake(tx, await releaseAll(tx, [claimant]));
    await announce(tx);
  });
}

/** Sets of which a part is held, or that have more than one ticket, and things with more than one holder. */
const HALF_HELD = `
  select holder_id from claims group by holder_kind, holder_id
  having count(distinct coalesce(granted_at, joined_at) is null) > 1 or count(distinct ticket) > 1 or count(*) <> min(set_size)
  union all
  select thing_id from claims where coalesce(granted_at, joined_at) is not null group by thing_kind, thing_id
  having count(distinct coalesce(behalf_id, holder_id)) > 1`;

describe("a process killed at", { concurrent: true }, () => {
  test.for(FAIL_POINTS)(
    "%s leaves no set half held, and every set gets its turn",
    async (failPoint, { onTestFinished }) => {
      const database = await createTestDatabase();
      onTestFinished(database.drop);
      const { db } = database;
      await db.transaction((tx) =>
        acquire(tx, [{ targets: WIDGETS, claimant, holder: claimant, reason: "everything" }]),
      );
      await createWidgetTable(db);
      await createCrateTables(db);
      for (const [id, parts] of Object.entries(CRATES)) await addCrate(db, id, parts);
      await requestCrateWork(db, ...Object.keys(CRATES));
      for (const [id, part, crate] of [
        ["ours", "w1", "c1"],
        ["other", "w3", null],
      ] as const)
        await addChore(db, id, part, crate);

      const victim = await start(database, failPoint);
      await releaseOnceAllWait(database, victim);
      expect(await victim.exited, victim.transcript()).toEqual({ code: null, signal: "SIGKILL" });
      expect(await db.query(HALF_HELD)).toEqual([]);
      await letLeasesEnd(database);

      const successor = await start(database);
      await vi.waitFor(
        async () => {
          const states = await db.query("select id, state, work_requested from crates order by id");
          expect(states).toEqual(Object.keys(CRATES).map((id) => ({ id, state: "ready", work_requested: null })));
          expect(await db.query("select distinct state from chores")).toEqual([{ state: "done" }]);
          expect(await db.query("select * from claims")).toEqual([]);
        },
        { timeout: 50_000, interval: 100 },
      );
      successor.signal("SIGTERM");
      expect(await successor.exited, successor.transcript()).toEqual({ code: 0, signal: null });
      const done = await db.query("select 1 from crates where last_work_request ->> 'outcome' = 'completed'");
      expect(done).toHaveLength(Object.keys(CRATES).length);
    },
  );
});
