import { namedList } from "../../kernel/named-list.ts";
import { type HealthReportEntry, type ProbeAlert, probeOf } from "./health-report.ts";
import { mergeHealth } from "./merged-health.ts";

/**
 * Sources that report work of our own, such as a firmware update. Their alerts tell others to keep away from the device; the device
 * itself has no fault, so they never make it degraded.
 */
const OWN_WORK_SOURCES: readonly string[] = ["host-fw-update"];

const MOST_NAMED = 3;
const LONGEST_MESSAGE = 200;
const LONGEST_NAME = 60;

/**
 * The alerts that make a device degraded, each in a few words: "dcgm: GpuXid gpu3: fell off the bus". Merged as everywhere, but for
 * reports of our own work, which neither count nor hide others. Many alerts, and many
 * sources of one, are cut to the first few and their number: the text stands in every list and in every event of the condition.
 */
export function openAlerts(entries: readonly HealthReportEntry[]): string[] {
  const ofOthers = entries.filter(({ report }) => !OWN_WORK_SOURCES.includes(report.source));
  const { report, sources } = mergeHealth(ofOthers);
  const counted = new Set(sources.map(({ source }) => source));
  const reporters = Map.groupBy(
    ofOthers.flatMap((entry) =>
      counted.has(entry.report.source)
        ? entry.report.alerts.map((alert) => ({ probe: probeOf(alert), source: entry.report.source }))
        : [],
    ),
    ({ probe }) => probe,
  );
  const named = report.alerts.slice(0, MOST_NAMED).map((alert) => {
    const by = new Set((reporters.get(probeOf(alert)) ?? []).map(({ source }) => source));
    return `${namedSources([...by])}: ${wordsOf(alert)}`;
  });
  const more = report.alerts.length - named.length;
  return more > 0 ? [...named, `and ${more} more`] : named;
}

const namedSources = (sources: readonly string[]): string =>
  namedList(
    sources.map((source) => cut(source, LONGEST_NAME)),
    MOST_NAMED,
  );

function wordsOf({ id, target, message }: ProbeAlert): string {
  const named = [id, target ?? ""].map((name) => cut(name, LONGEST_NAME)).filter((name) => name !== "");
  const said = cut(message.replace(/\s+/g, " ").trim(), LONGEST_MESSAGE);
  return [named.join(" "), said].filter((part) => part !== "").join(": ");
}

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1).toWellFormed()}…` : text;
