import { AppError } from "../../kernel/errors.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { findLiveReview } from "../../store/restore/reviews.ts";

export const REVIEW_COMMAND = "millwright restore review";

/** Of what would reach a device while nobody has said what is true. */
export const underReview = ({ id }: { readonly id: string }): AppError =>
  new AppError(
    "failed_precondition",
    `the database was restored from a backup: devices take no commands until restore review ${id} has ended`,
    { next: REVIEW_COMMAND },
  );

/** Throws while a restored backup is under review. */
export async function refuseUnderReview(db: Queryable): Promise<void> {
  const review = await findLiveReview(db);
  if (review) throw underReview(review);
}
