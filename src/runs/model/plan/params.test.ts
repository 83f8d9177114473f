import { expect, test } from "vitest";
import { BUILT_IN_PLANS } from "../../plans/built-in.ts";
import { allSteps } from "../../steps/index.ts";
import { PARAMS, paramsOf } from "./params.ts";
import type { StepKind } from "./payloads.ts";

test("every kind that fills params into its payload says which", () => {
  const taking = [...allSteps.values()].filter(({ takesParams }) => takesParams !== undefined).map(({ kind }) => kind);
  expect(taking).not.toEqual([]);
  for (const kind of taking) expect(PARAMS[kind as StepKind]).not.toEqual([]);
});

test("a plan takes what its steps take, each once", () => {
  const step = (name: string, kind: string) => ({ name, kind, timeoutSeconds: 1, maxRetries: 0, payload: {} });
  const plan = { steps: [step("a", "rma"), step("b", "reboot"), step("c", "rma"), step("d", "constructor")] };
  expect(paramsOf(plan)).toEqual(["ticket", "force"]);
});

test("each built-in plan that restarts the machine can be told to do it by force", () => {
  const taking = (param: string) => BUILT_IN_PLANS.filter((plan) => paramsOf(plan).includes(param));
  const restarting = BUILT_IN_PLANS.filter(({ steps }) => steps.some(({ kind }) => kind === "reboot"));
  expect(taking("force")).toEqual(restarting);
  expect(taking("ticket").map(({ planId }) => planId)).toEqual(["plan/rma"]);
  expect(taking("netplan").map(({ planId }) => planId)).toEqual(["plan/net-reconfig"]);
});
