// @module-tag race
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { DeletedFilter, HealthReportApplyMode } from "../../../contract/forge/shared_pb.js";
import { LISTED_ROWS } from "../../support/listed-rows.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, type ForgeUnderTest, refusal, startForge } from "./forge-under-test.ts";

/** The methods of racks, switches and their expected rows over gRPC: the answers and the codes of the contract. */
let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge();
  await LISTED_ROWS.switches(it.db, 1, 13);
});
afterAll(() => it.close());

let count = 0;
/** A rack with one tray that nobody uses, in a state. */
async function aRack(state: string): Promise<{ id: string; tray: string }> {
  count += 1;
  const [id, tray] = [`r-${count}`, `r-${count}-m`];
  await it.db.execute("insert into racks (id, name, state) values ($1, $1, $2)", [id, state]);
  await it.db.execute(
    `insert into machines (id, labels, provider, rack, state, conditions) values ($1, '{}', 'fake', $2, 'MAINTENANCE', '[]')`,
    [tray, id],
  );
  return { id, tray };
}
const maintain = (id: string, scope: object = {}) =>
  it.forge.onDemandRackMaintenance({ rackId: { id }, scope }, as("ann"));

describe("OnDemandRackMaintenance", () => {
  test("of 20 calls at the same moment one is accepted, and the others are told INVALID_ARGUMENT and whose it is", async () => {
    const { id } = await aRack("ready");
    const calls = await Promise.all(
      Array.from({ length: 20 }, () =>
        maintain(id).then(
          () => undefined,
          (error: unknown) => refusal(Promise.reject(error)),
        ),
      ),
    );
    const refused = calls.filter((each) => each !== undefined);
    expect(refused).toHaveLength(19);
    for (const each of refused)
      expect(each).toMatchObject({ code: Code.InvalidArgument, message: expect.stringContaining("by ann at ") });
  });

  test.each(["created", "discovering", "maintenance", "validating", "deleting"])("in %s is refused", async (state) => {
    const { id } = await aRack(state);
    expect(await refusal(maintain(id))).toMatchObject({ code: Code.InvalidArgument, field: "rack_id" });
  });

  test("in error is accepted, with the scope and the activities as they were given", async () => {
    const { id, tray } = await aRack("error");
    const activity = { case: "firmwareUpgrade", value: { firmwareVersion: "fw-v2.1" } } as const;
    await maintain(id, { machineIds: [tray], activities: [{ activity }] });
    const [row] = await it.db.query<{ request: object }>(
      "select maintenance_requested as request from racks where id = $1",
      [id],
    );
    expect(row?.request).toMatchObject({
      ...{ initiator: "ann", scope: { machine_ids: [tray], switch_ids: [], power_shelf_ids: [] } },
      activities: [{ kind: "firmware_upgrade", firmware_version: "fw-v2.1" }],
    });
  });

  test.each([
    ["no rack", { rackId: undefined }, Code.InvalidArgument],
    ["a rack that there is not", { rackId: { id: "nowhere" } }, Code.NotFound],
    ["a malformed machine id", { scope: { machineIds: ["No Id"] } }, Code.InvalidArgument],
    ["a malformed switch id", { scope: { switchIds: ["-x"] } }, Code.InvalidArgument],
    ["a malformed power shelf id", { scope: { powerShelfIds: ["x".repeat(64)] } }, Code.InvalidArgument],
    ["a device of another rack", { scope: { switchIds: ["sw-00001"] } }, Code.InvalidArgument],
    ["an activity without a kind", { scope: { activities: [{}] } }, Code.InvalidArgument],
  ])("with %s is refused, and changes nothing", async (_, change, code) => {
    const { id } = await aRack("ready");
    const call = it.forge.onDemandRackMaintenance({ rackId: { id }, scope: {}, ...change }, as("ann"));
    expect(await refusal(call)).toMatchObject({ code });
    expect(await it.db.query("select 1 from racks where id = $1 and maintenance_requested is not null", [id])).toEqual(
      [],
    );
  });
});

