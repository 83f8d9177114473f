import { expect, test } from "vitest";
import { restoreReviewLifecycle } from "./lifecycle.ts";

test("a review is sorted, waits for people, and ends when they say so", () => {
  const rows = restoreReviewLifecycle.transitions.map(
    ([from, { owner, name }, to]) => `${from} ${owner} ${name} ${to}`,
  );
  expect(rows).toEqual([
    "sorting handler sorted open",
    "sorting other restored_again (stay)",
    "open other restored_again sorting",
    "open caller end ended",
  ]);
});
