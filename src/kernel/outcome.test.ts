import { expect, test } from "vitest";
import { happened, nothingToDo, waitFor } from "./outcome.ts";
import { seconds } from "./time/duration.ts";

test("what happened is an event, with the facts, effects and message that commit with it", () => {
  const wake = { type: "wake", kind: "rack", id: "r1" } as const;
  expect(happened("data_fetched")).toEqual({ type: "happened", event: "data_fetched" });
  expect(happened("data_fetched", { facts: { serial: "A1" }, effects: [wake], message: "read" })).toEqual({
    type: "happened",
    event: "data_fetched",
    facts: { serial: "A1" },
    effects: [wake],
    message: "read",
  });
});

test("waiting says why and when to look again", () => {
  expect(waitFor("shelf reports power on", seconds(1))).toEqual({
    type: "waiting",
    reason: "shelf reports power on",
    after: 1_000,
  });
});

test("nothing to do may mean: only when woken", () => {
  expect(nothingToDo(null)).toEqual({ type: "nothing", after: null });
  expect(nothingToDo(seconds(30), { facts: { powerState: "on" } })).toEqual({
    type: "nothing",
    after: 30_000,
    facts: { powerState: "on" },
  });
});