describe("racks", () => {
  test("are found by id; all without one, and none by an unknown one", async () => {
    const { id } = await aRack("ready");
    expect((await it.forge.getRack({ id })).rack).toMatchObject([{ id: { id }, rackState: "Ready" }]);
    expect((await it.forge.getRack({})).rack.length).toBeGreaterThan(1);
    expect((await it.forge.getRack({ id: "nowhere" })).rack).toEqual([]);
    const found = await it.forge.findRacksByIds({ rackIds: [{ id }, { id: "nowhere" }] });
    expect(found.racks.map((each) => each.id?.id)).toEqual([id]);
    expect(await refusal(it.forge.findRacksByIds({ rackIds: [] }))).toMatchObject({ code: Code.InvalidArgument });
    const many = Array.from({ length: 101 }, (_, at) => ({ id: `x-${at}` }));
    expect(await refusal(it.forge.findRacksByIds({ rackIds: many }))).toMatchObject({ code: Code.InvalidArgument });
  });

  test("are marked for deletion, once or again; what there is not is not", async () => {
    const { id } = await aRack("ready");
    await it.forge.deleteRack({ id }, as("ann"));
    await it.forge.deleteRack({ id }, as("ann"));
    expect(await it.db.query("select 1 from racks where id = $1 and deleted_at is not null", [id])).toHaveLength(1);
    expect(await refusal(maintain(id))).toMatchObject({ code: Code.InvalidArgument });
    expect(await refusal(it.forge.deleteRack({ id: "" }))).toMatchObject({ code: Code.InvalidArgument });
    expect(await refusal(it.forge.deleteRack({ id: "nowhere" }))).toMatchObject({ code: Code.NotFound });
  });
});

const REPORT = { source: "leak-detector", alerts: [{ id: "Leak", message: "wet floor" }], successes: [] };

