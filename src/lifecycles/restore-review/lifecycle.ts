import { asked, caused, defineLifecycle, on, STAY } from "../../kernel/lifecycle.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { RestoreReview } from "./restore-review.ts";

/**
 * A review begins in the transaction that finds the restore, with all work parked. The passes that follow sort what is harmless from
 * what somebody has to decide on.
 */
export const restoreReviewLifecycle = defineLifecycle<RestoreReview>()({
  kind: "restore_review",
  initial: "sorting",
  quietFacts: [],

  states: {
    sorting: { sla: minutes(5), doc: "All work is parked; what would not touch a device is released again." },
    open: { rest: true, trouble: true, doc: "Waits for people: they resume, adopt or abandon what is parked." },
    ended: { terminal: true, doc: "Nothing is parked any more, and devices take commands again." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    ["sorting", on("sorted"),             "open"],
    ["sorting", caused("restored_again"), STAY],
    ["open",    caused("restored_again"), "sorting"],
    ["open",    asked("end"),             "ended"],
  ],
});
