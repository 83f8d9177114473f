import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { PowerShelf, PowerShelfSearchFilterSchema } from "../../../contract/forge/forge_pb.js";
import { ControllerStateOutcome, DeletedFilter, HealthReportApplyMode } from "../../../contract/forge/shared_pb.js";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, dumpTables, type ForgeUnderTest, type Parts, refusal, startForge } from "./forge-under-test.ts";

const VERSION = /^V\d+-T\d{16}$/;

let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge({ maxFindByIds: 4 });
});
afterAll(() => it.close());

const wire = (...ids: string[]) => ids.map((id) => ({ id }));
async function find(id: string): Promise<PowerShelf> {
  const { powerShelves } = await it.forge.findPowerShelves({ powerShelfId: { id } });
  const [shelf] = powerShelves;
  if (!shelf) throw new Error(`${id} is not found`);
  return shelf;
}
const put = (id: string, columns: Record<string, unknown>) =>
  it.db.execute(
    `update power_shelves set ${Object.keys(columns)
      .map((column, index) => `${column} = $${index + 2}`)
      .join(", ")} where id = $1`,
    [id, ...Object.values(columns)],
  );

describe("a shelf on the wire", () => {
  test("has everything that is known of it", async () => {
    const id = await it.addShelf("whole");
    await put(id, {
      name: "top shelf",
      facts: {
        powerState: "on",
        health: "ok",
        bmcFirmware: "r1.3.9",
        capacityWatts: 33_000,
        voltage: 50.4,
        observedAt: "2024-01-01T00:00:00.000Z",
      },
    });
    const shelf = await find(id);
    expect(shelf).toMatchObject({
      id: { id },
      config: { name: "top shelf", capacity: 33_000, voltage: 50 },
      controllerState: '{"state":"ready"}',
      metadata: { name: "top shelf", description: "", labels: [] },
      bmcInfo: { ip: "192.0.2.1", port: 443, mac: expect.stringMatching(/^02:/), firmwareVersion: "r1.3.9" },
      rackId: { id: "rack-1" },
      status: {
        shelfName: "top shelf",
        powerState: "on",
        healthStatus: "ok",
        controllerState: '{"state":"ready"}',
        stateSla: { timeInStateAboveSla: false },
        health: { alerts: [], successes: [{ id: "BmcHealth" }] },
        healthSources: [{ source: "bmc", mode: HealthReportApplyMode.Merge }],
        lifecycle: { state: '{"state":"ready"}', stateReason: { outcome: ControllerStateOutcome.DO_NOTHING } },
      },
    });
    expect(shelf.deleted).toBeUndefined();
    expect(shelf.status?.stateSla?.sla).toBeUndefined();
    expect(shelf.version).toMatch(VERSION);
    expect(shelf.stateVersion).toMatch(VERSION);
    expect(shelf.status?.lifecycle?.version).toBe(shelf.stateVersion);
  });

  test("leaves out what was never read", async () => {
    const shelf = await find(await it.addShelf("unread", "fetching_data"));
    expect(shelf.status?.powerState).toBeUndefined();
    expect(shelf.status?.healthStatus).toBeUndefined();
    expect(shelf.config?.capacity).toBeUndefined();
    expect(shelf.status?.healthSources).toEqual([]);
  });

  test.each([
    ["fetching_data", {}, '{"state":"fetchingdata"}'],
    ["maintenance", { operation: "power_on" }, '{"state":"maintenance","operation":{"operation":"poweron"}}'],
    ["error", { cause: "BMC refused" }, '{"state":"error","cause":"BMC refused"}'],
  ])("shows the state %s as the contract spells it", async (state, carried, text) => {
    const id = await it.addShelf(`spelt-${state.replace("_", "-")}`, state);
    await put(id, { state_data: carried });
    expect((await find(id)).controllerState).toBe(text);
  });

  test.each([
    ["waits", { outcome: { type: "waiting", reason: "still on" } }, ControllerStateOutcome.WAIT, "still on"],
    ["fails", { outcome: { type: "failing", reason: "no route" } }, ControllerStateOutcome.ERROR, "no route"],
    [
      "needs a person",
      { outcome: { type: "needs_intervention", reason: "look at it" } },
      ControllerStateOutcome.ERROR,
      "look at it",
    ],
    ["has just arrived", {}, ControllerStateOutcome.TRANSITION, undefined],
  ])("says why it is in its state when it %s", async (what, columns, outcome, outcomeMsg) => {
    const id = await it.addShelf(`why-${what.replaceAll(" ", "-")}`, "configuring");
    if ("outcome" in columns) await put(id, columns);
    const { lifecycle } = (await find(id)).status ?? {};
    expect(lifecycle?.stateReason?.outcome).toBe(outcome);
    expect(lifecycle?.stateReason?.outcomeMsg).toBe(outcomeMsg);
    expect(lifecycle?.sla?.sla?.seconds).toBe(300n);
  });

  test("says why when the pass itself could not be finished, and the shelf has nothing to say of it", async () => {
    const id = await it.addShelf("poisoned", "configuring");
    await it.db.execute("update work set last_error = 'its row cannot be read' where id = $1", [id]);
    expect((await find(id)).status?.lifecycle?.stateReason).toMatchObject({
      outcome: ControllerStateOutcome.ERROR,
      outcomeMsg: "its row cannot be read",
    });
    expect((await it.shelves.getPowerShelf({ id })).powerShelf?.stateReason).toBe("its row cannot be read");
  });

  test("that is damaged in the database hides no other, and says what is wrong", async () => {
    const [odd, lost] = [await it.addShelf("damaged"), await it.addShelf("lost", "melting_down")];
    await put(odd, { facts: { powerState: 5 }, power_shelf_maintenance_requested: { id: 1 } });
    const all = (await it.forge.findPowerShelves({})).powerShelves;
    const shown = new Map(all.map((shelf) => [shelf.id?.id, shelf]));
    expect(shown.get(odd)?.status?.lifecycle?.stateReason?.outcomeMsg).toContain("its row cannot be read");
    expect(shown.get(lost)?.controllerState).toBe('{"state":"meltingdown"}');
    expect((await it.shelves.listPowerShelves({ pageSize: 1_000 })).powerShelves).toHaveLength(all.length);
    for (const id of [odd, lost]) {
      expect((await it.forge.adminForceDeletePowerShelf({ powerShelfId: { id } })).interfacesDeleted).toBe(0);
      expect((await it.forge.findPowerShelves({ powerShelfId: { id } })).powerShelves).toEqual([]);
    }
  });

  test("is above its SLA once it has been at work for too long", async () => {
    const id = await it.addShelf("slow", "configuring");
    await put(id, { state_since: new Date(Date.now() - 301_000) });
    expect((await find(id)).status?.stateSla?.timeInStateAboveSla).toBe(true);
    expect((await it.shelves.getPowerShelf({ id })).powerShelf?.stuck).toBe(true);
  });
});

