import { beforeEach, describe, expect, test } from "vitest";
import { NOWHERE } from "../../../src/capabilities/credential-place.ts";
import { follow, followOrRefuse } from "../../../src/kernel/decide.ts";
import { type Effect, create as making, require as requiring } from "../../../src/kernel/effects.ts";
import type { AppError } from "../../../src/kernel/errors.ts";
import { expectedPowerShelfLifecycle } from "../../../src/lifecycles/expected-power-shelf/lifecycle.ts";
import { powerShelfLifecycle } from "../../../src/lifecycles/power-shelf/lifecycle.ts";
import type { ExpectedInput } from "../../../src/services/expected-device/input.ts";
import {
  addExpectedPowerShelf,
  deleteAllExpectedPowerShelves,
  deleteExpectedPowerShelf,
  replaceAllExpectedPowerShelves,
  updateExpectedPowerShelf,
} from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { setPowerShelfCredentials } from "../../../src/services/power-shelf/credentials.ts";
import {
  createPowerShelf,
  deletePowerShelf,
  forceDeletePowerShelf,
  setPowerShelfMaintenance,
} from "../../../src/services/power-shelf/power-shelves.ts";
import { bmcKey, putBmcCredentials } from "../../../src/store/device/bmc-credentials.ts";
import {
  type ExpectedPowerShelfRecord,
  listExpectedPowerShelves,
} from "../../../src/store/expected-power-shelf/expected-power-shelves.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import type { Database, Transaction } from "../../../src/store/postgres/database.ts";
import { listPowerShelves } from "../../../src/store/power-shelf/power-shelves.ts";
import { recordClaim } from "../../support/claims.ts";
import { storedBmcCredentials } from "../../support/credentials/stored-credentials.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { journalOf } from "../../support/shelf-records.ts";
import { type ForgeUnderTest, startForge } from "../api/forge-under-test.ts";

let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge();
});
afterAll(() => it.close());
beforeEach(() => it.db.query("truncate power_shelves, expected_power_shelves, secrets, work, journal, claims"));

const tester = { name: "ann", roles: ["admin"], address: null } as const;
const MAC = "02:00:00:00:00:01";
const expected = (change: Partial<ExpectedInput> = {}): ExpectedInput => ({
  bmcMac: MAC,
  bmcUsername: "root",
  bmcPassword: undefined,
  serial: "SN1",
  bmcEndpoint: "192.0.2.1:443",
  rackId: "rack-1",
  metadata: { name: "shelf one", description: "", labels: { row: "1" } },
  ...change,
});
const rowOf = async (mac = MAC): Promise<ExpectedPowerShelfRecord> => {
  const [row] = await listExpectedPowerShelves(it.db, { bmcMac: mac });
  if (!row) throw new Error(`there is no row for ${mac}`);
  return row;
};
const shelfOf = async (id: string) => (await listPowerShelves(it.db, { ids: [id] }))[0];
const passwordOf = async (mac = MAC) => {
  return (await storedBmcCredentials(it.db, it.deps.secrets, mac))?.password;
};
const add = (change: Partial<ExpectedInput> = {}) =>
  addExpectedPowerShelf(it.deps, tester, expected({ bmcPassword: "first", ...change }));
const update = (change: Partial<ExpectedInput>) => updateExpectedPowerShelf(it.deps, tester, expected(change));
const makeByHand = (id = "by-hand") =>
  createPowerShelf(it.deps, tester, {
    id,
    name: "",
    rackId: undefined,
    bmcEndpoint: "192.0.2.1",
    bmcMac: MAC,
    bmcUsername: "root",
    bmcPassword: "first",
    bmcScheme: "",
    trust: "pin",
    requestId: undefined,
  });
