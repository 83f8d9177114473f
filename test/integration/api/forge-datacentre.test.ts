import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { PowerShelfMaintenanceOperation as Operation } from "../../../contract/forge/forge_pb.js";
import { ExploreState } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { type Datacentre, startDatacentre } from "../../support/datacentre.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, type Surface, startSurface } from "./forge-under-test.ts";

/** A power change takes about this long: time enough to ask again while it goes on. */
const SLOW = 5;

let dc: Datacentre;
let it: Surface;
beforeAll(async () => {
  dc = await startDatacentre({ site: "racks=1" });
  it = await startSurface(dc.deps);
});
afterAll(async () => {
  await it.close();
  await dc.close();
});

interface Device {
  readonly id: string;
  readonly serial: string;
  readonly power: string;
  readonly effects: { readonly power_on_commands: number; readonly power_off_commands: number };
}

interface InventoryRow {
  readonly bmc_mac_address: string;
  readonly bmc_password: string;
}

const expectedRows = async () => (await it.shelves.listExpectedPowerShelves({})).expectedPowerShelves;
/** A row whose shelf is on record: all of them are, unless no test before this one has had the site explored. */
async function aLinkedRow() {
  if ((await expectedRows()).length === 0) await dc.expectAll();
  const linked = async () => (await expectedRows()).find(({ exploreState }) => exploreState === ExploreState.LINKED);
  await dc.until(async () => (await linked()) !== undefined);
  return (await linked()) ?? expect.unreachable();
}
const deviceOf = async (serial: string): Promise<Device> => {
  const found = (await dc.control<Device[]>("GET", "/devices")).find((device) => device.serial === serial);
  return dc.control<Device>("GET", `/devices/${found?.id}`);
};

describe("exploring", () => {
  test("each row says how finding its shelf goes: unreachable, wrong credentials, wrong serial, or linked", async () => {
    const [dead, locked, swapped] = await dc.control<Device[]>("GET", "/devices");
    for (const [device, fault] of [
      [dead, { type: "drop" }] as const,
      [locked, { type: "wrong_credentials" }] as const,
      [swapped, { type: "wrong_serial", serial: "SOMEBODY-ELSE" }] as const,
    ]) {
      await dc.control("POST", "/faults", { device: device?.id, fault });
    }
    await dc.expectAll();
    const byName = async () => new Map((await expectedRows()).map((row) => [row.name, row]));
    const stateOf = async (device: Device | undefined) => (await byName()).get(device?.id ?? "")?.exploreState;
    await dc.until(
      async () =>
        (await stateOf(dead)) === ExploreState.UNREACHABLE &&
        (await stateOf(locked)) === ExploreState.WRONG_CREDENTIALS &&
        (await stateOf(swapped)) === ExploreState.WRONG_SERIAL &&
        [...(await byName()).values()].filter((row) => row.exploreState === ExploreState.LINKED).length === 5,
    );
    const wrong = (await byName()).get(swapped?.id ?? "");
    expect(wrong?.exploreMessage).toContain("SOMEBODY-ELSE");
    expect(wrong?.exploreMessage).toContain(swapped?.serial);
    expect(wrong).toMatchObject({ powerShelfId: "", exploredAt: expect.anything(), nextExploreAt: expect.anything() });
    expect(await dc.shelves()).toHaveLength(5);
    const linked = (await it.forge.getAllExpectedPowerShelvesLinked({})).expectedPowerShelves;
    expect(linked.filter((row) => row.powerShelfId !== undefined)).toHaveLength(5);

    await dc.control("DELETE", "/faults");
    await dc.until(async () => (await stateOf(swapped)) === ExploreState.LINKED);
    await dc.until(async () => (await stateOf(dead)) === ExploreState.LINKED);
  });
});

test("a row that leads to a shelf which another row has made already says so, and makes nothing", async () => {
  const row = await aLinkedRow();
  const known = (await dc.control<InventoryRow[]>("GET", "/inventory")).find(
    (one) => one.bmc_mac_address === row.bmcMac,
  );
  const bmcMac = "02:ff:ff:ff:ff:ff";
  await it.forge.addExpectedPowerShelf({
    bmcMacAddress: bmcMac,
    bmcUsername: row.bmcUsername,
    bmcPassword: known?.bmc_password ?? "",
    shelfSerialNumber: row.serial,
    bmcIpAddress: row.bmcEndpoint,
  });
  const failed = async () =>
    (await it.shelves.listExpectedPowerShelves({ exploreState: ExploreState.FAILED })).expectedPowerShelves;
  await dc.until(async () => (await failed()).length === 1);
  expect(await failed()).toMatchObject([{ bmcMac, powerShelfId: "" }]);
  expect((await failed())[0]?.exploreMessage).toContain(`${row.powerShelfId} exists already`);
  expect((await dc.shelves()).filter(({ id }) => id === row.powerShelfId)).toHaveLength(1);
  await it.forge.deleteExpectedPowerShelf({ bmcMacAddress: bmcMac });
});

