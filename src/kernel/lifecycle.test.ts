import { describe, expect, test } from "vitest";
import {
  ANY,
  asked,
  caused,
  defineLifecycle,
  GONE,
  on,
  onFailure,
  type Row,
  reported,
  rowsFrom,
  STAY,
  type StateSpec,
  type Thing,
  when,
} from "./lifecycle.ts";
import { minutes } from "./time/duration.ts";

const ready = () => true;
const broken = () => false;
const working: StateSpec = { sla: minutes(5), doc: "At work." };
const resting: StateSpec = { rest: true, doc: "At rest." };
const terminal: StateSpec = { terminal: true, doc: "Over." };

/** Loads a table whose state names are not known to the compiler, as a wrong one written in plain JavaScript would be. */
const load =
  (states: Record<string, StateSpec>, transitions: readonly Row<Thing>[], initial = "a") =>
  () =>
    defineLifecycle<Thing>()<string, readonly Row<Thing>[]>({ kind: "widget", initial, states, transitions });

describe("a table does not load when", () => {
  test.each<[string, () => unknown, string]>([
    [
      "a row leads to an unknown state",
      load({ a: resting }, [["a", asked("go"), "b"]]),
      "a row leads to b, which is no state",
    ],
    [
      "a row starts in an unknown state",
      load({ a: resting }, [["b", asked("go"), "a"]]),
      "a row starts in b, which is no state",
    ],
    ["the initial state is unknown", load({ a: resting }, [], "b"), "the initial state b is no state"],
    [
      "the initial state means trouble",
      load({ a: { ...resting, trouble: true } }, []),
      "the initial state a means trouble, yet nothing went wrong",
    ],
    ["nothing leads to a state", load({ a: resting, b: resting }, []), "nothing leads to b"],
    [
      "a state is reached only from states that are not reached themselves",
      load({ a: resting, b: resting, c: resting }, [
        ["b", asked("go"), "c"],
        ["c", asked("back"), "b"],
      ]),
      "nothing leads to b; nothing leads to c",
    ],
    [
      "a working state has no SLA",
      load({ a: { doc: "?" } }, [["a", on("done"), GONE]]),
      "a is at work, so it needs an SLA",
    ],
    ["a working state has no exit", load({ a: working }, []), "a is at work and has no exit"],
    [
      "a working state has rows that all stay",
      load({ a: working }, [["a", on("done"), STAY]]),
      "a is at work and has no exit",
    ],
    [
      "a resting state has an SLA",
      load({ a: { ...resting, sla: minutes(1) } }, []),
      "a rests, so it has neither SLA nor deadline",
    ],
    [
      "a resting state has a deadline",
      load({ a: { ...resting, deadline: minutes(1) } }, []),
      "a rests, so it has neither SLA nor deadline",
    ],
    [
      "a terminal state has an SLA",
      load({ a: { ...terminal, sla: minutes(1) } }, []),
      "a is terminal, so it has neither SLA nor deadline",
    ],
    [
      "a state has two failure events",
      load({ a: working }, [
        ["a", onFailure("burnt"), GONE],
        ["a", onFailure("drowned"), GONE],
      ]),
      "a has more than one failure event",
    ],
    [
      "a state has a failure event of its own and one of ANY",
      load({ a: working, b: resting }, [
        ["a", onFailure("burnt"), GONE],
        [ANY, onFailure("drowned"), "b"],
      ]),
      "a has more than one failure event",
    ],
    [
      "a deadline has no failure row to end along",
      load({ a: { ...working, deadline: minutes(4) } }, [["a", on("done"), GONE]]),
      "a has a deadline but no failure row",
    ],
    ["a guard has no name", load({ a: working }, [["a", when(() => true), GONE]]), "a guard out of a has no name"],
    [
      "a row leaves a terminal state",
      load({ a: terminal }, [["a", asked("go"), GONE]]),
      "a is terminal, yet a row leaves it",
    ],
    [
      "a controller's row has a second condition, which nobody would ask",
      load({ a: working }, [["a", when(ready), GONE, { provided: broken }]]),
      "ready out of a is the controller's",
    ],
    [
      "a row can never apply because of an earlier one",
      load({ a: resting, b: resting }, [
        ["a", asked("go"), "b"],
        ["a", asked("go"), GONE],
      ]),
      "the row a → (gone) on go never applies",
    ],
    [
      "a row can never apply because of an earlier one for ANY state",
      load({ a: resting, b: resting }, [
        [ANY, asked("go"), "b"],
        ["a", asked("go"), GONE],
      ]),
      "the row a → (gone) on go never applies",
    ],
  ])("%s", (_, wrong, message) => {
    expect(wrong).toThrow(`lifecycle widget: ${message}`);
  });

  test("all that is wrong is said at once", () => {
    const wrong = load({ a: { doc: "?" }, b: { doc: "?" } }, [["a", on("done"), STAY]]);
    expect(wrong).toThrow(
      "lifecycle widget: a is at work, so it needs an SLA; a is at work and has no exit; " +
        "nothing leads to b; b is at work, so it needs an SLA; b is at work and has no exit",
    );
  });
});