/** What the explorer writes once it knows the shelf; without `tx` as its own transaction. */
const linkUnit = (row: ExpectedPowerShelfRecord, id: string, effects: readonly Effect[]) => {
  const move = follow(expectedPowerShelfLifecycle, row, { owner: "handler", name: "identified" });
  if (!move) throw new Error("the row is not being explored");
  const facts = { explored: "linked", powerShelfId: id };
  return { kind: "expected_power_shelf", thing: row, move, facts, effects, actor: "explorer" } as const;
};
const shelfRow = { name: "found", bmc_mac: MAC, bmc_address: "192.0.2.1", bmc_port: 443, rack_id: "rack-1" };
const explore = async () => {
  const row = await rowOf();
  const made = making(powerShelfLifecycle, "found", shelfRow, { mustBeNew: true });
  await it.db.transaction((tx) => commitUnits(tx, it.deps.stores, [linkUnit(row, "found", [made])]));
};
const typesOf = async (id: string) => (await journalOf(it, id)).map(({ type }) => type);
const entryOf = async (id: string, type: string) => (await journalOf(it, id)).findLast((entry) => entry.type === type);
const isDue = async (id: string) =>
  (await it.db.query("select 1 from work where id = $1 and wake_at <= now()", [id])).length === 1;
const letSleep = () => it.db.execute("update work set wake_at = 'infinity'");
/** Until another session waits for a lock of ours. */
const untilBlocked = () =>
  eventually(
    async () =>
      (
        await it.db.query(
          "select 1 from pg_locks l join pg_stat_activity a using (pid) where l.locktype = 'advisory' and not l.granted and a.datname = current_database()",
        )
      ).length > 0 || undefined,
    { what: "a call that waits for the lock", within: 10_000, seen: () => "nobody waits" },
  );

/** Somebody who changes the inventory, until told to end. */
async function holdWholeSet(): Promise<{ release(): Promise<void> }> {
  const [locked, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = it.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "expected_power_shelf", id: "*" }]);
    locked.resolve();
    await end.promise;
  });
  await locked.promise;
  return {
    async release() {
      end.resolve();
      await holding;
    },
  };
}

describe("rows that callers add at the same moment", () => {
  const macs = Array.from({ length: 20 }, (_, n) => `02:00:00:00:01:${String(n + 10)}`);
  const transactions = async () =>
    (await it.db.query("select distinct xid from journal where kind = 'expected_power_shelf' and type = 'created'"))
      .length;
  /** The first call waits for a lock, so that all others come while it is under way. */
  const together = async (calls: () => readonly Promise<unknown>[]) => {
    const held = await holdWholeSet();
    const first = add({ bmcMac: "02:00:00:00:00:99", serial: "SN99" });
    await untilBlocked();
    const all = Promise.allSettled(calls());
    await held.release();
    await first;
    return (await all).map((one) => (one.status === "fulfilled" ? "added" : (one.reason as AppError).kind));
  };

  test("are written together", async () => {
    const results = await together(() =>
      macs.map((bmcMac, n) => add({ bmcMac, serial: `S${n}`, rackId: `rack-${n % 3}` })),
    );
    expect(results).toEqual(macs.map(() => "added"));
    expect(await transactions()).toBe(2);
    expect(await passwordOf(macs[19])).toBe("first");
    expect(await isDue((await rowOf(macs[19])).id)).toBe(true);
  });

  test("do not keep each other from it: what is refused is refused to its caller alone", async () => {
    await add({ bmcMac: macs[7] ?? "" });
    const ben = { ...tester, name: "ben" };
    const results = await together(() => [
      ...macs.slice(0, 10).map((bmcMac, n) => add({ bmcMac, serial: `S${n}` })),
      add({ bmcMac: macs[3] ?? "", serial: "again" }),
      addExpectedPowerShelf(it.deps, tester, expected({ bmcMac: macs[11] ?? "" })),
      addExpectedPowerShelf(it.deps, ben, expected({ bmcMac: macs[12] ?? "", bmcPassword: "first" })),
    ]);
    const asked = macs.slice(0, 10).map((_, n) => (n === 7 ? "already_exists" : "added"));
    expect(results).toEqual([...asked, "already_exists", "invalid_argument", "added"]);
    expect((await rowOf(macs[3])).serial).toBe("S3");
    expect(await entryOf((await rowOf(macs[12])).id, "created")).toMatchObject({ actor: "ben" });
    expect(await entryOf((await rowOf(macs[2])).id, "created")).toMatchObject({ actor: "ann" });
  });
});

