import { restoreReviewLifecycle } from "../../lifecycles/restore-review/lifecycle.ts";
import type { RestoreReview } from "../../lifecycles/restore-review/restore-review.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";
import { isText, listOf, orNull, readerOf } from "../postgres/stored-json.ts";

interface ReviewRow extends StateColumns {
  created_at: Date;
  facts: unknown;
}

type Facts = RestoreReview["facts"];
const areRecords = listOf((value: unknown): value is never => typeof value === "object" && value !== null);

const readFacts = readerOf<Facts>({
  findings: [areRecords, []],
  asOf: [orNull(isText), null],
  returnedTokens: [areRecords, []],
  foundBy: [isText, ""],
});

const parseReview = (row: ReviewRow): RestoreReview => ({
  ...parseStateColumns(row),
  id: row.id,
  createdAt: row.created_at,
  facts: readFacts(row.facts),
});

const SELECT = `select ${STATE_COLUMNS}, t.created_at from restore_reviews t`;

export const restoreReviewStore: ThingStore<RestoreReview> = {
  lifecycle: restoreReviewLifecycle,
  table: "restore_reviews",
  requests: {},
  restsIdle: () => true,
  async load(db, ids) {
    return parseRows(await db.query<ReviewRow>(`${SELECT} where t.id = any($1)`, [ids]), parseReview);
  },
};

/** The one that has not ended; there is one at most. */
export async function findLiveReview(db: Queryable): Promise<RestoreReview | undefined> {
  const rows = await db.query<ReviewRow>({ hot: true, text: `${SELECT} where t.state <> 'ended'` });
  return rows.map(parseReview)[0];
}

/** The one that has not ended, or the one that ended last. */
export async function findLastReview(db: Queryable): Promise<RestoreReview | undefined> {
  const rows = await db.query<ReviewRow>(`${SELECT} order by t.created_at desc, t.id desc limit 1`);
  return rows.map(parseReview)[0];
}
