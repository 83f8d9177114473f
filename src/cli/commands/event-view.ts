import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Event, EventSchema } from "../../../contract/millwright/v1/event_pb.js";
import type { Column } from "../output.ts";
import { jsonOf } from "../proto-json.ts";
import type { Tone } from "../table.ts";
import { clockTime, isoTime } from "../times.ts";
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
  const reason = event.reason === trigger ? spoken(trigger) : event.reason;
  switch (event.type) {
    case "transition":
    case "deleted":
      return transitionText(data, reason);
    case "requested":
      return joined(requestText(data), reason);
    case "request_ended":
      return joined(`${requestText(data)}: ${textOf(data.outcome)}`, reason);
    case "health_report_changed":
      return joined(`report of ${textOf(data.source)}${data.removed === true ? " removed" : ""}`, reason);
    case "conditions_changed":
      return joined(conditionsText(data), reason);
    case "metadata_changed":
      return joined(textOf(data.name) === "" ? "" : `name ${textOf(data.name)}`, reason);
    default:
      return joined(reason, factsText(data));
  }
}

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
  const begun = isObject(data.state) && isObject(data.state.request) ? data.state.request : undefined;
  return begun ? requestText(begun) : reason;
}

/** power_off for kim (https://tracker/1). */
function requestText(request: JsonObject): string {
  const initiator = textOf(request.initiator);
  return `${textOf(request.operation) || "request"}${initiator === "" ? "" : ` for ${initiator}`}`;
}

function toneOf({ toState, type }: Event): Tone | undefined {
  if (toState === "error" || type === "failing" || type === "needs_intervention") return "bad";
  return toState === "ready" || type === "recovered" ? "good" : undefined;
}

const at: Column<Event> = {
  title: "TIME",
  cell: (event) => clockTime(event.at),
  plain: (event) => isoTime(event.at),
  least: 19,
};
const what: readonly Column<Event>[] = [
  { title: "EVENT", cell: (event) => event.type, tone: toneOf, least: 13 },
  { title: "CHANGE", cell: changeText, tone: toneOf, least: 21 },
  { title: "WHO", cell: (event) => event.actor, least: 10 },
];
const why: Column<Event> = { title: "WHY", cell: whyText };

/** The history of one thing: who, why, when. */
export const historyColumns: readonly Column<Event>[] = [at, ...what, why];
/** Events of many things, with the cursor from which a watch can go on. */
export const eventColumns: readonly Column<Event>[] = [
  at,
  { title: "CURSOR", cell: (event) => event.cursor, least: 9 },
  { title: "KIND", cell: (event) => event.kind, least: 11 },
  { title: "ID", cell: (event) => event.id, least: 15 },
  ...what,
  why,
];