describe("a row that retains credentials", () => {
  test("leaves those on record as they are, whatever user name and password it comes with", async () => {
    await makeByHand();
    await setPowerShelfCredentials(it.deps, tester, { id: "by-hand", bmcUsername: "ops", bmcPassword: "changed" });
    await add({ bmcPassword: "factory", retainCredentials: true });
    expect(await passwordOf()).toBe("changed");
    expect(await rowOf()).toMatchObject({ bmcUsername: "ops", retainCredentials: true });
    await update({ bmcPassword: "factory", retainCredentials: true });
    await replaceAllExpectedPowerShelves(it.deps, tester, [
      expected({ bmcPassword: "factory", retainCredentials: true }),
    ]);
    expect(await passwordOf()).toBe("changed");
    expect((await typesOf("by-hand")).filter((type) => type === "credentials_changed")).toHaveLength(1);
    await update({ bmcPassword: "factory" });
    expect(await passwordOf()).toBe("factory");
  });

  test("gives its own where none are on record", async () => {
    await add({ bmcPassword: "factory", retainCredentials: true });
    expect(await passwordOf()).toBe("factory");
  });
});

describe("new credentials of a row", () => {
  test("have its shelf tried with them at once, and both tell so without the values", async () => {
    await add();
    await explore();
    await letSleep();
    await update({ bmcPassword: "c4nary" });
    expect(await passwordOf()).toBe("c4nary");
    expect(await isDue("found")).toBe(true);
    expect(await typesOf("found")).toEqual(["created", "credentials_changed"]);
    expect((await entryOf((await rowOf()).id, "updated"))?.data).toEqual({ changed: {}, credentials_changed: true });
    expect(JSON.stringify(await it.db.query("select * from journal"))).not.toContain("c4nary");
  });

  test("that are not given leave the shelf alone", async () => {
    await add();
    await explore();
    await letSleep();
    await update({ serial: "SN2" });
    expect(await isDue("found")).toBe(false);
    expect(await typesOf("found")).toEqual(["created"]);
  });

  test("become those of a shelf that is on record with the same BMC", async () => {
    await makeByHand();
    await letSleep();
    await add({ bmcPassword: "second" });
    expect(await typesOf("by-hand")).toEqual(["created", "credentials_changed"]);
    expect(await isDue("by-hand")).toBe(true);
  });
});

describe("credentials of a shelf", () => {
  test("are replaced for it and for the row of the same BMC, and tried at once", async () => {
    await makeByHand();
    await add();
    await letSleep();
    await setPowerShelfCredentials(it.deps, tester, { id: "by-hand", bmcUsername: "admin", bmcPassword: "second" });
    expect(await passwordOf()).toBe("second");
    const row = await rowOf();
    expect(row.bmcUsername).toBe("admin");
    expect(await isDue("by-hand")).toBe(true);
    expect(await isDue(row.id)).toBe(true);
    expect(await entryOf("by-hand", "credentials_changed")).toMatchObject({ actor: "ann", data: {} });
    expect(await entryOf(row.id, "credentials_changed")).toMatchObject({ actor: "ann", data: {} });
  });
});

test("an update tells which fields changed, from what to what", async () => {
  await add();
  await update({ serial: "SN2", bmcEndpoint: "192.0.2.9:8443", metadata: { ...expected().metadata, labels: {} } });
  expect((await entryOf((await rowOf()).id, "updated"))?.data).toEqual({
    changed: {
      shelf_serial_number: { from: "SN1", to: "SN2" },
      bmc_address: { from: "192.0.2.1", to: "192.0.2.9" },
      bmc_port: { from: 443, to: 8443 },
      labels: { from: { row: "1" }, to: {} },
    },
  });
});

