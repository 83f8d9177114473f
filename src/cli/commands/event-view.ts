import { type Event, EventSchema } from "../../../contract/millwright/v1/event_pb.js";
import type { Column } from "../output.ts";
import { jsonOf } from "../proto-json.ts";
import type { Tone } from "../table.ts";
import { clockTime, isoTime } from "../times.ts";

export const eventJson = (event: Event) => jsonOf(EventSchema, event);

/** ready → maintenance, → initializing, error → gone. */
function changeText({ type, fromState, toState }: Event): string {
  if (fromState !== "" && toState !== "") return `${fromState} → ${toState}`;
  if (toState !== "") return `→ ${toState}`;
  if (fromState !== "") return type === "deleted" ? `${fromState} → gone` : fromState;
  return "";
}

/** The reason, and what the event's data adds to it, short. */
function whyText(event: Event): string {
  const extras = Object.entries(event.data ?? {})
    .filter(
      ([, value]) => ["string", "number", "boolean"].includes(typeof value) && value !== event.reason && value !== "",
    )
    .map(([name, value]) => `${name}=${String(value)}`);
  return [event.reason, extras.length === 0 ? "" : `(${extras.join(", ")})`].filter((part) => part !== "").join(" ");
}

function toneOf({ toState, type }: Event): Tone | undefined {
  if (toState === "error" || type === "quarantined") return "bad";
  return toState === "ready" ? "good" : undefined;
}

const at: Column<Event> = { title: "TIME", cell: (event) => clockTime(event.at), plain: (event) => isoTime(event.at) };
const what: readonly Column<Event>[] = [
  { title: "EVENT", cell: (event) => event.type },
  { title: "CHANGE", cell: changeText, tone: toneOf },
  { title: "WHO", cell: (event) => event.actor },
  { title: "WHY", cell: whyText },
];

/** The history of one thing: who, why, when. */
export const historyColumns: readonly Column<Event>[] = [at, ...what];
/** Events of many things. */
export const eventColumns: readonly Column<Event>[] = [
  at,
  { title: "KIND", cell: (event) => event.kind },
  { title: "ID", cell: (event) => event.id },
  ...what,
];