describe("a table loads when", () => {
  test("one failure event leads to different states under different conditions", () => {
    expect(
      load({ a: working, b: resting }, [
        ["a", onFailure("failed"), STAY, { provided: ready }],
        ["a", onFailure("failed"), "b"],
      ]),
    ).not.toThrow();
  });

  test("the only exit of a working state is one of ANY", () => {
    expect(load({ a: working, b: resting }, [[ANY, caused("run_failed"), "b"]])).not.toThrow();
  });

  test("a specific row comes before the one of ANY for the same verb", () => {
    expect(
      load({ a: resting, b: resting }, [
        ["a", asked("go"), GONE],
        [ANY, asked("go"), "a"],
        ["a", asked("on"), "b"],
      ]),
    ).not.toThrow();
  });

  test("the same word is used by different owners", () => {
    expect(
      load({ a: working }, [
        ["a", on("done"), GONE],
        ["a", reported("done"), GONE],
        ["a", asked("done"), GONE],
      ]),
    ).not.toThrow();
  });
});

describe("the triggers say who owns the edge", () => {
  test.each([
    [when(ready), "controller", "ready", false],
    [on("done"), "handler", "done", false],
    [onFailure("broke"), "handler", "broke", true],
    [asked("approve"), "caller", "approve", false],
    [reported("installed"), "agent", "installed", false],
    [caused("run_failed"), "other", "run_failed", false],
  ] as const)("%o", (trigger, owner, name, failure) => {
    expect(trigger).toMatchObject({ owner, name, failure });
  });
});

describe("the rows of a state", () => {
  const lifecycle = defineLifecycle<Thing>()({
    kind: "widget",
    initial: "new",
    states: { new: resting, used: resting, retired: resting, scrapped: terminal },
    transitions: [
      ["new", asked("use"), "used"],
      [ANY, asked("retire"), "retired"],
      [ANY, asked("note"), STAY],
      ["retired", asked("scrap"), "scrapped"],
    ],
  });
  const names = (state: "new" | "used" | "retired" | "scrapped") =>
    rowsFrom(lifecycle, state).map(([, trigger]) => trigger.name);

  test("are its own and those of ANY, in the order of the table", () => {
    expect(names("new")).toEqual(["use", "retire", "note"]);
    expect(names("used")).toEqual(["retire", "note"]);
  });

  test("of ANY never lead to the state itself", () => {
    expect(names("retired")).toEqual(["note", "scrap"]);
  });

  test("are none when it is terminal, not even those of ANY", () => {
    expect(names("scrapped")).toEqual([]);
  });
});

test("a lifecycle keeps no facts quiet unless it says so", () => {
  expect(load({ a: resting }, [])().quietFacts).toEqual([]);
});
