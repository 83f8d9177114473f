import { expect, test } from "vitest";
import type { HealthReportEntry } from "./health-report.ts";
import { openAlerts } from "./open-alerts.ts";

const alert = (id: string, message: string, target: string | null = null) => ({
  id,
  target,
  inAlertSince: new Date(0),
  message,
  tenantMessage: null,
  classifications: [],
});
const entry = (source: string, alerts: ReturnType<typeof alert>[], mode: HealthReportEntry["mode"] = "merge") => ({
  mode,
  expiresAt: null,
  report: { source, observedAt: new Date(0), triggeredBy: null, successes: [], alerts },
});

test("each alert is named with who reports it and the part that it is about", () => {
  expect(openAlerts([entry("dcgm", [alert("GpuXid", "fell off the bus", "gpu3")]), entry("leak", [])])).toEqual([
    "dcgm: GpuXid gpu3: fell off the bus",
  ]);
});

test("one probe that several sources report is one alert", () => {
  expect(openAlerts([entry("a", [alert("Hot", "85 C")]), entry("b", [alert("Hot", "86 C")])])).toEqual([
    "a, b: Hot: 85 C 86 C",
  ]);
});

test("a report that replaces others counts alone", () => {
  const merged = entry("dcgm", [alert("GpuXid", "lost")]);
  expect(openAlerts([merged, entry("operator", [], "replace")])).toEqual([]);
  expect(openAlerts([merged, entry("operator", [alert("Dirty", "dust")], "replace")])).toEqual([
    "operator: Dirty: dust",
  ]);
});

test("work of our own is no fault, and hides none either", () => {
  const ours = [alert("HostFirmwareUpdate", "being updated")];
  expect(openAlerts([entry("host-fw-update", ours)])).toEqual([]);
  expect(openAlerts([entry("host-fw-update", ours, "replace"), entry("dcgm", [alert("GpuXid", "lost")])])).toEqual([
    "dcgm: GpuXid: lost",
  ]);
});

test("of many alerts the first are named, and long messages are cut", () => {
  const many = Array.from({ length: 50 }, (_, at) => alert(`A${at}`, "x".repeat(5_000)));
  const named = openAlerts([entry("s", many)]);
  expect(named).toHaveLength(4);
  expect(named.at(-1)).toBe("and 47 more");
  expect(named.join("; ").length).toBeLessThan(1_000);
});

test("of many sources of one alert the first are named, and long names are cut", () => {
  const name = "s".repeat(256);
  const many = Array.from({ length: 850 }, (_, at) => entry(`${at}${name}`, [alert("A".repeat(256), "hot", name)]));
  const [named = ""] = openAlerts(many);
  expect(named).toMatch(/^0s+…, 1s+…, 2s+… and 847 more: A+… s+…: hot$/);
  expect(named.length).toBeLessThan(400);
});
