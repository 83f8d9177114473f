import { expect, test } from "vitest";
import { expectedRackLifecycle } from "./lifecycle.ts";

test("the transitions of expected racks are these, no more and no fewer", () => {
  expect(expectedRackLifecycle.transitions.map(([from, { owner, name }, to]) => [from, owner, name, to])).toEqual([
    ["expected", "other", "rack_created", "linked"],
    ["expected", "caller", "update", "expected"],
    ["expected", "caller", "remove", "(gone)"],
    ["linked", "other", "rack_deleted", "expected"],
    ["linked", "caller", "update", "linked"],
    ["linked", "caller", "remove", "(gone)"],
  ]);
});
