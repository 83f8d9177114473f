import { isJsonObject, type Json, type JsonObject } from "../../../kernel/lifecycle.ts";

const objectsOf = (value: Json | undefined): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : []);
const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

/** A device's words must neither forge lines of the log nor steer a terminal. */
const oneLine = (text: string): string => text.replace(/\p{Cc}+/gu, " ");

/** One entry of the BMC's log: 2026-01-31T12:00:00.000Z critical: fan 3 failed. */
const eventLine = ({ at, severity, message }: JsonObject): string =>
  oneLine([textOf(at), `${textOf(severity)}: ${textOf(message)}`].filter((part) => part !== "").join(" "));

/** What the BMC logged last, as lines: all there is where the system itself tells nothing any more. */
export const eventLines = (events: readonly JsonObject[]): string =>
  events.map((event) => `${eventLine(event)}\n`).join("");

/** What was collected, as whoever repairs the machine reads it in the run's log; `[rma]` before each line as before all others. */
export function evidenceLines(evidence: JsonObject): string {
  const { reason, ticket, vendor, model, serial, systemUuid, health } = evidence;
  const firmware = objectsOf(evidence.firmware).map(({ name, version }) => `${textOf(name)} ${textOf(version)}`);
  const ailments = objectsOf(evidence.ailments).map(({ name, health: how }) => `${textOf(name)} is ${textOf(how)}`);
  const events = objectsOf(evidence.events).map(eventLine);
  const logs = evidence.lastLogsFrom === "system" ? textOf(evidence.lastLogs).trimEnd().split("\n") : [];
  const known = (label: string, value: Json | undefined) =>
    textOf(value) === "" ? [] : [`${label}: ${textOf(value)}`];
  const block = (label: string, lines: readonly string[]) =>
    lines.length === 0 ? [`${label}: nothing told`] : [`${label}:`, ...lines.map((line) => `  ${line}`)];
  return [
    ...known("reason", reason),
    ...known("ticket", ticket),
    ...known(
      "machine",
      [vendor, model]
        .map(textOf)
        .filter((part) => part !== "")
        .join(" "),
    ),
    ...known("serial", serial),
    ...known("system UUID", systemUuid),
    ...known("health", [textOf(health), ...ailments].filter((part) => part !== "").join("; ")),
    ...known("firmware", firmware.join(", ")),
    ...block("last events of its BMC", events),
    ...block("last log lines of its system", logs),
  ]
    .map((line) => `[rma] ${oneLine(line)}\n`)
    .join("");
}
