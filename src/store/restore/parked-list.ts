import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { VERDICTS, type Verdict } from "./parked.ts";

/** A thing that was parked in a review, and what became of it. */
export interface ParkedWork {
  readonly reviewId: string;
  readonly kind: string;
  readonly id: string;
  /** What it was doing, for people. */
  readonly doing: string;
  readonly parkedAt: Date;
  /** Null: it waits for a decision. */
  readonly verdict: Verdict | null;
  readonly settledAt: Date | null;
  readonly settledBy: string | null;
}

type Row = ParkedWork & { readonly key: string };

const STANDINGS = ["waiting", ...VERDICTS] as const;

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<Row>()({
  key:       { type: "text", sql: "t.key", sort: "set", doc: "The kind and the id, as `run/run-1`.", of: ({ key }) => key },
  review:    { type: "text", sql: "t.review_id", sort: "set", doc: "The restore review that it is part of.", of: ({ reviewId }) => reviewId },
  kind:      { type: "text", sql: "t.kind", sort: "set", doc: "The kind of the thing.", of: ({ kind }) => kind },
  id:        { type: "text", sql: "t.id", sort: "set", doc: "The id of the thing.", of: ({ id }) => id },
  status:    { type: STANDINGS, sql: "coalesce(t.verdict, 'waiting')", doc: "Whether it waits for a decision, or what became of it.", of: ({ verdict }) => verdict ?? "waiting" },
  parked_at: { type: "time", sql: "t.parked_at", sort: "set", doc: "When it was parked.", of: ({ parkedAt }) => parkedAt },
  settled_at: { type: "time", sql: "t.settled_at", sort: "nullable", doc: "When somebody decided on it.", of: ({ settledAt }) => settledAt },
});

export type ParkedField = keyof typeof FIELDS & string;

/** What restored backups had parked, of all reviews. */
export const parkedListing = createListing<ParkedField, Row, Row>({
  name: "parked work",
  fields: FIELDS,
  id: "key",
  idOf: ({ key }) => key,
  order: [
    { field: "kind", descending: false },
    { field: "key", descending: false },
  ],
  columns: `t.key, t.review_id as "reviewId", t.kind, t.id, t.doing, t.parked_at as "parkedAt", t.verdict, t.settled_at as "settledAt", t.settled_by as "settledBy"`,
  from: `(select *, kind || '/' || id || '/' || review_id as key from parked_work) t`,
  parse: (row) => row,
});
