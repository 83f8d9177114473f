// @module-tag race
import { afterEach, describe, expect, test } from "vitest";
import { milliseconds, seconds } from "../../../src/kernel/time/duration.ts";
import * as checks from "../../../src/store/machine/condition-checks.ts";
import type { Queryable, Statement } from "../../../src/store/postgres/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Machines that are due. */
async function insertMachines({ db }: TestDatabase, count: number): Promise<void> {
  await db.query(
    `insert into machines (id, provider, state) select 'm-' || n, 'datacenter', 'READY' from generate_series(1, $1) n`,
    [count],
  );
  await db.query("update condition_looks set due_at = now()");
}
const claim = ({ db }: TestDatabase, owner: string, limit = 10, leaseFor = seconds(30)) =>
  checks.claimChecks(db, { owner, limit, leaseFor });
const hours = 3_600_000;

describe("checks", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.db.query("delete from machines"));
  afterAll(() => database.drop());

  test("a machine that is registered falls due within seconds, and one that is retired is not checked again", async () => {
    await database.db.query("insert into machines (id, provider, state) values ('m-1', 'datacenter', 'READY')");
    const soon = "select machine_id from condition_looks where due_at between now() and now() + interval '3 s'";
    expect(await database.db.query(soon)).toEqual([{ machine_id: "m-1" }]);
    await database.db.query("update machines set state = 'RETIRED' where id = 'm-1'");
    expect(await database.db.query("select * from condition_looks")).toEqual([]);
  });

  test("two replicas that claim at once share the machines, and none goes to both", async () => {
    await insertMachines(database, 200);
    const claimed = (await Promise.all(["a", "b", "c", "d"].map((owner) => claim(database, owner, 50)))).flat();
    const ids = claimed.map(({ machineId }) => machineId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(await claim(database, "e", 500)).toHaveLength(200 - ids.length);
  });

  test("what a dead replica held falls due by itself when its lease ends, with a higher epoch", async () => {
    await insertMachines(database, 1);
    const [first] = await claim(database, "a", 1, milliseconds(0));
    const [second] = await claim(database, "b");
    expect(second).toMatchObject({ machineId: "m-1", epoch: (first?.epoch ?? 0) + 1 });
    expect(await claim(database, "c")).toEqual([]);
  });

  test("whoever was overtaken gives nothing back, and knows that it was", async () => {
    await insertMachines(database, 1);
    const [late] = await claim(database, "a", 1, milliseconds(0));
    const [current] = await claim(database, "b");
    if (!late || !current) throw new Error("nothing was claimed");
    await checks.releaseChecks(database.db, [
      { ...late, misses: { Reachable: 1 }, after: milliseconds(0), checked: true },
    ]);
    expect(await claim(database, "c")).toEqual([]);
    expect(await checks.heldChecks(database.db, [late])).toEqual(new Set());
    expect(await checks.heldChecks(database.db, [current])).toEqual(new Set(["m-1"]));
  });

  test("what was handed back comes again when it was said, with its misses", async () => {
    await insertMachines(database, 2);
    const [one, two] = await claim(database, "a");
    if (!one || !two) throw new Error("nothing was claimed");
    const common = { misses: { BMCReachable: 1 }, checked: true } as const;
    await checks.releaseChecks(database.db, [
      { ...one, ...common, after: milliseconds(0) },
      { ...two, ...common, after: milliseconds(hours) },
    ]);
    expect(await claim(database, "a")).toEqual([{ ...one, epoch: one.epoch + 1, misses: { BMCReachable: 1 } }]);
  });

  test("a machine that changes is checked soon, unless somebody checks already", async () => {
    await insertMachines(database, 1);
    const [check] = await claim(database, "a");
    if (!check) throw new Error("nothing was claimed");
    await database.db.query("update machines set state = 'MAINTENANCE' where id = 'm-1'");
    expect(await claim(database, "b")).toEqual([]);
    await checks.releaseChecks(database.db, [{ ...check, after: milliseconds(hours), checked: true }]);
    await database.db.query("update machines set labels = '{\"a\": \"b\"}' where id = 'm-1'");
    expect(await claim(database, "b")).toEqual([]);
    await database.db.query("update machines set bmc_endpoint = '10.0.0.9' where id = 'm-1'");
    expect(await claim(database, "b")).toHaveLength(1);
  });

  test("handing back never waits for somebody who has the row locked", async () => {
    await insertMachines(database, 1);
    const [check] = await claim(database, "a");
    if (!check) throw new Error("nothing was claimed");
    await database.db.transaction(async (tx) => {
      await tx.query("select * from condition_looks where machine_id = 'm-1' for update");
      await checks.releaseChecks(database.db, [{ ...check, after: milliseconds(0), checked: true }]);
    });
    expect(await checks.heldChecks(database.db, [check])).toEqual(new Set(["m-1"]));
  });

  test("the lag is that of the machine that has waited longest", async () => {
    await insertMachines(database, 2);
    await database.db.query("update condition_looks set due_at = now() - interval '90 s' where machine_id = 'm-2'");
    expect((await checks.measureChecks(database.db)).lagSeconds).toBeGreaterThanOrEqual(90);
  });
});

describe("at 100,000 machines", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    await insertMachines(database, 100_000);
    await database.db.query("update condition_looks set due_at = now() + random() * interval '10 s' - interval '1 s'");
    await database.db.query("analyze");
  });
  afterAll(() => database.drop());

  async function plansOf(call: (db: Queryable) => Promise<unknown>): Promise<string> {
    const plans: string[] = [];
    const explain = async <Row extends object>(statement: string | Statement, values?: readonly unknown[]) => {
      const { text, values: own }: Statement = typeof statement === "string" ? { text: statement } : statement;
      const lines = await database.db.query<{ "QUERY PLAN": string }>(`explain ${text}`, values ?? own ?? []);
      plans.push(lines.map((line) => line["QUERY PLAN"]).join("\n"));
      return [] as Row[];
    };
    await call({ query: explain, execute: async (statement, values) => (await explain(statement, values)).length });
    return plans.join("\n\n");
  }

  const held = Array.from({ length: 200 }, (_, index) => ({ machineId: `m-${index * 7 + 1}`, epoch: 1, misses: {} }));

  test.each<[string, (db: Queryable) => Promise<unknown>]>([
    ["claiming", (db) => checks.claimChecks(db, { owner: "a", limit: 100, leaseFor: seconds(30) })],
    [
      "handing back",
      (db) =>
        checks.releaseChecks(
          db,
          held.map((one) => ({ ...one, after: seconds(10), checked: true })),
        ),
    ],
    ["asking what is still held", (db) => checks.heldChecks(db, held)],
    ["measuring the lag", (db) => checks.measureChecks(db)],
  ])("%s reads only what it needs", async (_, call) => {
    const plan = await plansOf(call);
    expect(plan).not.toMatch(/Seq Scan on condition_looks/);
    expect(plan).toMatch(/Index/);
  });

  test("the order of claims comes from the index, not from sorting everything that is due", async () => {
    const plan = await plansOf((db) => checks.claimChecks(db, { owner: "a", limit: 100, leaseFor: seconds(30) }));
    expect(plan).toMatch(/Index Scan using condition_looks_due/);
    expect(plan).not.toMatch(/Sort/);
  });
});
