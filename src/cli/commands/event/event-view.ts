import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Event, EventSchema } from "../../../../contract/millwright/v1/event_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import { SERVER_VOCABULARY } from "../../generated/server-vocabulary.ts";
import type { Column } from "../../terminal/output.ts";
import type { Tone } from "../../terminal/table.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import { factsText, spoken } from "./event-facts.ts";

export const eventJson = (event: Event) => jsonOf(EventSchema, event);

/** ready → maintenance, → initializing, error → gone: the states by their own words. */
function changeText({ type, fromState, toState }: Event): string {
  if (fromState !== "" && toState !== "") return `${fromState} → ${toState}`;
  if (toState !== "") return `→ ${toState}`;
  if (fromState !== "") return type === "deleted" ? `${fromState} → gone` : fromState;
  return "";
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");
const joined = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join("; ");

/** Why it happened and what of it matters, in words. What more there is, `-o json` has. */
function whyText(event: Event): string {
  const data = event.data ?? {};
  const trigger = textOf(data.trigger);
  // A reason that is but the name of the table's row says it in words.
  const reason = event.reason === trigger && data.commented !== true ? spoken(trigger) : event.reason;
  switch (event.type) {
    case "transition":
    case "deleted":
      return transitionText(data, reason);
    case "requested":
      return joined(requestText(data), reason);
    case "request_ended":
      return joined(`${requestText(data)}: ${textOf(data.outcome)}`, reason);
    case "health_report_changed":
      return joined(`report of ${textOf(data.source)}${endOf(data)}`, reason);
    case "conditions_changed":
      return joined(conditionsText(data), reason);
    case "metadata_changed":
      return joined(textOf(data.name) === "" ? "" : `name ${textOf(data.name)}`, reason);
    default:
      return joined(reason, factsText(data));
  }
}

const endOf = ({ removed, expired }: JsonObject): string =>
  removed === true ? " removed" : expired === true ? " expired" : "";

/** Reachable no (NoAnswer), Drained yes (NodeDrained). */
function conditionsText(data: JsonObject): string {
  const conditions = (Array.isArray(data.conditions) ? data.conditions : []).filter(isObject);
  return conditions
    .map(({ type, status, reason }) => `${textOf(type)} ${status === true ? "yes" : "no"} (${textOf(reason)})`)
    .join(", ");
}

/** Maintenance by its operation and who asked for it; how it ended; else the row's own reason. */
function transitionText(data: JsonObject, reason: string): string {
  const ended = (Array.isArray(data.ended) ? data.ended : []).filter(isObject);
  if (ended.length > 0) {
    return joined(
      ...ended.map(({ request, outcome, message }) => {
        const said = textOf(message);
        return `${isObject(request) ? requestText(request) : "request"}: ${textOf(outcome)}${said === "" ? "" : `: ${said}`}`;
      }),
    );
  }
  const state = isObject(data.state) ? data.state : {};
  const begun = isObject(state.request) ? requestText(state.request) : "";
  return joined(begun || reason, placeText(state));
}

/** Where in its state the thing is: firmware upgrade, wait for complete. */
const placeText = ({ activity, phase, step }: JsonObject): string =>
  [activity, phase === activity ? undefined : phase, step]
    .map(textOf)
    .filter((word) => word !== "")
    .map(spoken)
    .join(", ");

/** power_off for kim (https://tracker/1); of a rack, its activities. */
function requestText(request: JsonObject): string {
  const initiator = textOf(request.initiator);
  const activities = Array.isArray(request.activities) ? request.activities.filter(isObject) : undefined;
  const kinds = activities?.map(({ kind }) => spoken(textOf(kind))).join(", ");
  const what = textOf(request.operation) || (kinds === "" ? "all activities" : kinds) || "request";
  return `${what}${initiator === "" ? "" : ` for ${initiator}`}`;
}

function toneOf({ toState, type, alarm }: Event): Tone | undefined {
  if (alarm !== "" || toState === "error" || type === "failing" || type === "needs_intervention") return "bad";
  return toState === "ready" || type === "recovered" ? "good" : undefined;
}

const columns = {
  at: {
    title: "TIME",
    cell: (event) => clockTime(event.at),
    short: { cell: (event) => clockTime(event.at).slice("2026-".length), least: "01-31 12:00:00".length },
    plain: (event) => isoTime(event.at),
  },
  // Who goes on from somewhere copies it from -o json as well.
  cursor: { title: "CURSOR", cell: ({ cursor }) => cursor, minor: true },
  kind: { title: "KIND", cell: ({ kind }) => kind },
  id: { title: "ID", cell: ({ id }) => id },
  event: { title: "EVENT", cell: ({ type, alarm }) => alarm || type, plain: ({ type }) => type, tone: toneOf },
  change: { title: "CHANGE", cell: changeText, tone: toneOf },
  who: { title: "WHO", cell: ({ actor }) => actor },
  why: { title: "WHY", cell: whyText },
} as const satisfies { readonly [name: string]: Column<Event> };

/** Alarms of all things: when, what and why. */
export const alarmColumns: readonly Column<Event>[] = [
  columns.at,
  columns.kind,
  columns.id,
  columns.change,
  columns.why,
];

/** The history of one thing: who, why, when. */
export const historyColumns: readonly Column<Event>[] = [
  columns.at,
  columns.event,
  columns.change,
  columns.who,
  columns.why,
];

const NAMED_BY_PEOPLE = "m-rack1-slot-042".length;
const TOKEN_ID = "0123456789abcdef".length;

/** Ids of some kinds have one length; people choose those of machines, clusters and the like. */
function idWidthOf(kind: string): number {
  if (kind === "token") return TOKEN_ID;
  return SERVER_VOCABULARY.kinds.find((known) => known.kind === kind)?.idLength || NAMED_BY_PEOPLE;
}

/**
 * Events as they come, with the cursor from which a watch can go on. What is to come is not known: the widths are those of the longest
 * words that there are, and of the ids of the watched kind.
 */
export function eventColumns(kind: string | undefined): readonly Column<Event>[] {
  return [
    { ...columns.at, least: "2026-01-31 12:00:00".length },
    { ...columns.cursor, least: "1.23456.7890".length },
    { ...columns.kind, least: (kind ?? "expected_power_shelf").length },
    { ...columns.id, least: idWidthOf(kind ?? "run") },
    { ...columns.event, least: "credentials_changed".length },
    { ...columns.change, least: "PROVISIONING → MAINTENANCE".length },
    { ...columns.who, least: "condition reconciler".length },
    { ...columns.why, least: 30 },
  ];
}
