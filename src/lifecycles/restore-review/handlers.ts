import type { CallContext } from "../../capabilities/call.ts";
import { type Handlers, happened } from "../../kernel/outcome.ts";
import type { restoreReviewLifecycle } from "./lifecycle.ts";
import type { RestoreReview } from "./restore-review.ts";

export interface RestoreReviewContext {
  readonly call: CallContext;
  /** Releases what is harmless; doing it again is harmless too. Returns how many things stay parked. */
  readonly sort: (reviewId: string, signal: AbortSignal) => Promise<number>;
}

export const restoreReviewHandlers: Handlers<typeof restoreReviewLifecycle, RestoreReview, RestoreReviewContext> = {
  async sorting({ id }, { sort, call }) {
    const parked = await sort(id, call.signal);
    return happened("sorted", { message: `${parked} things are parked` });
  },
};