/** What racks and switches have alike. */
describe.each([
  {
    kind: "rack",
    make: async () => (await aRack("ready")).id,
    field: "rack_id",
    insert: (id: string, report = REPORT, mode = HealthReportApplyMode.Merge) =>
      it.forge.insertRackHealthReport({ rackId: { id }, healthReportEntry: { report, mode } }),
    list: (id: string) => it.forge.listRackHealthReports({ rackId: { id } }),
    remove: (id: string, source: string) => it.forge.removeRackHealthReport({ rackId: { id }, source }),
    withoutReport: (id: string) => it.forge.insertRackHealthReport({ rackId: { id } }),
    ofNothing: () => it.forge.listRackHealthReports({}),
    shown: async (id: string) => (await it.forge.getRack({ id })).rack[0],
    describe: (id: string, change: { ifVersionMatch?: string; metadata?: object }) =>
      it.forge.updateRackMetadata({ rackId: { id }, ...change }),
    histories: (ids: readonly string[]) => it.forge.findRackStateHistories({ rackIds: ids.map((id) => ({ id })) }),
  },
  {
    kind: "switch",
    make: async () => "sw-00003",
    field: "switch_id",
    insert: (id: string, report = REPORT, mode = HealthReportApplyMode.Merge) =>
      it.forge.insertSwitchHealthReport({ switchId: { id }, healthReportEntry: { report, mode } }),
    list: (id: string) => it.forge.listSwitchHealthReports({ switchId: { id } }),
    remove: (id: string, source: string) => it.forge.removeSwitchHealthReport({ switchId: { id }, source }),
    withoutReport: (id: string) => it.forge.insertSwitchHealthReport({ switchId: { id } }),
    ofNothing: () => it.forge.listSwitchHealthReports({}),
    shown: async (id: string) => (await it.forge.findSwitches({ switchId: { id } })).switches[0],
    describe: (id: string, change: { ifVersionMatch?: string; metadata?: object }) =>
      it.forge.updateSwitchMetadata({ switchId: { id }, ...change }),
    histories: (ids: readonly string[]) => it.forge.findSwitchStateHistories({ switchIds: ids.map((id) => ({ id })) }),
  },
])("a $kind, like every device,", ({ make, field, insert, list, remove, withoutReport, ofNothing, shown, ...its }) => {
  test("has health reports: one a source, merged, or one in place of all", async () => {
    const id = await make();
    await insert(id);
    await insert(id, { ...REPORT, alerts: [{ id: "Leak", message: "wet rack" }] });
    expect((await list(id)).healthReportEntries).toMatchObject([{ report: { alerts: [{ message: "wet rack" }] } }]);
    expect((await shown(id))?.status).toMatchObject({
      healthSources: expect.arrayContaining([expect.objectContaining({ source: "leak-detector" })]),
      health: { alerts: expect.arrayContaining([expect.objectContaining({ id: "Leak" })]) },
    });
    await insert(id, { source: "all-is-well", alerts: [], successes: [] }, HealthReportApplyMode.Replace);
    expect((await shown(id))?.status?.health?.alerts).toEqual([]);
    for (const source of ["leak-detector", "all-is-well"]) await remove(id, source);
    expect((await list(id)).healthReportEntries).toEqual([]);
    expect(await refusal(remove(id, "leak-detector"))).toMatchObject({ code: Code.NotFound });
    expect(await refusal(insert("nowhere"))).toMatchObject({ code: Code.NotFound });
    expect(await refusal(withoutReport(id))).toMatchObject({ code: Code.InvalidArgument });
    expect(await refusal(ofNothing())).toMatchObject({ code: Code.InvalidArgument, field });
  });

  test("has metadata, which are not overwritten by who has seen another version", async () => {
    const id = await make();
    const before = await shown(id);
    await its.describe(id, {
      ifVersionMatch: before?.version ?? "",
      metadata: { name: "Row 7", labels: [{ key: "row", value: "7" }] },
    });
    expect(await shown(id)).toMatchObject({ metadata: { name: "Row 7", labels: [{ key: "row", value: "7" }] } });
    expect(
      await refusal(its.describe(id, { ifVersionMatch: before?.version ?? "", metadata: { name: "Row 8" } })),
    ).toMatchObject({
      code: Code.FailedPrecondition,
    });
    for (const metadata of [
      undefined,
      { name: "x" },
      { name: "Row 7", labels: Array.from({ length: 11 }, (_, at) => ({ key: `k${at}` })) },
    ])
      expect(await refusal(its.describe(id, metadata ? { metadata } : {}))).toMatchObject({
        code: Code.InvalidArgument,
      });
    expect(await refusal(its.describe("nowhere", { metadata: { name: "Row 9" } }))).toMatchObject({
      code: Code.NotFound,
    });
  });

  test("is asked for its history by ids, of which unknown ones are left out", async () => {
    expect((await its.histories(["nowhere"])).histories).toEqual({});
    expect(await refusal(its.histories([]))).toMatchObject({ code: Code.InvalidArgument });
  });
});

describe("switches", () => {
  const ids = async (filter: object) => (await it.forge.findSwitchIds(filter)).ids.map(({ id }) => id);

  test("are found by rack, state, MAC addresses and alert, without those marked for deletion unless they are asked for", async () => {
    expect(await ids({ deleted: DeletedFilter.ONLY })).toEqual(["sw-00005", "sw-00010"]);
    expect(await ids({})).not.toContain("sw-00005");
    expect(await ids({ deleted: DeletedFilter.INCLUDE })).toHaveLength(13);
    expect(await ids({ nvosMac: "DD-00-00-00-00-07" })).toEqual(["sw-00007"]);
    expect(await ids({ controllerState: "error" })).toContain("sw-00004");
    expect(await ids({ controllerState: "no-such-state" })).toEqual([]);
    const { switches } = await it.forge.findSwitches({});
    expect(switches, "a query for all has those that are marked for deletion, too").toHaveLength(13);
    expect((await it.forge.findSwitches({ switchId: { id: "nowhere" } })).switches).toEqual([]);
    expect(await refusal(it.forge.findSwitchesByIds({ switchIds: [] }))).toMatchObject({ code: Code.InvalidArgument });
    await it.forge.insertSwitchHealthReport({
      switchId: { id: "sw-00007" },
      healthReportEntry: { report: REPORT, mode: HealthReportApplyMode.Merge },
    });
    expect(await ids({ onlyWithHealthAlert: "Leak" })).toEqual(["sw-00007"]);
  });

  test("are deleted: marked, or by force at once", async () => {
    await it.forge.deleteSwitch({ id: { id: "sw-00011" } }, as("ann"));
    expect(await ids({ deleted: DeletedFilter.ONLY })).toContain("sw-00011");
    const answer = await it.forge.adminForceDeleteSwitch(
      { switchId: { id: "sw-00012" }, deleteInterfaces: true },
      as("ann"),
    );
    expect(answer).toMatchObject({ switchId: "sw-00012" });
    expect((await it.forge.findSwitches({ switchId: { id: "sw-00012" } })).switches).toEqual([]);
    const { deleteSwitch, adminForceDeleteSwitch } = it.forge;
    expect(await refusal(deleteSwitch({}))).toMatchObject({ code: Code.InvalidArgument });
    expect(await refusal(adminForceDeleteSwitch({}))).toMatchObject({ code: Code.InvalidArgument });
    const switchId = { id: "nowhere" };
    expect(await refusal(deleteSwitch({ id: switchId }))).toMatchObject({ code: Code.NotFound });
    expect(await refusal(adminForceDeleteSwitch({ switchId }))).toMatchObject({ code: Code.NotFound });
  });
});

