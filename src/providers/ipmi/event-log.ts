import type { DeviceLogEntry } from "../../capabilities/sensors.ts";
import { oneLine } from "../transport/one-line.ts";

const LONGEST_MESSAGE = 300;
const SEVERE = /critical|non-recoverable|fault|failure|overheat|uncorrectable|power off|lost/i;
const NOTEWORTHY = /warn|non-critical|degraded|correctable|predictive|intrusion/i;

/** What `ipmitool -c sel list` writes, newest first: number, date, time, sensor, what happened, and whether it came or went. */
export function eventLogOf(text: string, limit: number): readonly DeviceLogEntry[] {
  const entries = text.split("\n").flatMap((line) => entryOf(line) ?? []);
  return entries.reverse().slice(0, Math.max(0, limit));
}

function entryOf(line: string): DeviceLogEntry | undefined {
  const [id = "", date = "", time = "", ...said] = line.split(",").map((field) => field.trim());
  if (!/^[0-9a-f]{1,4}$/i.test(id) || said.length === 0) return undefined;
  const message = oneLine(said.filter((part) => part !== "").join(" · "), LONGEST_MESSAGE);
  return { id, at: timeOf(date, time), severity: severityOf(message), message };
}

/** `11/15/2026` or, of newer releases, `11/15/26`, with the time in UTC; null for an entry from before the clock was set. */
function timeOf(date: string, time: string): Date | null {
  const [, month, day, year] = /^(\d{1,2})\/(\d{1,2})\/(\d{4}|\d{2})$/.exec(date) ?? [];
  const [, hour, minute, second] = /^(\d{1,2}):(\d{2}):(\d{2})(?: UTC)?$/.exec(time) ?? [];
  if (year === undefined || hour === undefined) return null;
  const full = year.length === 2 ? 2_000 + Number(year) : Number(year);
  const at = new Date(
    Date.UTC(full, Number(month) - 1, Number(day), Number(hour), Number(minute ?? 0), Number(second ?? 0)),
  );
  return Number.isNaN(at.getTime()) ? null : at;
}

/** An event that has ended is history, whatever it was. */
function severityOf(message: string): DeviceLogEntry["severity"] {
  if (/deasserted$/i.test(message)) return "ok";
  if (NOTEWORTHY.test(message)) return "warning";
  return SEVERE.test(message) ? "critical" : "ok";
}
