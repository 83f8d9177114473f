import { REVIEW_COMMAND } from "../../services/restore/gate.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { countParked } from "../../store/restore/parked.ts";
import { findLiveReview } from "../../store/restore/reviews.ts";

/** The server answers and can do its work, but for what people have to decide on first. */
export async function restoreRemark(db: Queryable): Promise<{ readonly remark: string } | null> {
  const review = await findLiveReview(db);
  if (!review) return null;
  const parked = await countParked(db);
  return {
    remark: `the database was restored from a backup: restore review ${review.id} is ${review.state.name}, ${parked} parked; ${REVIEW_COMMAND}`,
  };
}