describe("expected rows", () => {
  const row = (n: number) => ({
    ...{
      bmcMacAddress: `02:00:00:00:07:0${n}`,
      bmcUsername: "root",
      bmcPassword: "secret",
      switchSerialNumber: `SN-${n}`,
    },
    ...{ bmcIpAddress: "192.0.2.9", rackId: { id: "r-expected" } },
  });
  const macs = async () =>
    (await it.forge.getAllExpectedSwitches({})).expectedSwitches.map(({ bmcMacAddress }) => bmcMacAddress);

  test("of switches are replaced as a whole, listed with what was made of them, and deleted all at once", async () => {
    await it.forge.replaceAllExpectedSwitches({ expectedSwitches: [row(1), row(2)] });
    await it.forge.replaceAllExpectedSwitches({ expectedSwitches: [row(2), row(3)] });
    expect(await macs()).toEqual(["02:00:00:00:07:02", "02:00:00:00:07:03"]);
    const twice = { expectedSwitches: [row(4), row(4)] };
    expect(await refusal(it.forge.replaceAllExpectedSwitches(twice))).toMatchObject({ code: Code.InvalidArgument });
    expect(await macs(), "nothing has changed").toHaveLength(2);
    const [linked] = (await it.forge.getAllExpectedSwitchesLinked({})).expectedSwitches;
    expect(linked).toMatchObject({
      switchSerialNumber: "SN-2",
      bmcMacAddress: "02:00:00:00:07:02",
      rackId: { id: "r-expected" },
    });
    expect(linked?.switchId).toBeUndefined();
    await it.forge.deleteAllExpectedSwitches({});
    expect(await macs()).toEqual([]);
  });

  test("of racks are read one by one, and deleted, one or all", async () => {
    await it.db.execute(
      `insert into rack_profiles (name, hardware_type, class, created_by, compute, switches, power_shelves)
       values ('p', 'gb200', 'prod', 'test', '{"count":1}', '{"count":0}', '{"count":0}')`,
    );
    for (const id of ["e-1", "e-2", "e-3"])
      await it.forge.addExpectedRack({ rackId: { id }, rackProfileId: { id: "p" } });
    expect(await it.forge.getExpectedRack({ rackId: "e-1" })).toMatchObject({
      rackId: { id: "e-1" },
      rackProfileId: { id: "p" },
    });
    await it.forge.deleteExpectedRack({ rackId: "e-1" });
    expect(await refusal(it.forge.getExpectedRack({ rackId: "e-1" }))).toMatchObject({ code: Code.NotFound });
    expect(await refusal(it.forge.deleteExpectedRack({ rackId: "e-1" }))).toMatchObject({ code: Code.NotFound });
    expect(await refusal(it.forge.getExpectedRack({ rackId: "" }))).toMatchObject({ code: Code.InvalidArgument });
    await it.forge.deleteAllExpectedRacks({});
    expect((await it.forge.getAllExpectedRacks({})).expectedRacks).toEqual([]);
    expect((await it.forge.getRack({ id: "e-2" })).rack, "the rack itself stays").toHaveLength(1);
  });
});