describe("while the explorer is at work", () => {
  /** Has the call wait for the row's lock, explores meanwhile, and lets it go on. */
  async function overtake(call: () => Promise<void>): Promise<void> {
    const row = await rowOf();
    const made = making(powerShelfLifecycle, "found", shelfRow, { mustBeNew: true });
    let called = Promise.resolve();
    await it.db.transaction(async (tx) => {
      await lockThings(tx, [
        { kind: "expected_power_shelf", id: row.id },
        { kind: "power_shelf", id: "found" },
      ]);
      called = call();
      await untilBlocked();
      await commitUnits(tx, it.deps.stores, [linkUnit(row, "found", [made])]);
    });
    await called;
  }

  test("an update reaches the shelf that was made just before it", async () => {
    await add();
    await overtake(() => update({ bmcEndpoint: "192.0.2.9:8443" }));
    expect((await shelfOf("found"))?.bmc).toMatchObject({ address: "192.0.2.9", port: 8443 });
  });

  test("so does a replacement of all rows", async () => {
    await add();
    await overtake(() =>
      replaceAllExpectedPowerShelves(it.deps, tester, [expected({ bmcEndpoint: "192.0.2.9:8443" })]),
    );
    expect((await shelfOf("found"))?.bmc).toMatchObject({ address: "192.0.2.9", port: 8443 });
  });

  test.each<[string, () => Promise<unknown>]>([
    ["is gone", () => forceDeletePowerShelf(it.deps, tester, "by-hand")],
    ["is marked for deletion", () => it.db.execute("update power_shelves set deleted_at = now()")],
  ])("a row is not linked to a shelf that %s by then", async (_, vanish) => {
    await makeByHand();
    await add();
    const row = await rowOf();
    await vanish();
    const unit = linkUnit(row, "by-hand", [requiring(powerShelfLifecycle, "by-hand", { notDeleted: true })]);
    const results = await it.db.transaction((tx) => commitUnits(tx, it.deps.stores, [unit]));
    expect(results).toEqual([{ type: "conflict" }]);
    expect((await rowOf()).state.name).toBe("exploring");
  });

  test("a row is linked to a shelf that is there", async () => {
    await makeByHand();
    await add();
    const require = requiring(powerShelfLifecycle, "by-hand", { notDeleted: true });
    const unit = linkUnit(await rowOf(), "by-hand", [require]);
    await it.db.transaction((tx) => commitUnits(tx, it.deps.stores, [unit]));
    expect((await shelfOf("by-hand"))?.expectedId).toBe((await rowOf()).id);
  });
});

