import { describe, expect, test } from "vitest";
import type { CauseCode } from "../../kernel/causes.ts";
import type { NextStep, Visit } from "../model/next-step.ts";
import type { StepState } from "../model/run.ts";
import { nextInWorkflow } from "./next-stage.ts";
import { type Choice, defineWorkflow, finish, giveUp, goTo, planOfWorkflow, skip } from "./workflow.ts";

/** Deploys, and after a failure for a reason that it knows goes back, at most twice. */
const deploying = defineWorkflow({
  kind: "deploying",
  doc: "",
  stages: [
    { name: "prepare", compensation: "nothing", maxRounds: 3, isSafe: true },
    { name: "network", compensation: "nothing", maxRounds: 3 },
    { name: "deploy", compensation: "nothing", maxRounds: 3, leadsTo: ["classify", "check"] },
    { name: "classify", compensation: "nothing", maxRounds: 3, leadsTo: ["prepare"] },
    { name: "check", compensation: "nothing" },
  ],
  next(history, { params, onwards }) {
    const last = history.at(-1);
    if (last?.stage === "prepare" && params.network !== "yes") return skip("network", "the profile has none");
    if (last?.stage === "deploy")
      return last.state === "FAILED" && last.cause === "install_failed"
        ? goTo("classify")
        : last.state === "FAILED"
          ? giveUp()
          : goTo("check");
    if (last?.stage === "classify")
      return last.verdict === "datasource" ? goTo("prepare") : giveUp("it cannot be helped", { needsPerson: true });
    return onwards;
  },
});
const plan = planOfWorkflow(deploying, new Map());
const visit = (
  name: string,
  state: StepState = "SUCCEEDED",
  more: Partial<Visit> & { because?: CauseCode } = {},
): Visit => ({
  name,
  state,
  round: 1,
  cause: more.because === undefined ? null : { code: more.because },
  verdict: "",
  carriedOver: false,
  ...more,
});
const next = (visits: readonly Visit[], params = {}) => nextInWorkflow(deploying, { plan, visits, params });
const place = (name: string) => plan.steps.findIndex((step) => step.name === name);

const failedOnce = [
  visit("prepare"),
  visit("network", "SKIPPED"),
  visit("deploy", "FAILED", { because: "install_failed" }),
  visit("classify", "SUCCEEDED", { verdict: "datasource" }),
];

describe("what is next in a workflow", () => {
  test.each<[string, readonly Visit[], NextStep]>([
    ["its first stage", [], { type: "run", index: place("prepare"), round: 1 }],
    [
      "the stage that a crash interrupted",
      [visit("prepare", "RUNNING")],
      { type: "run", index: 0, visit: 0, round: 1 },
    ],
    [
      "a stage that is not needed, with why",
      [visit("prepare")],
      { type: "skip", index: place("network"), round: 1, why: "the profile has none" },
    ],
    [
      "the stage after one that was skipped",
      [visit("prepare"), visit("network", "SKIPPED")],
      { type: "run", index: place("deploy"), round: 1 },
    ],
    [
      "what helps against a failure that it knows",
      failedOnce.slice(0, 3),
      { type: "run", index: place("classify"), round: 1 },
    ],
    ["an earlier stage once more, in the next round", failedOnce, { type: "run", index: place("prepare"), round: 2 }],
    [
      "its end after a failure that it does not know",
      [...failedOnce.slice(0, 2), visit("deploy", "FAILED", { because: "unreachable" })],
      { type: "failed", index: place("deploy"), visit: 2 },
    ],
    [
      "its end where a stage found that nothing helps",
      [...failedOnce.slice(0, 3), visit("classify", "SUCCEEDED", { verdict: "disk" })],
      { type: "failed", index: place("classify"), visit: 3, why: "it cannot be helped", needsPerson: true },
    ],
    [
      "its success after the last stage",
      [...failedOnce.slice(0, 2), visit("deploy"), visit("check")],
      { type: "finished" },
    ],
    [
      "a stage that is to be done again before all others",
      [visit("prepare", "WAITING"), visit("network", "SKIPPED")],
      { type: "run", index: 0, visit: 0, round: 1 },
    ],
  ])("is %s", (_, visits, expected) => {
    expect(next(visits)).toEqual(expected);
  });

  test("goes by what the caller gave", () => {
    expect(next([visit("prepare")], { network: "yes" })).toEqual({ type: "run", index: place("network"), round: 1 });
  });

  const rounds = (most: number, more: Partial<Visit> = {}) =>
    Array.from({ length: most }, (_, at) => failedOnce.map((one) => ({ ...one, ...more, round: at + 1 }))).flat();

  test("is the end once a stage was entered as often as it may be", () => {
    expect(next(rounds(2))).toMatchObject({ type: "run", round: 3 });
    expect(next(rounds(3))).toEqual({
      type: "failed",
      index: place("prepare"),
      why: "was entered 3 times, which is as often as workflow deploying allows",
      needsPerson: true,
    });
  });

  test("may be a further round where people asked for another attempt", () => {
    expect(next(rounds(3, { carriedOver: true }))).toMatchObject({ type: "run", index: place("prepare"), round: 4 });
  });

  test.each<[string, readonly Visit[], string]>([
    ["a stage that it does not have", [visit("nowhere")], "has the status of nowhere"],
    [
      "a round that it has not come to",
      [visit("prepare", "SUCCEEDED", { round: 2 })],
      "in round 2 of prepare before round 1",
    ],
    ["two stages at once", [visit("prepare", "RUNNING"), visit("network", "RUNNING")], "has reached network although"],
  ])("cannot be told from %s", (_, visits, why) => {
    expect(next(visits)).toMatchObject({ type: "misfit", why: expect.stringContaining(why) });
  });
});

describe("a workflow that does not keep to what it declares", () => {
  const choosing = (choice: () => Choice<"a" | "b" | "c">) =>
    defineWorkflow({
      kind: "odd",
      doc: "",
      stages: [
        { name: "a", compensation: "nothing" },
        { name: "b", compensation: "nothing" },
        { name: "c", compensation: "nothing" },
      ],
      next: choice,
    });
  const misfitOf = (choice: () => Choice<"a" | "b" | "c">, visits: readonly Visit[]) => {
    const workflow = choosing(choice);
    return nextInWorkflow(workflow, { plan: planOfWorkflow(workflow, new Map()), visits, params: {} });
  };

  test.each<[string, () => Choice<"a" | "b" | "c">, readonly Visit[], string]>([
    ["leads where it does not say", () => goTo("c"), [visit("a")], "leads from a to c, which it does not declare"],
    ["begins in its middle", () => goTo("b"), [], "leads from its beginning to b, which it does not declare"],
    ["ends in its middle", () => finish, [visit("a")], "ends after a, where it may not"],
    ["ends before it has begun", () => finish, [], "ends after nothing"],
    [
      "does not know",
      () => {
        throw new Error("no idea");
      },
      [visit("a")],
      "does not know what comes next: no idea",
    ],
  ])("and %s is a fault of our own", (_, choice, visits, why) => {
    expect(misfitOf(choice, visits)).toMatchObject({ type: "misfit", why: expect.stringContaining(why) });
  });
});