describe("finding shelves", () => {
  test("the id wins over the name; an unknown one gives an empty list; with neither, all come, deleted ones too", async () => {
    const [one, other] = [await it.addShelf("find-one"), await it.addShelf("find-other")];
    await it.forge.deletePowerShelf({ id: { id: other } });
    const ids = async (query: Parameters<typeof it.forge.findPowerShelves>[0]) =>
      (await it.forge.findPowerShelves(query)).powerShelves.map((shelf) => shelf.id?.id);
    expect(await ids({ powerShelfId: { id: one }, name: other })).toEqual([one]);
    expect(await ids({ name: other })).toEqual([other]);
    expect(await ids({ powerShelfId: { id: "nobody" } })).toEqual([]);
    expect(await ids({ name: "nobody" })).toEqual([]);
    expect(await ids({})).toEqual(expect.arrayContaining([one, other]));
    expect(await refusal(it.forge.findPowerShelves({ powerShelfId: { id: "No!" } }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "power_shelf_id",
    });
  });

  test("by ids: unknown ones are left out, repeated ones come once, and the limits hold", async () => {
    const id = await it.addShelf("by-ids");
    const { powerShelves } = await it.forge.findPowerShelvesByIds({ powerShelfIds: wire(id, "nobody", id) });
    expect(powerShelves.map((shelf) => shelf.id?.id)).toEqual([id]);
    expect(powerShelves[0]?.bmcInfo?.ip).toBe("192.0.2.1");
    for (const call of ["findPowerShelvesByIds", "findPowerShelfStateHistories"] as const) {
      for (const powerShelfIds of [[], wire("a", "b", "c", "d", "e"), wire("A")]) {
        expect(await refusal(it.forge[call]({ powerShelfIds }))).toMatchObject({
          code: Code.InvalidArgument,
          field: "power_shelf_ids",
        });
      }
    }
  });

  test("ids by filters that must all hold", async () => {
    const [here, there] = [
      await it.addShelf("filter-here", "fetching_data"),
      await it.addShelf("filter-there", "error"),
    ];
    await put(there, { rack_id: "rack-9" });
    await put(here, { rack_id: "rack-9" });
    await it.forge.deletePowerShelf({ id: { id: there } });
    const ids = async (filter: Parts<typeof PowerShelfSearchFilterSchema>) =>
      (await it.forge.findPowerShelfIds({ rackId: { id: "rack-9" }, ...filter })).ids.map(({ id }) => id);
    expect(await ids({})).toEqual([here]);
    expect(await ids({ deleted: DeletedFilter.ONLY })).toEqual([there]);
    expect(await ids({ deleted: DeletedFilter.INCLUDE })).toEqual([here, there]);
    expect(await ids({ controllerState: "fetchingdata" })).toEqual([here]);
    expect(await ids({ controllerState: "fetching_data" })).toEqual([]);
    expect(await ids({ controllerState: "error" })).toEqual([]);
    const { mac } = (await find(here)).bmcInfo ?? {};
    expect(await ids({ bmcMac: mac?.toUpperCase().replaceAll(":", "-") ?? "" })).toEqual([here]);
    expect(await refusal(ids({ bmcMac: "nonsense" }))).toMatchObject({ code: Code.InvalidArgument, field: "bmc_mac" });
    expect(await refusal(ids({ deleted: 7 as DeletedFilter }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "deleted",
    });
  });
});

describe("deletion", () => {
  test("marks the shelf and wakes the controller; asking again refreshes the mark", async () => {
    const id = await it.addShelf("marked");
    await it.forge.deletePowerShelf({ id: { id } }, as("ann"));
    const first = (await find(id)).deleted;
    await it.forge.deletePowerShelf({ id: { id } }, as("ann"));
    const second = (await find(id)).deleted;
    if (!first || !second) throw new Error("the mark is missing");
    expect(timestampDate(second).getTime()).toBeGreaterThanOrEqual(timestampDate(first).getTime());
    const { events } = await it.history.listHistory({ kind: "power_shelf", id, types: ["deletion_requested"] });
    expect(events.map(({ actor }) => actor)).toEqual(["ann", "ann"]);
  });

  test("by force removes it in any state at once, with its reports, and keeps its history", async () => {
    const id = await it.addShelf("forced", "maintenance");
    await put(id, { state_data: { operation: "power_on" } });
    await it.forge.insertPowerShelfHealthReport({
      powerShelfId: { id },
      healthReportEntry: { report: { source: "probe" } },
    });
    const answer = await it.forge.adminForceDeletePowerShelf(
      { powerShelfId: { id }, deleteInterfaces: true },
      as("ann"),
    );
    expect(answer).toMatchObject({ powerShelfId: id, interfacesDeleted: 1 });
    expect((await it.forge.findPowerShelves({ powerShelfId: { id } })).powerShelves).toEqual([]);
    const { events } = await it.history.listHistory({ kind: "power_shelf", id });
    expect(events.at(-1)).toMatchObject({ type: "deleted", actor: "ann", fromState: "maintenance" });
    const { histories } = await it.forge.findPowerShelfStateHistories({ powerShelfIds: wire(id) });
    expect(histories[id]?.records[0]?.state).toBe('{"state": "initializing"}');
    expect(await it.db.query("select 1 from health_reports where id = $1", [id])).toEqual([]);
  });

  test.each([
    [
      "deletePowerShelf",
      "id",
      () => it.forge.deletePowerShelf({}),
      () => it.forge.deletePowerShelf({ id: { id: "no" } }),
    ],
    [
      "adminForceDeletePowerShelf",
      "power_shelf_id",
      () => it.forge.adminForceDeletePowerShelf({}),
      () => it.forge.adminForceDeletePowerShelf({ powerShelfId: { id: "no" } }),
    ],
  ] as const)("%s refuses a missing id and does not find an unknown one", async (_call, field, missing, unknown) => {
    expect(await refusal(missing())).toMatchObject({ code: Code.InvalidArgument, field });
    expect(await refusal(unknown())).toMatchObject({ code: Code.NotFound });
  });
});

describe("metadata", () => {
  const labels = (count: number) => Array.from({ length: count }, (_, at) => ({ key: `k${at}`, value: "v" }));

  test("is replaced as a whole, and raises its version alone", async () => {
    const id = await it.addShelf("meta");
    const before = await find(id);
    await it.forge.updatePowerShelfMetadata(
      {
        powerShelfId: { id },
        ifVersionMatch: before.version,
        metadata: { name: "new name", description: "d", labels: [{ key: "a", value: "1" }, { key: "b" }] },
      },
      as("ann"),
    );
    const after = await find(id);
    expect(after.metadata).toMatchObject({ name: "new name", description: "d" });
    expect(after.metadata?.labels.map(({ key, value }) => [key, value])).toEqual([
      ["a", "1"],
      ["b", undefined],
    ]);
    expect(after.version).not.toBe(before.version);
    expect(after.stateVersion).toBe(before.stateVersion);
  });

  test("is not replaced when its version is no longer the one that was read", async () => {
    const id = await it.addShelf("meta-stale");
    const { version } = await find(id);
    const update = (name: string, ifVersionMatch?: string) =>
      it.forge.updatePowerShelfMetadata({
        powerShelfId: { id },
        metadata: { name },
        ...(ifVersionMatch !== undefined && { ifVersionMatch }),
      });
    await update("first", version);
    const before = await dumpTables(it.db);
    expect(await refusal(update("second", version))).toMatchObject({
      code: Code.FailedPrecondition,
      field: "if_version_match",
    });
    expect(await dumpTables(it.db)).toEqual(before);
    await update("third");
    expect((await find(id)).metadata?.name).toBe("third");
  });

  test.each([
    ["a name that is too short", { name: "x" }, "metadata.name"],
    ["a name that is too long", { name: "x".repeat(257) }, "metadata.name"],
    ["a name that is not ASCII", { name: "schränkchen" }, "metadata.name"],
    ["a description that is too long", { name: "ok", description: "x".repeat(1_025) }, "metadata.description"],
    ["eleven labels", { name: "ok", labels: labels(11) }, "metadata.labels"],
    ["an empty key", { name: "ok", labels: [{ key: "" }] }, "metadata.labels"],
    ["a key that is too long", { name: "ok", labels: [{ key: "k".repeat(256) }] }, "metadata.labels"],
    ["a key that is not ASCII", { name: "ok", labels: [{ key: "ü" }] }, "metadata.labels"],
    ["a value that is too long", { name: "ok", labels: [{ key: "k", value: "v".repeat(256) }] }, "metadata.labels"],
    ["a key twice", { name: "ok", labels: [{ key: "k" }, { key: "k" }] }, "metadata.labels"],
  ])("refuses %s", async (_what, metadata, field) => {
    const id = (await it.forge.findPowerShelves({ name: "meta-rules" })).powerShelves[0]?.id?.id;
    const powerShelfId = { id: id ?? (await it.addShelf("meta-rules")) };
    const before = await dumpTables(it.db);
    expect(await refusal(it.forge.updatePowerShelfMetadata({ powerShelfId, metadata }))).toMatchObject({
      code: Code.InvalidArgument,
      field,
    });
    expect(await dumpTables(it.db)).toEqual(before);
  });

  test("takes names, descriptions and labels of the greatest length that is allowed", async () => {
    const id = await it.addShelf("meta-most");
    const metadata = { name: "n".repeat(256), description: "d".repeat(1_024), labels: labels(10) };
    await it.forge.updatePowerShelfMetadata({ powerShelfId: { id }, metadata });
    expect((await find(id)).metadata).toMatchObject(metadata);
  });

  test("needs a shelf and something to write", async () => {
    const metadata = { name: "ok" };
    expect(await refusal(it.forge.updatePowerShelfMetadata({ metadata }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "power_shelf_id",
    });
    expect(await refusal(it.forge.updatePowerShelfMetadata({ powerShelfId: { id: "no" } }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "metadata",
    });
    expect(await refusal(it.forge.updatePowerShelfMetadata({ powerShelfId: { id: "no" }, metadata }))).toMatchObject({
      code: Code.NotFound,
    });
  });
});

describe("health reports", () => {
  const list = async (id: string) =>
    (await it.forge.listPowerShelfHealthReports({ powerShelfId: { id } })).healthReportEntries;

  test("one a source: a newer one takes the place of the older, and an alert that goes on keeps its beginning", async () => {
    const id = await it.addShelf("reports");
    const insert = (message: string) =>
      it.forge.insertPowerShelfHealthReport(
        {
          powerShelfId: { id },
          healthReportEntry: { report: { source: "probe", alerts: [{ id: "hot", message }] } },
        },
        as("ann"),
      );
    await insert("warm");
    const [first] = await list(id);
    await insert("hot");
    await it.forge.insertPowerShelfHealthReport({
      powerShelfId: { id },
      healthReportEntry: { report: { source: "another", successes: [{ id: "fan" }] } },
    });
    const entries = await list(id);
    expect(entries.map(({ report }) => report?.source)).toEqual(["another", "probe"]);
    const [alert] = entries[1]?.report?.alerts ?? [];
    expect(alert?.message).toBe("hot");
    expect(alert?.inAlertSince).toEqual(first?.report?.alerts[0]?.inAlertSince);
    expect(alert?.inAlertSince).toBeDefined();
    expect(entries[1]?.report?.observedAt).toBeDefined();

    const { status } = await find(id);
    expect(status?.health?.alerts.map(({ message }) => message)).toEqual(["hot"]);
    expect(status?.health?.successes.map((success) => success.id)).toEqual(["fan"]);
    const { events } = await it.history.listHistory({ kind: "power_shelf", id, types: ["health_report_changed"] });
    expect(events.map(({ actor, data }) => [actor, data?.source])).toEqual([
      ["ann", "probe"],
      ["ann", "probe"],
      ["admin-cli", "another"],
    ]);
  });

  test("one that is damaged hides no other, is not passed over, and can be replaced", async () => {
    const id = await it.addShelf("damaged-report");
    const insert = (source: string) =>
      it.forge.insertPowerShelfHealthReport({
        powerShelfId: { id },
        healthReportEntry: { report: { source, successes: [{ id: "fan" }] } },
      });
    await insert("good");
    await insert("bad");
    await it.db.execute("update health_reports set report = '{}' where id = $1 and source = 'bad'", [id]);
    const alerts = (await list(id)).map(({ report }) => [report?.source, report?.alerts.map((alert) => alert.id)]);
    expect(alerts).toEqual([
      ["bad", ["ReportUnreadable"]],
      ["good", []],
    ]);
    expect((await find(id)).status?.health?.alerts[0]?.message).toContain("insert it again");
    await insert("bad");
    expect((await find(id)).status?.health?.alerts).toEqual([]);
  });

  test("one that replaces overrides all that are merged, the BMC's own among them, until it is removed", async () => {
    const id = await it.addShelf("replaced");
    await put(id, { facts: { health: "critical" } });
    const insert = (source: string, mode: HealthReportApplyMode) =>
      it.forge.insertPowerShelfHealthReport({
        powerShelfId: { id },
        healthReportEntry: { mode, report: { source, alerts: [{ id: source, message: source }] } },
      });
    await insert("merged", HealthReportApplyMode.Merge);
    await insert("override", HealthReportApplyMode.Replace);
    const alerts = async () => (await find(id)).status?.health?.alerts.map((alert) => alert.id);
    expect(await alerts()).toEqual(["override"]);
    expect((await find(id)).status?.healthSources).toMatchObject([
      { source: "override", mode: HealthReportApplyMode.Replace },
    ]);
    await it.forge.removePowerShelfHealthReport({ powerShelfId: { id }, source: "override" });
    expect(await alerts()).toEqual(["BmcHealth", "merged"]);
  });

  test("what is missing is named, what is unknown is not found, and nothing changes", async () => {
    const id = await it.addShelf("report-rules");
    const report = { source: "probe" };
    const before = await dumpTables(it.db);
    const insert = it.forge.insertPowerShelfHealthReport;
    const refused: [() => Promise<unknown>, Code, string][] = [
      [() => it.forge.listPowerShelfHealthReports({}), Code.InvalidArgument, "power_shelf_id"],
      [() => it.forge.listPowerShelfHealthReports({ powerShelfId: { id: "no" } }), Code.NotFound, ""],
      [() => insert({ healthReportEntry: { report } }), Code.InvalidArgument, "power_shelf_id"],
      [() => insert({ powerShelfId: { id } }), Code.InvalidArgument, "health_report_entry"],
      [
        () => insert({ powerShelfId: { id }, healthReportEntry: {} }),
        Code.InvalidArgument,
        "health_report_entry.report",
      ],
      [
        () => insert({ powerShelfId: { id }, healthReportEntry: { report: {} } }),
        Code.InvalidArgument,
        "health_report_entry.report.source",
      ],
      [
        () => insert({ powerShelfId: { id }, healthReportEntry: { report: { source: "s", alerts: [{ id: "" }] } } }),
        Code.InvalidArgument,
        "health_report_entry.report.alerts[0].id",
      ],
      [
        () => insert({ powerShelfId: { id }, healthReportEntry: { report, mode: 9 as HealthReportApplyMode } }),
        Code.InvalidArgument,
        "health_report_entry.mode",
      ],
      [() => insert({ powerShelfId: { id: "no" }, healthReportEntry: { report } }), Code.NotFound, ""],
      [() => it.forge.removePowerShelfHealthReport({ source: "s" }), Code.InvalidArgument, "power_shelf_id"],
      [() => it.forge.removePowerShelfHealthReport({ powerShelfId: { id } }), Code.InvalidArgument, "source"],
      [() => it.forge.removePowerShelfHealthReport({ powerShelfId: { id }, source: "none" }), Code.NotFound, "source"],
      [() => it.forge.removePowerShelfHealthReport({ powerShelfId: { id: "no" }, source: "s" }), Code.NotFound, ""],
    ];
    for (const [call, code, field] of refused) expect(await refusal(call())).toMatchObject({ code, field });
    expect(await dumpTables(it.db)).toEqual(before);
  });
});