describe("credentials that two things share", () => {
  /** Somebody makes a shelf for the BMC, and has not committed when the call comes. */
  async function whileAShelfIsMade(call: () => Promise<unknown>): Promise<void> {
    let called: Promise<unknown> = Promise.resolve();
    await it.db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "power_shelf", id: "new" }, bmcKey(MAC)]);
      await create(tx, storeOf(it.deps.stores, "power_shelf"), { id: "new", row: shelfRow, actor: "test" });
      await putBmcCredentials(tx, it.deps.secrets, { mac: MAC, place: NOWHERE, username: "root", password: "new" });
      called = call();
      await untilBlocked();
    });
    await called;
  }

  test.each<[string, () => Promise<void>]>([
    ["the row is deleted", () => deleteExpectedPowerShelf(it.deps, tester, { bmcMac: MAC })],
    ["all rows are deleted", () => deleteAllExpectedPowerShelves(it.deps, tester)],
    ["all rows are replaced", () => replaceAllExpectedPowerShelves(it.deps, tester, [])],
  ])("stay when %s while a shelf is made", async (_, call) => {
    await add();
    await whileAShelfIsMade(call);
    expect(await passwordOf()).toBe("new");
    expect(await listExpectedPowerShelves(it.db)).toEqual([]);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["by force", () => forceDeletePowerShelf(it.deps, tester, "by-hand")],
    [
      "by the controller",
      async () => {
        const thing = await shelfOf("by-hand");
        if (!thing) throw new Error("there is no shelf");
        const gone = { ...thing, state: { name: "deleting" } };
        const move = followOrRefuse(powerShelfLifecycle, thing, { owner: "caller", name: "force_delete" });
        await it.db.transaction((tx) =>
          commitUnits(tx, it.deps.stores, [{ kind: "power_shelf", thing: gone, move, actor: "controller" }]),
        );
      },
    ],
  ])("stay when the shelf is removed %s while a row is added", async (_, call) => {
    await makeByHand();
    let called: Promise<unknown> = Promise.resolve();
    await it.db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "expected_power_shelf", id: "row" }, bmcKey(MAC)]);
      const row = { bmc_mac: MAC, bmc_username: "root", shelf_serial_number: "SN1" };
      await create(tx, storeOf(it.deps.stores, "expected_power_shelf"), { id: "row", row, actor: "test" });
      called = call();
      await untilBlocked();
    });
    await called;
    expect(await listPowerShelves(it.db)).toEqual([]);
    expect(await passwordOf()).toBe("first");
  });

  test("go with the last of them, whichever it is", async () => {
    await makeByHand();
    await add();
    await deleteExpectedPowerShelf(it.deps, tester, { bmcMac: MAC });
    expect(await passwordOf()).toBe("first");
    await forceDeletePowerShelf(it.deps, tester, "by-hand");
    expect(await passwordOf()).toBeUndefined();
  });
});

describe("a shelf that another works on", () => {
  const hold = () =>
    recordClaim(it.db, { kind: "power_shelf", id: "found" }, { kind: "rack", id: "rack-1" }, "maintenance");

  test("stays in its rack, and the refusal names the holder; the rest of the row may change", async () => {
    await add();
    await explore();
    await hold();
    await expect(update({ rackId: "rack-2" })).rejects.toMatchObject({
      kind: "failed_precondition",
      message: expect.stringContaining(
        "power shelf found cannot be moved to another rack: rack rack-1 (maintenance) works on it",
      ),
    });
    expect((await rowOf()).rackId).toBe("rack-1");
    expect((await shelfOf("found"))?.rackId).toBe("rack-1");
    await update({ serial: "SN2" });
    expect((await rowOf()).serial).toBe("SN2");
  });

  test.each([
    ["address", "192.0.2.9:443"],
    ["port", "192.0.2.1:8443"],
  ])("keeps its BMC's %s: what works on it would go on at another device", async (_, bmcEndpoint) => {
    await add();
    await explore();
    await hold();
    await expect(update({ bmcEndpoint })).rejects.toMatchObject({
      kind: "failed_precondition",
      message: expect.stringContaining(
        "power shelf found cannot be moved to another address: rack rack-1 (maintenance) works on it",
      ),
      detail: { field: "bmc_ip_address" },
    });
    expect((await shelfOf("found"))?.bmc).toMatchObject({ address: "192.0.2.1", port: 443 });
    expect((await rowOf()).bmc).toMatchObject({ address: "192.0.2.1", port: 443 });
    await it.db.query("truncate claims");
    await update({ bmcEndpoint });
    const [address, port] = bmcEndpoint.split(":");
    expect((await shelfOf("found"))?.bmc).toMatchObject({ address, port: Number(port) });
  });

  test("is not deleted", async () => {
    await add();
    await explore();
    await hold();
    await expect(deletePowerShelf(it.deps, tester, "found")).rejects.toThrow("rack rack-1 (maintenance) works on it");
    expect((await shelfOf("found"))?.deletedAt).toBeNull();
  });
});

