import { type Client, Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { HealthReportMode, HealthReportService } from "../../../contract/millwright/v1/health_report_pb.js";
import { sweep } from "../../../src/engine/sweep.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { changeHealth, endExpiredReports } from "../../../src/store/device/health-changes.ts";
import { listHistory } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { eventually } from "../../support/eventually.ts";
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

const eventsOf = async (key: { kind: string; id: string }) => {
  const types = ["health_report_changed"];
  return listHistory(site.db, { key, after: null, newestFirst: false, types, limit: 400 });
};

describe("a report that ends by itself", () => {
  test("that its source renews while it is being ended stays, and is no event", async () => {
    const id = await addMachine();
    const put = () => health.putHealthReport({ kind, id, report: { source: "a" }, expiresAfter: { seconds: 3600n } });
    await put();
    await site.db.execute("update health_reports set expires_at = now() where id = $1", [id]);
    let ending: Promise<number> | undefined;
    await site.db.transaction(async (tx) => {
      await lockThings(tx, [{ kind, id }]);
      ending = endExpiredReports(site.db, site.deps.stores);
      await eventually(
        async () => {
          const [row] = await site.db.query<{ waiting: number }>(
            "select count(*) as waiting from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())",
          );
          return (row?.waiting ?? 0) > 0;
        },
        { what: "the end of the report waits for the lock" },
      );
      await tx.execute("update health_reports set expires_at = now() + interval '1 hour' where id = $1", [id]);
    });
    expect(await ending).toBe(0);
    expect(await reportsOf(id)).toHaveLength(1);
    expect(await eventsOf({ kind, id })).toHaveLength(1);
  });

  test("many of them end at once, on machines and on shelves", async () => {
    const id = await addMachine();
    for (const at of Array.from({ length: 60 }).keys())
      await health.putHealthReport({ kind, id, report: { source: `s-${at}` }, expiresAfter: { seconds: 60n } });
    const { powerShelf } = await site.shelves.createPowerShelf({
      bmcEndpoint: "192.0.2.10",
      bmcMac: "02:00:5e:99:00:02",
      bmcUsername: "root",
      bmcPassword: "secret",
    });
    const shelf = { kind: "power_shelf", id: powerShelf?.id ?? "" };
    for (const at of Array.from({ length: 60 }).keys())
      await health.putHealthReport({ ...shelf, report: { source: `s-${at}` }, expiresAfter: { seconds: 60n } });
    await site.db.execute("update health_reports set expires_at = now() where id = any($1)", [[id, shelf.id]]);
    await sweep(site.db, site.deps.stores, silentLog);
    for (const key of [{ kind, id }, shelf])
      expect((await eventsOf(key)).filter(({ data }) => data.expired === true)).toHaveLength(60);
    expect(await site.db.query("select source from health_reports where id = any($1)", [[id, shelf.id]])).toEqual([]);
  });

  test("is shown with its end, then counts no more and is forgotten; no other is", async () => {
    const id = await addMachine();
    await health.putHealthReport({ kind, id, report: { source: "stays" } });
    const expiresAfter = { seconds: 3600n };
    await health.putHealthReport({ kind, id, report: { source: "ends", alerts: [alert("Leak")] }, expiresAfter });
    const { reports } = await health.listHealthReports({ kind, id });
    expect(reports.map(({ expiresAt }) => expiresAt !== undefined)).toEqual([true, false]);
    const { stores } = site.deps;
    expect(await endExpiredReports(site.db, stores)).toBe(0);
    await site.db.execute("update health_reports set expires_at = now() where source = 'ends' and id = $1", [id]);
    expect((await health.listHealthReports({ kind, id })).reports).toMatchObject([{ report: { source: "stays" } }]);
    expect(await refusal(health.removeHealthReport({ kind, id, source: "ends" }))).toMatchObject({
      code: Code.NotFound,
      field: "source",
    });
    expect(await endExpiredReports(site.db, stores)).toBe(1);
    expect(await endExpiredReports(site.db, stores)).toBe(0);
    expect(await degradedOf(id)).toMatchObject({ status: false, reason: "AlertsEnded" });
    expect(await eventsOf({ kind, id })).toMatchObject([
      { type: "health_report_changed", data: { source: "stays" } },
      { type: "health_report_changed", data: { source: "ends", alerts: ["Leak"] } },
      { type: "health_report_changed", actor: "health report expiry", data: { source: "ends", expired: true } },
    ]);
  });

  test("has an end that is after its beginning, and no later than a year", async () => {
    const id = await addMachine();
    for (const seconds of [0n, -1n, 367n * 86_400n])
      expect(
        await refusal(health.putHealthReport({ kind, id, report: { source: "a" }, expiresAfter: { seconds } })),
      ).toMatchObject({ code: Code.InvalidArgument, field: "expires_after" });
  });
});

const versionAndEvents = async (id: string) => {
  const history = await listHistory(site.db, {
    key: { kind, id },
    after: null,
    newestFirst: false,
    types: [],
    limit: 99,
  });
  return history.map(({ type, version }) => `${version} ${type}`);
};
const reportsOf = async (id: string) => (await health.listHealthReports({ kind, id })).reports;

describe("a report that says the same again", () => {
  test("is no event and no new version; its times are those of the last one", async () => {
    const id = await addMachine();
    const report = { source: "a", alerts: [alert("Leak")], successes: [{ id: "Fan" }] };
    const put = (seconds: bigint, expires: bigint) =>
      health.putHealthReport({
        kind,
        id,
        report: { ...report, observedAt: { seconds } },
        expiresAfter: { seconds: expires },
      });
    await put(1_000n, 60n);
    const before = await versionAndEvents(id);
    const [first] = await reportsOf(id);
    for (const at of [1_030n, 1_060n, 1_090n, 1_120n]) await put(at, 3_600n);
    expect(await versionAndEvents(id)).toEqual(before);
    const [last] = await reportsOf(id);
    expect(last?.report?.observedAt?.seconds).toBe(1_120n);
    expect(Number(last?.expiresAt?.seconds) - Number(first?.expiresAt?.seconds)).toBeGreaterThan(3_000);
    expect(last?.report?.alerts[0]?.inAlertSince).toEqual(first?.report?.alerts[0]?.inAlertSince);
    expect(await degradedOf(id)).toMatchObject({ status: true });
  });

  test("after it had expired is an event", async () => {
    const id = await addMachine();
    const put = () => health.putHealthReport({ kind, id, report: { source: "a" }, expiresAfter: { seconds: 60n } });
    await put();
    await site.db.execute("update health_reports set expires_at = now() where id = $1", [id]);
    await put();
    expect(await versionAndEvents(id)).toEqual(["1 created", "2 health_report_changed", "3 health_report_changed"]);
  });

  test("with another message, another mode or one alert less is an event", async () => {
    const id = await addMachine();
    const alerts = [alert("Leak"), alert("Hot")];
    await health.putHealthReport({ kind, id, report: { source: "a", alerts } });
    const wetter = alert("Leak", "wetter");
    for (const { mode, ...report } of [
      { mode: HealthReportMode.MERGE, source: "a", alerts: [wetter, alert("Hot")] },
      { mode: HealthReportMode.REPLACE, source: "a", alerts: [wetter, alert("Hot")] },
      { mode: HealthReportMode.REPLACE, source: "a", alerts: [wetter] },
    ])
      await health.putHealthReport({ kind, id, report, mode });
    expect((await versionAndEvents(id)).filter((event) => event.endsWith("health_report_changed"))).toHaveLength(4);
  });
});

describe("a device takes no more than its reports' limits:", () => {
  const put = (id: string, source: string, message = "m") =>
    health.putHealthReport({ kind, id, report: { source, alerts: [alert("Leak", message)] } });
  const everyReport = (id: string) => site.db.query("select * from health_reports where id = $1 order by source", [id]);

  test("64 sources; one that is known may report again, and a place that becomes free is taken", async () => {
    const id = await addMachine();
    const sources = Array.from({ length: 64 }, (_, at) => `s-${at}`);
    for (const source of sources) await put(id, source);
    const before = [await everyReport(id), await versionAndEvents(id)];
    const refused = await refusal(put(id, "one-more"));
    expect(refused).toMatchObject({ code: Code.ResourceExhausted });
    expect(refused.message).toMatch(
      /^machine m-health-\d+ has health reports of 64 sources, and the limit is 64; remove/,
    );
    expect([await everyReport(id), await versionAndEvents(id)]).toEqual(before);
    await put(id, "s-0", "wetter");
    await health.removeHealthReport({ kind, id, source: "s-1" });
    await put(id, "one-more");
    expect((await degradedOf(id))?.message).toMatch(/^one-more, s-0, s-10 and 61 more: Leak: m wetter$/);
  });

  test("1 MiB of reports, so that their list is below the 4 MiB of clients; a smaller report is taken", async () => {
    const id = await addMachine();
    const large = "x".repeat(250_000);
    for (const source of ["a", "b", "c", "d"]) await put(id, source, large);
    expect(await refusal(put(id, "e", large))).toMatchObject({ code: Code.ResourceExhausted });
    // As a device may be that got its reports before there was a limit.
    await site.db.execute(
      `insert into health_reports (kind, id, source, mode, report)
       select kind, id, 'f' || source, mode, jsonb_set(report, '{source}', to_jsonb('f' || source)) from health_reports where id = $1`,
      [id],
    );
    await put(id, "a", large.slice(1));
    expect(await refusal(put(id, "a", large))).toMatchObject({ code: Code.ResourceExhausted });
    await put(id, "a", "small");
    expect(await reportsOf(id)).toHaveLength(8);
  });

  test("an event names a few alerts and the number of the others", async () => {
    const id = await addMachine();
    const alerts = Array.from({ length: 500 }, (_, at) => alert(`A-${at}`));
    await health.putHealthReport({ kind, id, report: { source: "a", alerts } });
    const [event] = await eventsOf({ kind, id });
    expect(event?.data).toMatchObject({ source: "a", more_alerts: 480 });
    expect(event?.data.alerts).toEqual(alerts.slice(0, 20).map((each) => each.id));
  });

  test("the condition's message is bounded however long all names are", async () => {
    const id = await addMachine();
    const name = "n".repeat(250);
    for (const at of [1, 2, 3, 4, 5]) {
      const alerts = [1, 2, 3, 4].map((which) => alert(`${which}${name}`, "m".repeat(5_000), name));
      await health.putHealthReport({ kind, id, report: { source: `${at}${name}`, alerts } });
    }
    expect((await degradedOf(id))?.message.length).toBeLessThanOrEqual(2_000);
  });
});

describe("a report that is far too large", () => {
  const reportWith = (count: number) => ({
    source: "a",
    alerts: Array.from({ length: count }, () => ({ id: "a", message: "abcd" })),
  });

  test("is refused before it is parsed, here and in forge.Forge", async () => {
    const report = reportWith(350_000);
    const powerShelfId = { id: "ps-none" };
    for (const call of [
      () => health.putHealthReport({ kind, id: "m-health-1", report }),
      () => site.forge.insertPowerShelfHealthReport({ powerShelfId, healthReportEntry: { report } }),
    ]) {
      const refused = await refusal(call());
      expect(refused).toMatchObject({ code: Code.ResourceExhausted });
      expect(refused.message).toContain("larger than the limit of 1048576 bytes");
    }
  });

  test("is refused before all of it is read where it has few bytes for many alerts", async () => {
    const refused = await refusal(health.putHealthReport({ kind, id: "m-health-1", report: reportWith(90_000) }));
    expect(refused).toMatchObject({ code: Code.InvalidArgument });
    expect(refused.message).toMatch(/^report\.alerts\[\d+\]\S*: the request has more than 50000 values; split/);
  });
});

describe("text that cannot be shown", () => {
  const put = (report: object) => health.putHealthReport({ kind, id: "m-health-1", report });

  test("is refused in names", async () => {
    for (const [report, field] of [
      [{ source: "\u001b[31mred" }, "report.source"],
      [{ source: "a", triggeredBy: "a\u0007" }, "report.triggered_by"],
      [{ source: "a", alerts: [alert("\u001b[2J")] }, "report.alerts[0].id"],
      [{ source: "a", alerts: [alert("A"), alert("B", "m", "x\u202ey")] }, "report.alerts[1].target"],
      [{ source: "a", alerts: [{ ...alert("A"), classifications: ["\u2066"] }] }, "report.alerts[0].classifications"],
      [{ source: "a", successes: [{ id: "A\u200b" }] }, "report.successes[0].id"],
      [{ source: "a", successes: [{ id: "A", target: "t".repeat(257) }] }, "report.successes[0].target"],
    ] as const)
      expect(await refusal(put(report))).toMatchObject({ code: Code.InvalidArgument, field });
  });

  test("is replaced in messages, and line breaks stay", async () => {
    const id = await addMachine();
    const alerts = [{ ...alert("Leak", "a\u202eb\u001b[2J\nwet"), tenantMessage: "\u0007 電源" }];
    await health.putHealthReport({ kind, id, report: { source: "a", alerts } });
    const [stored] = await reportsOf(id);
    expect(stored?.report?.alerts).toMatchObject([{ message: "a\ufffdb\ufffd[2J\nwet", tenantMessage: "\ufffd 電源" }]);
    expect(await degradedOf(id)).toMatchObject({ message: "a: Leak: a\ufffdb\ufffd[2J wet" });
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
  await site.db.execute(
    `insert into health_reports (kind, id, source, mode, report)
     select kind, id, 's-' || at, mode, jsonb_set(report, '{source}', to_jsonb('s-' || at)) from health_reports, generate_series(1, 63) as at where id = $1`,
    [id],
  );
  const insert = (source: string) =>
    site.forge.insertPowerShelfHealthReport({ powerShelfId: { id }, healthReportEntry: { report: { source } } });
  const refused = await refusal(insert("one-more"));
  expect(refused).toMatchObject({ code: Code.ResourceExhausted });
  expect(refused.message).toMatch(/^power shelf \S+ has health reports of 64 sources, and the limit is 64; remove/);
  await insert("a");
});
