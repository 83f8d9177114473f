import { AppError } from "../../kernel/errors.ts";
import { restoreReviewLifecycle } from "../../lifecycles/restore-review/lifecycle.ts";
import type { RestoreReview } from "../../lifecycles/restore-review/restore-review.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { countParked } from "../../store/restore/parked.ts";
import { type ParkedWork, parkedListing } from "../../store/restore/parked-list.ts";
import { findLastReview, findLiveReview } from "../../store/restore/reviews.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { REVIEW_COMMAND } from "./gate.ts";

export type { ParkedWork, RestoreReview };

export interface ShownReview {
  readonly review: RestoreReview;
  /** How many things wait for a decision. */
  readonly parked: number;
}

const { kind } = restoreReviewLifecycle;

/** The one that goes on, or the last. */
export async function getReview(deps: ServiceDeps): Promise<ShownReview> {
  const shown = await lastReview(deps);
  if (!shown) throw new AppError("not_found", "there is no restore review: no restore of this database is on record");
  return shown;
}

async function lastReview({ db }: ServiceDeps): Promise<ShownReview | undefined> {
  const review = await findLastReview(db);
  return review && { review, parked: await countParked(db) };
}

/** The one that goes on. */
export async function liveReview(db: Queryable): Promise<RestoreReview> {
  const review = await findLiveReview(db);
  if (review) return review;
  throw new AppError("failed_precondition", "no restore review is open: nothing is parked", { next: REVIEW_COMMAND });
}

export const pageParked = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<ParkedWork>> =>
  pageList(deps, parkedListing, request, { show: (row) => row });

/** Devices take commands again. Asking again is harmless. Undefined: there never was a review. */
export async function endReview(deps: ServiceDeps, caller: Caller): Promise<ShownReview | undefined> {
  await deps.db.transaction(async (tx) => {
    const review = await findLiveReview(tx);
    if (!review) return;
    if (review.state.name === "sorting") throw stillSorting(review);
    const parked = await countParked(tx);
    if (parked > 0)
      throw new AppError("failed_precondition", `restore review ${review.id} still has ${parked} parked things`, {
        next: "millwright restore resume|adopt|abandon --all",
      });
    await applyVerb(tx, deps.stores, { kind, id: review.id, owner: "caller", name: "end", ...doneBy(caller) });
  });
  return lastReview(deps);
}

export const stillSorting = ({ id }: RestoreReview): AppError =>
  new AppError("unavailable", `restore review ${id} is still being sorted: ask again in a moment`, {
    next: REVIEW_COMMAND,
  });