describe("a request on a shelf that is deleted", () => {
  const ask = (operation: "power_on" | "power_off") =>
    setPowerShelfMaintenance(it.deps, tester, { powerShelfIds: ["by-hand"], operation, reference: "MAINT-1" });

  test("ends as withdrawn, by whoever deletes the shelf", async () => {
    await makeByHand();
    await ask("power_off");
    await deletePowerShelf(it.deps, { ...tester, name: "bob" }, "by-hand");
    const shelf = await shelfOf("by-hand");
    expect(shelf?.maintenanceRequest).toBeNull();
    expect(shelf?.lastMaintenanceRequest).toMatchObject({
      operation: "power_off",
      initiator: "ann (MAINT-1)",
      outcome: "withdrawn",
      message: "withdrawn by bob",
    });
    expect(await entryOf("by-hand", "request_ended")).toMatchObject({
      actor: "bob",
      data: { operation: "power_off", outcome: "withdrawn" },
    });
  });

  test("ends in the last entry of a shelf that is removed by force", async () => {
    await makeByHand();
    await ask("power_on");
    await forceDeletePowerShelf(it.deps, { ...tester, name: "bob" }, "by-hand");
    expect((await entryOf("by-hand", "deleted"))?.data.ended).toMatchObject([
      {
        outcome: "withdrawn",
        message: "withdrawn by bob (force_delete)",
        request: { operation: "power_on", initiator: "ann (MAINT-1)" },
      },
    ]);
  });
});

describe("a large inventory", () => {
  const many = (count: number, change: Partial<ExpectedInput> = {}) =>
    Array.from({ length: count }, (_, at) =>
      expected({
        bmcMac: `02:00:00:00:${(at >> 8).toString(16).padStart(2, "0")}:${(at & 255).toString(16).padStart(2, "0")}`,
        bmcPassword: "p",
        ...change,
      }),
    );
  const replaceAll = (rows: readonly ExpectedInput[]) => replaceAllExpectedPowerShelves(it.deps, tester, rows);

  test("is replaced by up to 2000 rows in one call, and by no more", { timeout: 60_000 }, async () => {
    await expect(replaceAll(many(2_001))).rejects.toThrow("one call changes at most 2000");
    expect(await listExpectedPowerShelves(it.db)).toEqual([]);
    await replaceAll(many(2_000));
    await replaceAll(many(2_000, { rackId: "rack-2" }));
    const rows = await listExpectedPowerShelves(it.db, { rackId: "rack-2" });
    expect(rows).toHaveLength(2_000);
    await expect(replaceAll([expected({ bmcMac: "02:ff:00:00:00:01", bmcPassword: "p" })])).rejects.toMatchObject({
      kind: "invalid_argument",
      message: expect.stringContaining("2000 others would be removed"),
    });
    await add({ bmcMac: "02:ff:00:00:00:01" });
    await deleteAllExpectedPowerShelves(it.deps, tester);
    expect(await listExpectedPowerShelves(it.db)).toEqual([]);
    expect(await it.db.query("select name from secrets where name like 'bmc/%'")).toEqual([]);
  });

  test("takes a few statements for all rows, and one more for each password", async () => {
    let statements = 0;
    const counted = (tx: Transaction): Transaction => ({
      ...tx,
      query: <Row extends object>(...[statement, values]: Parameters<Transaction["query"]>) => {
        statements += 1;
        return tx.query<Row>(statement, values);
      },
    });
    const counting: Database = {
      ...it.db,
      transaction: (work) => it.db.transaction((tx) => work(counted(tx))),
    };
    const deps = { ...it.deps, db: counting };
    await replaceAllExpectedPowerShelves(deps, tester, many(100));
    await replaceAllExpectedPowerShelves(deps, tester, many(100, { rackId: "rack-2", bmcPassword: undefined }));
    await replaceAllExpectedPowerShelves(deps, tester, []);
    expect(statements).toBeLessThan(100);
  });
});
