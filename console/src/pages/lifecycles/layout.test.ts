import { expect, test } from "vitest";
import { GONE, placeLifecycle } from "./layout.ts";

const way = (from: string, to: string, more: object = {}) =>
  ({ from, to, trigger: "asked", failure: false, deletes: false, stays: false, ...more }) as never;
const state = (name: string) => ({ name }) as never;

test("states and ways are placed within the picture, and a way back to itself or from anywhere is left to the table", () => {
  const { left, top, width, height, states, ways } = placeLifecycle({
    states: ["new", "at_work", "ready"].map(state),
    transitions: [
      way("new", "at_work"),
      way("at_work", "ready"),
      way("at_work", "new", { failure: true }),
      way("at_work", "at_work"),
      way("*", "new"),
      way("ready", "", { deletes: true }),
      way("ready", "", { stays: true }),
    ],
  });
  expect(states.map(({ name }) => name)).toEqual(["new", "at_work", "ready", GONE]);
  expect(ways.map(({ says, isFailure }) => [says, isFailure])).toEqual([
    ["new → at_work: asked", false],
    ["at_work → ready: asked", false],
    ["at_work → new: asked", true],
    [`ready → ${GONE}: asked`, false],
  ]);
  for (const { x, y, width: wide, height: high } of states) {
    expect(x).toBeGreaterThan(left);
    expect(y).toBeGreaterThan(top);
    expect(x + wide).toBeLessThan(left + width);
    expect(y + high).toBeLessThan(top + height);
  }
});