describe("maintenance", () => {
  test("a request that arrives while one is running waits behind it, and both are carried out", async () => {
    const row = await aLinkedRow();
    const id = row.powerShelfId;
    const shelf = async () => (await it.shelves.getPowerShelf({ id })).powerShelf;
    await dc.until(async () => (await shelf())?.state === "ready");
    await dc.control("PUT", "/speed", { speed: SLOW });

    const ask = (operation: Operation, user: string) =>
      it.forge.setPowerShelfMaintenance({ powerShelfIds: [{ id }], operation, reference: "MAINT-1" }, as(user));
    await ask(Operation.POWER_OFF, "ann");
    await dc.until(async () => (await shelf())?.state === "maintenance");
    const running = await shelf();
    expect(running?.claim).toMatchObject({ holderKind: "power_shelf", holderId: id });
    expect(running?.stateDetail?.operation).toBe("power_off");
    await ask(Operation.POWER_ON, "bob");
    expect((await shelf())?.pendingRequest).toMatchObject({ operation: "power_on", initiator: "bob (MAINT-1)" });
    await dc.control("PUT", "/speed", { speed: 50 });
    await dc.until(async () => {
      const now = await shelf();
      return now?.state === "ready" && now.pendingRequest === undefined;
    });

    const done = await shelf();
    expect(done).toMatchObject({
      powerState: "on",
      lastRequest: { operation: "power_on", outcome: "completed", initiator: "bob (MAINT-1)" },
    });
    expect(done?.claim).toBeUndefined();
    const device = await deviceOf(row.serial);
    expect(device).toMatchObject({ power: "on", effects: { power_on_commands: 1, power_off_commands: 1 } });
    const { histories } = await it.forge.findPowerShelfStateHistories({ powerShelfIds: [{ id }] });
    const records = histories[id]?.records ?? [];
    expect(records.map(({ state }) => state)).toEqual([
      '{"state": "initializing"}',
      '{"state": "fetchingdata"}',
      '{"state": "configuring"}',
      '{"state": "ready"}',
      '{"state": "maintenance", "operation": {"operation": "poweroff"}}',
      '{"state": "ready"}',
      '{"state": "maintenance", "operation": {"operation": "poweron"}}',
      '{"state": "ready"}',
    ]);
    expect(records.map(({ version }) => Number(/^V(\d+)-/.exec(version)?.[1]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const { powerShelves } = await it.forge.findPowerShelves({ powerShelfId: { id } });
    expect(records.at(-1)?.version).toBe(powerShelves[0]?.stateVersion);
  });
});

describe("a cancel", () => {
  const OFF = Operation.POWER_OFF;
  const refused = (call: Promise<unknown>) => call.catch((error: unknown) => ConnectError.from(error));

  test("ends a request that a silent shelf keeps from ending, and the one that waits behind it, each once", async () => {
    const row = await aLinkedRow();
    const id = row.powerShelfId;
    const shelf = async () => (await it.shelves.getPowerShelf({ id })).powerShelf;
    await dc.until(async () => (await shelf())?.state === "ready");
    const none = await refused(it.shelves.cancelPowerShelfRequest({ id }));
    expect(none).toMatchObject({ code: Code.FailedPrecondition });
    await dc.control("POST", "/faults", { device: (await deviceOf(row.serial)).id, fault: { type: "drop" } });
    const ask = (operation: Operation) =>
      it.forge.setPowerShelfMaintenance({ powerShelfIds: [{ id }], operation }, as("ann"));
    await ask(OFF);
    await dc.until(async () => (await shelf())?.state === "maintenance");
    await ask(Operation.POWER_ON);
    const other = await refused(it.shelves.cancelPowerShelfRequest({ id, requestId: "another" }));
    expect(other).toMatchObject({ code: Code.FailedPrecondition, rawMessage: expect.stringContaining("another") });

    const { powerShelf } = await it.shelves.cancelPowerShelfRequest({ id }, as("bob"));
    expect(powerShelf).toMatchObject({
      state: "maintenance",
      lastRequest: { operation: "power_on", outcome: "withdrawn" },
    });
    await dc.until(async () => (await shelf())?.state === "ready");
    const ended = await shelf();
    expect(ended).toMatchObject({ lastRequest: { operation: "power_off", outcome: "withdrawn" } });
    expect(ended?.lastRequest?.message).toContain("canceled by bob");
    expect(ended?.pendingRequest).toBeUndefined();
    expect(ended?.claim).toBeUndefined();
    await dc.control("DELETE", "/faults");
    // Nothing of it comes back: the next request is carried out.
    await ask(Operation.POWER_ON);
    await dc.until(async () => (await shelf())?.lastRequest?.outcome === "completed");
    expect((await deviceOf(row.serial)).power).toBe("on");
  });

  test("of a request to a shelf in error leaves the shelf in error, with why it is", async () => {
    const row = await aLinkedRow();
    const id = row.powerShelfId;
    const shelf = async () => (await it.shelves.getPowerShelf({ id })).powerShelf;
    const stored = () => dc.deps.db.query("select state, state_data from power_shelves where id = $1", [id]);
    await dc.until(async () => (await shelf())?.state === "ready");
    await dc.control("POST", "/faults", { device: (await deviceOf(row.serial)).id, fault: { type: "drop" } });
    const error = { cause: "a fuse blew", failure: { code: "refused" } };
    await dc.deps.db.execute(
      "update power_shelves set state = 'error', state_data = $2, basis = basis + 1, version = version + 1 where id = $1",
      [id, JSON.stringify(error)],
    );
    await it.forge.setPowerShelfMaintenance({ powerShelfIds: [{ id }], operation: OFF }, as("ann"));
    await dc.until(async () => (await shelf())?.state === "maintenance");
    await it.shelves.cancelPowerShelfRequest({ id }, as("bob"));
    await dc.until(async () => (await shelf())?.state === "error");
    expect(await stored()).toEqual([{ state: "error", state_data: error }]);
    expect(await shelf()).toMatchObject({ lastRequest: { operation: "power_off", outcome: "withdrawn" } });
    await dc.control("DELETE", "/faults");
    await it.forge.setPowerShelfMaintenance({ powerShelfIds: [{ id }], operation: OFF }, as("ann"));
    await dc.until(async () => (await shelf())?.state === "ready");
  });
});

test("a new certificate of a shelf is accepted by the fingerprint that its BMC shows, and by no other", async () => {
  const { powerShelfId: id } = await aLinkedRow();
  await dc.until(async () => (await it.shelves.getPowerShelf({ id })).powerShelf?.state === "ready");
  const [known] = await dc.deps.db.query<{ pin: string }>(
    "select facts ->> 'certificateFingerprint' as pin from power_shelves where id = $1",
    [id],
  );
  const shown = known?.pin ?? expect.unreachable();
  const other = shown.replaceAll(/[0-9A-F]{2}/g, "AB");
  await dc.deps.db.query(
    "update power_shelves set basis = basis + 1, facts = facts || jsonb_build_object('certificateFingerprint', $2::text) where id = $1",
    [id, other],
  );
  await it.shelves.refreshPowerShelf({ id });
  const shelf = async () => (await it.shelves.getPowerShelf({ id })).powerShelf;
  await dc.until(async () => (await shelf())?.failing === true);
  const accept = (fingerprint: string) => it.shelves.acceptPowerShelfCertificate({ id, fingerprint }, as("ann"));
  for (const [wrong, code] of [
    [other, Code.FailedPrecondition],
    ["AB:CD", Code.InvalidArgument],
    ["", Code.InvalidArgument],
  ] as const)
    expect(await accept(wrong).catch((error: unknown) => ConnectError.from(error))).toMatchObject({ code });
  await accept(shown.replaceAll(":", "").toLowerCase());
  await dc.until(async () => (await shelf())?.failing === false);
  const { events } = await it.history.listHistory({
    kind: "power_shelf",
    id,
    newestFirst: true,
    types: ["certificate_replaced"],
  });
  expect(events.find(({ actor }) => actor === "ann")?.data).toMatchObject({ facts: { certificateFingerprint: shown } });
});

describe("deletion", () => {
  const detachedBy = async (remove: (id: string) => Promise<unknown>) => {
    const row = await aLinkedRow();
    await remove(row.powerShelfId);
    await dc.until(async () => (await dc.shelves()).every(({ id }) => id !== row.powerShelfId));
    const now = async () => (await expectedRows()).find(({ id }) => id === row.id);
    expect(await now()).toMatchObject({ exploreState: ExploreState.DETACHED, powerShelfId: "" });
    expect((await now())?.nextExploreAt).toBeUndefined();
    return { row, now };
  };

  test("of a shelf detaches its row, which is explored again once it is updated", async () => {
    const { row, now } = await detachedBy((id) => it.forge.deletePowerShelf({ id: { id } }));
    const expected = await it.forge.getExpectedPowerShelf({ bmcMacAddress: row.bmcMac });
    await it.forge.updateExpectedPowerShelf(expected);
    await dc.until(async () => (await now())?.exploreState === ExploreState.LINKED);
    expect((await now())?.powerShelfId).toBe(row.powerShelfId);
  });

  test("of a shelf ends in the final delete, and its history stays", async () => {
    const { row } = await detachedBy((id) => it.forge.deletePowerShelf({ id: { id } }, as("ann")));
    const id = row.powerShelfId;
    const { histories } = await it.forge.findPowerShelfStateHistories({ powerShelfIds: [{ id }] });
    expect(histories[id]?.records.at(-1)?.state).toBe('{"state": "deleting"}');
    const { events } = await it.history.listHistory({
      kind: "power_shelf",
      id,
      types: ["deletion_requested", "deleted"],
    });
    expect(events.slice(-2)).toMatchObject([
      { type: "deletion_requested", actor: "ann" },
      { type: "deleted", fromState: "deleting" },
    ]);
  });

  test("by force detaches it as well", async () => {
    await detachedBy((id) => it.forge.adminForceDeletePowerShelf({ powerShelfId: { id } }));
  });
});
