import { describe, expect, test } from "vitest";
import { minutes } from "../../kernel/time/duration.ts";
import type { StepShapes } from "../model/step.ts";
import { collectWorkflows, defineWorkflow, goTo, planOfWorkflow, type Stage, waysFrom } from "./workflow.ts";

const stage = <const S extends string>(name: S, more: Partial<Omit<Stage<S>, "name">> = {}): Stage<S> => ({
  name,
  compensation: "nothing",
  ...more,
});
const define = (...stages: readonly Stage[]) => defineWorkflow({ kind: "test", doc: "", stages });

describe("a workflow is refused at load", () => {
  test.each<[string, readonly Stage[], string]>([
    ["without stages", [], "it has no stages"],
    ["with two stages of a name", [stage("a"), stage("a")], "there are two stages called a"],
    ["with an edge to nowhere", [stage("a", { leadsTo: ["b"], mayEnd: true })], "a leads to b, which is no stage"],
    [
      "with a stage that nothing reaches",
      [stage("a", { leadsTo: [], mayEnd: true }), stage("b")],
      "nothing leads to b",
    ],
    [
      "with a way back without a bound",
      [stage("a"), stage("b", { leadsTo: ["a"] })],
      "b leads back to a, which has no maxRounds",
    ],
    [
      "with a stage that leads to itself without a bound",
      [stage("a", { leadsTo: ["a"] })],
      "a leads back to a, which has no maxRounds",
    ],
    [
      "with a bound that is none",
      [stage("a", { maxRounds: 0 })],
      "maxRounds of a must be a whole number of at least 1",
    ],
    ["with a bound without end", [stage("a", { maxRounds: Number.POSITIVE_INFINITY })], "maxRounds of a must be"],
    [
      "without a way to its end",
      [stage("a", { leadsTo: ["b"], maxRounds: 2 }), stage("b", { leadsTo: ["a"] }), stage("c")],
      "no stage leads to its end",
    ],
  ])("%s", (_, stages, fault) => {
    expect(() => define(...stages)).toThrow(`workflow test: `);
    expect(() => define(...stages)).toThrow(fault);
  });

  test("a stage that there is not does not compile", () => {
    defineWorkflow({
      kind: "typed",
      doc: "",
      stages: [
        { name: "a", compensation: "nothing", mayEnd: true, leadsTo: ["b"] },
        { name: "b", compensation: "nothing" },
      ],
      // @ts-expect-error there is no stage called c
      next: (history) => (history.length > 5 ? goTo("c") : goTo("b")),
    });
  });
});

describe("a workflow", () => {
  test("leads from each stage to the one after it unless the stage says otherwise", () => {
    const back = define(stage("a", { maxRounds: 3 }), stage("b", { leadsTo: ["a", "c"], maxRounds: 2 }), stage("c"));
    expect(waysFrom(back, "a")).toEqual(["b"]);
    expect(waysFrom(back, "b")).toEqual(["a", "c"]);
    expect(waysFrom(back, "c")).toEqual([]);
  });
});

describe("workflows of a server", () => {
  const steps = new Map([
    ["a", { undo: async () => undefined }],
    ["b", {}],
  ]);

  test("consist of kinds of steps that it has", () => {
    expect(collectWorkflows([define(stage("a"), stage("x", { step: "b" }))], steps).size).toBe(1);
    expect(() => collectWorkflows([define(stage("c"))], steps)).toThrow("c is a c, which is no kind of step");
  });

  test("undo only what can be undone", () => {
    expect(collectWorkflows([define(stage("a", { compensation: "undo" }))], steps).size).toBe(1);
    expect(() => collectWorkflows([define(stage("b", { compensation: "undo" }))], steps)).toThrow("a b has no undo");
  });

  test("are of one kind each", () => {
    expect(() => collectWorkflows([define(stage("a")), define(stage("a"))], steps)).toThrow("of the same kind");
  });
});

test("the plan of a run has every stage, with its payload, its own limits or those of its kind", () => {
  const shapes: StepShapes = new Map([
    [
      "a",
      {
        kind: "a",
        defaults: { timeout: minutes(2), maxRetries: 3 },
        parse: (payload) => ({ ...payload, parsed: true }),
      },
    ],
  ]);
  const workflow = defineWorkflow({
    kind: "test",
    doc: "Tests.",
    stages: [
      { name: "a", compensation: "nothing" },
      { name: "b", step: "a", compensation: "nothing", timeout: minutes(1), maxRetries: 0 },
    ],
  });
  expect(planOfWorkflow(workflow, shapes, { payloads: { b: { to: "there" } } })).toEqual({
    planId: "workflow/test",
    displayName: "Tests.",
    workflow: "test",
    steps: [
      { name: "a", kind: "a", timeoutSeconds: 120, maxRetries: 3, payload: { parsed: true } },
      { name: "b", kind: "a", timeoutSeconds: 60, maxRetries: 0, payload: { to: "there", parsed: true } },
    ],
  });
});
