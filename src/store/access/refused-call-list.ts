import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { REFUSALS, type RefusedCalls } from "./refused-calls.ts";

export interface RefusedCallsRow extends RefusedCalls {
  readonly id: string;
}

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<RefusedCallsRow>()({
  id:      { type: "text", sql: "t.id", sort: "set", doc: "Of the row.", of: ({ id }) => id },
  who:     { type: "text", sql: "t.name", sort: "set", doc: "Who called; empty where nobody signed in, `*` for callers beyond what a minute has rows for.", of: ({ name }) => name },
  address: { type: "text", sql: "t.address", sort: "set", doc: "Where the calls came from.", of: ({ address }) => address },
  method:  { type: "text", sql: "t.method", sort: "set", doc: "The RPC or route.", of: ({ method }) => method },
  outcome: { type: REFUSALS, sql: "t.outcome", sort: "set", doc: "Why they were refused: nobody signed in, or the caller's roles do not allow the method.", of: ({ outcome }) => outcome },
  calls:   { type: "number", sql: "t.calls", sort: "set", doc: "How many in that minute.", of: ({ calls }) => calls },
  minute:  { type: "time", sql: "t.minute", sort: "set", doc: "The minute that they are counted in.", of: ({ minute }) => minute },
  last_at: { type: "time", sql: "t.last_at", sort: "set", doc: "When the last of them came.", of: ({ lastAt }) => lastAt },
});

type RefusedCallField = keyof typeof FIELDS & string;

export const refusedCallListing = createListing<RefusedCallField, RefusedCallsRow, RefusedCallsRow>({
  name: "refused calls",
  fields: FIELDS,
  id: "id",
  order: [
    { field: "last_at", descending: true },
    { field: "id", descending: true },
  ],
  columns: 't.id, t.minute, t.address, t.name, t.method, t.outcome, t.calls, t.last_at as "lastAt"',
  from: "refused_calls t",
  parse: (row) => row,
});
