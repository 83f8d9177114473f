import { type Client, Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { HealthReportMode, HealthReportService } from "../../../contract/millwright/v1/health_report_pb.js";
import { changeHealth } from "../../../src/store/device/health-changes.ts";
import { forgetExpiredReports } from "../../../src/store/device/health-reports.ts";
import { listHistory } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

let site: MachinesUnderTest;
let health: Client<typeof HealthReportService>;
beforeAll(async () => {
  site = await startMachines();
  health = createClient(HealthReportService, site.api.grpc());
});
afterAll(() => site.close());

let count = 0;
async function addMachine(): Promise<string> {
  count += 1;
  const machineId = `m-health-${count}`;
  await site.machines.registerMachine({ machine: { machineId } });
  return machineId;
}
const kind = "machine";
const alert = (id: string, message = "wet", target?: string) => ({
  id,
  message,
  ...(target !== undefined && { target }),
});
const statusOf = async (machineId: string) => (await site.machines.getMachine({ machineId })).status;
const degradedOf = async (machineId: string) => {
  const found = (await statusOf(machineId))?.conditions.find(({ type }) => type === "Degraded");
  return found && { status: found.status, reason: found.reason, message: found.message };
};
const found = async (filter: string) =>
  (await site.machines.listMachines({ filter })).machines.map(({ machineId }) => machineId);

describe("an open alert", () => {
  test("makes its machine degraded at once, by its name, and the machine is so no more when the report is removed", async () => {
    const id = await addMachine();
    expect(await degradedOf(id)).toBeUndefined();
    await health.putHealthReport({ kind, id, report: { source: "leak", alerts: [alert("Leak", "wet", "tray 2")] } });
    expect(await degradedOf(id)).toEqual({ status: true, reason: "OpenAlert", message: "leak: Leak tray 2: wet" });
    expect(await statusOf(id)).toMatchObject({ banners: ["Degraded"], failing: true });
    expect(await found(`failing=true AND machine_id=${id}`)).toEqual([id]);
    await health.removeHealthReport({ kind, id, source: "leak" });
    expect(await degradedOf(id)).toEqual({ status: false, reason: "AlertsEnded", message: "" });
    expect(await statusOf(id)).toMatchObject({ banners: [], failing: false });
  });

  test("ends with a report of its source that has none, and not with that of another source", async () => {
    const id = await addMachine();
    await health.putHealthReport({ kind, id, report: { source: "a", alerts: [alert("Leak")] } });
    await health.putHealthReport({ kind, id, report: { source: "b" } });
    expect(await degradedOf(id)).toMatchObject({ status: true });
    await health.putHealthReport({ kind, id, report: { source: "a" } });
    expect(await degradedOf(id)).toMatchObject({ status: false });
  });

  test("is outweighed by a report that replaces all others", async () => {
    const id = await addMachine();
    await health.putHealthReport({ kind, id, report: { source: "a", alerts: [alert("Leak")] } });
    const mode = HealthReportMode.REPLACE;
    await health.putHealthReport({ kind, id, report: { source: "operator" }, mode });
    expect(await degradedOf(id)).toMatchObject({ status: false });
    const { reports } = await health.listHealthReports({ kind, id });
    expect(reports.map(({ report, counts }) => [report?.source, counts])).toEqual([
      ["a", false],
      ["operator", true],
    ]);
  });

  test("of our own work makes no machine degraded", async () => {
    const id = await addMachine();
    await health.putHealthReport({ kind, id, report: { source: "host-fw-update", alerts: [alert("HostFirmware")] } });
    expect(await degradedOf(id)).toBeUndefined();
    expect((await health.listHealthReports({ kind, id })).reports).toMatchObject([{ counts: true }]);
  });

  test("leaves alone what the BMC said of itself", async () => {
    const id = await addMachine();
    const ofBmc = { status: true, reason: "PartNotWell", message: "Fan 1 is critical" } as const;
    await site.observe(id, [{ type: "Degraded", ...ofBmc }]);
    await health.putHealthReport({ kind, id, report: { source: "a", alerts: [alert("Leak")] } });
    await health.removeHealthReport({ kind, id, source: "a" });
    expect(await degradedOf(id)).toEqual(ofBmc);
  });

  test("that goes on keeps the time since when it does, and its report is told in the history", async () => {
    const id = await addMachine();
    for (const message of ["wet", "wetter"])
      await health.putHealthReport({ kind, id, report: { source: "a", alerts: [alert("Leak", message)] } });
    const { reports } = await health.listHealthReports({ kind, id });
    const [known] = reports[0]?.report?.alerts ?? [];
    expect(known).toMatchObject({ message: "wetter" });
    expect(known?.inAlertSince).not.toEqual(reports[0]?.report?.observedAt);
    const history = await listHistory(site.db, {
      key: { kind, id },
      after: null,
      newestFirst: false,
      types: [],
      limit: 10,
    });
    expect(history.map(({ type }) => type)).toEqual([
      "created",
      "health_report_changed",
      "conditions_changed",
      "health_report_changed",
      "conditions_changed",
    ]);
    expect(history.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5]);
  });
});

