import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  DeviceHealthReportSchema,
  HealthReportMode,
  HealthReportService,
  type PutHealthReportRequest,
} from "../../../../contract/millwright/v1/health_report_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const now = new Date("2026-01-01T00:10:00Z");
const at = (minute: number) => ({ seconds: BigInt(Date.UTC(2026, 0, 1, 0, minute) / 1_000), nanos: 0 });
const report = { source: "leak", observedAt: at(5), alerts: [{ id: "Leak", message: "wet", target: "tray 2" }] };
const known = create(DeviceHealthReportSchema, {
  report,
  mode: HealthReportMode.MERGE,
  counts: true,
  expiresAt: at(30),
});

async function run(...args: string[]) {
  const put: PutHealthReportRequest[] = [];
  const removed: object[] = [];
  const result = await runAgainst(
    (router) =>
      router.service(HealthReportService, {
        listHealthReports: ({ id }) => ({ reports: id === "m-1" ? [known] : [] }),
        putHealthReport(request) {
          put.push(request);
          return {};
        },
        removeHealthReport({ kind, id, source }) {
          removed.push({ kind, id, source });
          return {};
        },
      }),
    args,
    { now },
  );
  return { ...result, put, removed };
}

test("the reports on a machine are shown with their alerts and their end, for people and programs", async () => {
  const { out } = await run("machine", "health-report", "show", "m-1");
  expect(out).toMatch(/leak +merge +yes .* Leak\[tray 2\]: wet/);
  const json = JSON.parse((await run("m", "hr", "show", "m-1", "-o", "json")).out);
  expect(json).toMatchObject([{ report: { source: "leak" }, mode: "merge", expires_at: "2026-01-01T00:30:00Z" }]);
  expect((await run("m", "health", "show", "m-2")).err).toBe("Machine m-2 has no health reports.\n");
});

test("a report is put on a machine, with how it counts and for how long", async () => {
  const words = ["add", "m-1", "--template", "degraded", "--message", "slow fan", "--replace", "--expires-after", "2h"];
  const { put, out } = await run("m", "hr", ...words);
  expect(put).toMatchObject([
    {
      kind: "machine",
      id: "m-1",
      mode: HealthReportMode.REPLACE,
      expiresAfter: { seconds: 7_200n },
      report: { source: "degraded", alerts: [{ id: "Degraded", message: "slow fan" }] },
    },
  ]);
  expect(out).toBe("Health report of degraded put on machine m-1.\n");
});

test("a report on a power shelf that ends by itself goes the same way", async () => {
  const { put } = await run("ps", "hr", "add", "ps-1", "--template", "degraded", "--expires-after", "1d");
  expect(put).toMatchObject([{ kind: "power_shelf", id: "ps-1", expiresAfter: { seconds: 86_400n } }]);
});

test("a report is taken off a machine", async () => {
  const { removed, out } = await run("m", "hr", "remove", "m-1", "leak");
  expect(removed).toEqual([{ kind: "machine", id: "m-1", source: "leak" }]);
  expect(out).toBe("Health report of leak removed from machine m-1.\n");
});

test("a duration that is none is refused, and nothing is sent", async () => {
  const { code, err, put } = await run("m", "hr", "add", "m-1", "--template", "degraded", "--expires-after", "soon");
  expect({ code, put }).toEqual({ code: 2, put: [] });
  expect(err).toContain("--expires-after");
});
