import { expect, test } from "vitest";
import type { HealthReport, HealthReportEntry } from "./health-report.ts";
import { deviceReport, healthWord, mergeHealth } from "./merged-health.ts";

const at = (second: number) => new Date(second * 1_000);
const alert = (id: string, message: string, since: number, classifications: string[] = []) => ({
  id,
  target: null,
  inAlertSince: at(since),
  message,
  tenantMessage: null,
  classifications,
});
const entry = (source: string, parts: Partial<HealthReport>, mode: HealthReportEntry["mode"] = "merge") => ({
  mode,
  expiresAt: null,
  report: { source, observedAt: at(1), triggeredBy: null, successes: [], alerts: [], ...parts },
});

test("without any report there is nothing to say, and no time at which it was said", () => {
  const { report, sources } = mergeHealth([]);
  expect(report).toMatchObject({ alerts: [], successes: [], observedAt: null });
  expect(sources).toEqual([]);
});

test("merged reports stand beside each other, as of the newest", () => {
  const { report, sources } = mergeHealth([
    entry("a", { alerts: [alert("hot", "a: hot", 5)], observedAt: at(7) }),
    entry("b", { successes: [{ id: "fan", target: null }], observedAt: at(9) }),
  ]);
  expect(report.alerts.map(({ id }) => id)).toEqual(["hot"]);
  expect(report.successes).toEqual([{ id: "fan", target: null }]);
  expect(report.observedAt).toEqual(at(9));
  expect(sources).toEqual([
    { source: "a", mode: "merge" },
    { source: "b", mode: "merge" },
  ]);
});

test("one probe in alert at two sources is one alert since the earliest, and passes nowhere", () => {
  const { report } = mergeHealth([
    entry("a", { alerts: [alert("hot", "a: hot", 5, ["x"])] }),
    entry("b", { alerts: [alert("hot", "b: hot", 3, ["x", "y"])] }),
    entry("c", { successes: [{ id: "hot", target: null }] }),
  ]);
  expect(report.alerts).toEqual([alert("hot", "a: hot\nb: hot", 3, ["x", "y"])]);
  expect(report.successes).toEqual([]);
});

test("a report that replaces counts alone", () => {
  const { report, sources } = mergeHealth([
    entry("a", { alerts: [alert("hot", "hot", 5)] }),
    entry("operator", { successes: [{ id: "checked", target: null }] }, "replace"),
  ]);
  expect(report.alerts).toEqual([]);
  expect(sources).toEqual([{ source: "operator", mode: "replace" }]);
});

test.each([
  ["unknown while nobody says anything", null, [], "unknown"],
  ["what the BMC says when it is alone", "critical", [], "critical"],
  ["ok when all say so", "ok", [entry("a", {})], "ok"],
  ["warning when another than the BMC alerts", "ok", [entry("a", { alerts: [alert("hot", "hot", 1)] })], "warning"],
  [
    "critical when the BMC says so, whoever else alerts",
    "critical",
    [entry("a", { alerts: [alert("hot", "hot", 1)] })],
    "critical",
  ],
  ["ok when a report replaces what the BMC says", "critical", [entry("a", {}, "replace")], "ok"],
  [
    "warning when a report with an alert replaces it",
    "critical",
    [entry("a", { alerts: [alert("hot", "hot", 1)] }, "replace")],
    "warning",
  ],
] as const)("in a word it is %s", (_what, health, reports, word) => {
  const device = deviceReport({ health, observedAt: null } as Parameters<typeof deviceReport>[0], at(0));
  expect(healthWord(mergeHealth([...device, ...reports]), health)).toBe(word);
});