describe("a report that ends by itself", () => {
  test("is shown with its end, then counts no more and is forgotten; no other is", async () => {
    const id = await addMachine();
    await health.putHealthReport({ kind, id, report: { source: "stays" } });
    const expiresAfter = { seconds: 3600n };
    await health.putHealthReport({ kind, id, report: { source: "ends", alerts: [alert("Leak")] }, expiresAfter });
    const { reports } = await health.listHealthReports({ kind, id });
    expect(reports.map(({ expiresAt }) => expiresAt !== undefined)).toEqual([true, false]);
    expect(await forgetExpiredReports(site.db, 10)).toBe(0);
    await site.db.execute("update health_reports set expires_at = now() where source = 'ends' and id = $1", [id]);
    expect((await health.listHealthReports({ kind, id })).reports).toMatchObject([{ report: { source: "stays" } }]);
    expect(await refusal(health.removeHealthReport({ kind, id, source: "ends" }))).toMatchObject({
      code: Code.NotFound,
      field: "source",
    });
    expect(await forgetExpiredReports(site.db, 10)).toBe(1);
    expect(await forgetExpiredReports(site.db, 10)).toBe(0);
  });

  test("has an end that is after its beginning, and no later than a year", async () => {
    const id = await addMachine();
    for (const seconds of [0n, -1n, 367n * 86_400n])
      expect(
        await refusal(health.putHealthReport({ kind, id, report: { source: "a" }, expiresAfter: { seconds } })),
      ).toMatchObject({ code: Code.InvalidArgument, field: "expires_after" });
  });
});

describe("several reports in one transaction", () => {
  test("are written as one, on several devices and twice on one of them", async () => {
    const [one, two] = [await addMachine(), await addMachine()];
    const report = (source: string, ...ids: string[]) => ({
      source,
      observedAt: null,
      triggeredBy: null,
      successes: [],
      alerts: ids.map((id) => ({
        id,
        target: null,
        inAlertSince: null,
        message: "m",
        tenantMessage: null,
        classifications: [],
      })),
    });
    const key = (id: string) => ({ kind, id });
    const changed = await site.db.transaction(async (tx) => {
      await lockThings(tx, [one, two, "m-none"].map(key));
      return changeHealth(
        tx,
        site.deps.stores,
        [
          { key: key(one), put: report("a", "Leak"), mode: "merge" },
          { key: key(two), put: report("a", "Hot"), mode: "merge" },
          { key: key("m-none"), put: report("a", "Hot"), mode: "merge" },
          { key: key(one), end: "a" },
          { key: key(one), put: report("b", "Slow"), mode: "merge" },
        ],
        { actor: "rack r-1", now: new Date() },
      );
    });
    expect(changed).toEqual({ unknown: [key("m-none")], ended: 1 });
    expect(await degradedOf(one)).toMatchObject({ status: true, message: "b: Slow: m" });
    expect(await degradedOf(two)).toMatchObject({ status: true, message: "a: Hot: m" });
  });
});

describe("a call that cannot be", () => {
  test("is refused by the field that is wrong", async () => {
    const id = await addMachine();
    const report = { source: "a" };
    for (const [call, code, field] of [
      [() => health.listHealthReports({ kind: "run", id }), Code.InvalidArgument, "kind"],
      [() => health.listHealthReports({ kind, id: "No Id" }), Code.InvalidArgument, "id"],
      [() => health.listHealthReports({ kind, id: "m-none" }), Code.NotFound, ""],
      [() => health.putHealthReport({ kind, id }), Code.InvalidArgument, "report"],
      [() => health.putHealthReport({ kind, id, report: {} }), Code.InvalidArgument, "report.source"],
      [() => health.putHealthReport({ kind, id, report, mode: 7 as never }), Code.InvalidArgument, "mode"],
      [() => health.putHealthReport({ kind, id: "m-none", report }), Code.NotFound, ""],
      [() => health.removeHealthReport({ kind, id }), Code.InvalidArgument, "source"],
      [() => health.removeHealthReport({ kind, id, source: "none" }), Code.NotFound, "source"],
    ] as const)
      expect(await refusal(call())).toMatchObject({ code, field });
  });

  test("on a machine that is RETIRED is refused, and takes old reports off all the same", async () => {
    const id = await addMachine();
    const report = { source: "a", alerts: [alert("Leak")] };
    await health.putHealthReport({ kind, id, report });
    await site.lifecycle.retireMachine({ machineId: id });
    expect(await refusal(health.putHealthReport({ kind, id, report }))).toMatchObject({
      code: Code.FailedPrecondition,
    });
    await health.removeHealthReport({ kind, id, source: "a" });
    expect((await health.listHealthReports({ kind, id })).reports).toEqual([]);
  });
});

test("power shelves have the same reports here as in forge.Forge", async () => {
  const { powerShelf } = await site.shelves.createPowerShelf({
    bmcEndpoint: "192.0.2.9",
    bmcMac: "02:00:5e:99:00:01",
    bmcUsername: "root",
    bmcPassword: "secret",
  });
  const id = powerShelf?.id ?? "";
  await health.putHealthReport({ kind: "power_shelf", id, report: { source: "a", alerts: [alert("Leak")] } });
  const { healthReportEntries } = await site.forge.listPowerShelfHealthReports({ powerShelfId: { id } });
  expect(healthReportEntries).toMatchObject([{ report: { source: "a", alerts: [{ id: "Leak" }] } }]);
  expect((await site.shelves.getPowerShelf({ id })).powerShelf).toMatchObject({ health: "warning" });
});
