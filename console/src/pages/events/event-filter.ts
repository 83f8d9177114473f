import type { Event } from "../../../../contract/millwright/v1/event_pb.js";

/** What the events in the address are limited to. Words are joined by commas; empty admits all. */
export interface EventFilter {
  readonly kinds: readonly string[];
  readonly types: readonly string[];
  readonly actors: readonly string[];
  /** A place in the journal, such as one that somebody sent as a link: what came before it. */
  readonly from: string;
}

const words = (text: string | undefined): readonly string[] =>
  (text ?? "")
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

export const eventFilterFrom = (search: Readonly<Record<string, string | undefined>>): EventFilter => ({
  kinds: words(search.kinds),
  types: words(search.types),
  actors: words(search.actors),
  from: search.from ?? "",
});

/** As the server decides it: a type may also be what an event calls for. */
export function admits({ kinds, types, actors }: EventFilter, event: Event): boolean {
  return (
    (kinds.length === 0 || kinds.includes(event.kind)) &&
    (types.length === 0 || types.includes(event.type) || types.includes(event.alarm)) &&
    (actors.length === 0 || actors.includes(event.actor))
  );
}
