import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { PlanSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { draftOf, emptyStep, fieldsOfKind, KIND_NAMES, moved, planOf, stepOfField } from "./plan-draft.ts";

test("kinds of steps and what they take are those of the contract", () => {
  expect(KIND_NAMES).toEqual(["ssh", "reboot", "netboot", "repave", "join", "verify", "net", "rma"]);
  expect(fieldsOfKind("ssh")).toEqual([
    { name: "scriptRef", label: "Script", type: "text" },
    { name: "args", label: "Args", type: "pairs" },
  ]);
  expect(fieldsOfKind("reboot").map(({ type }) => type)).toEqual(["flag", "text"]);
});

test("a plan comes back as it was, but for its id", () => {
  const plan = create(PlanSchema, {
    planId: "mine",
    displayName: "Mine",
    steps: [
      { name: "a", timeoutSeconds: 60, maxRetries: 0, kind: { case: "reboot", value: { force: true, mode: "bmc" } } },
      { name: "b", kind: { case: "ssh", value: { scriptRef: "x.sh", args: { one: "1", two: "a=b" } } } },
    ],
  });
  const again = create(PlanSchema, planOf(draftOf(plan)));
  expect(again.planId).toBe("mine-2");
  expect({ ...again, planId: "mine" }).toEqual(plan);
});

test("what another kind was given is left behind", () => {
  const step = { ...emptyStep("reboot"), name: "r", values: { scriptRef: "x.sh", mode: "bmc" } };
  const [only] = create(PlanSchema, planOf({ planId: "p", displayName: "", steps: [step] })).steps;
  expect(only?.kind).toMatchObject({ case: "reboot", value: { mode: "bmc" } });
  expect(only?.kind.value).not.toHaveProperty("scriptRef");
});

test("steps move by one place and not over the ends, and refusals name theirs", () => {
  const steps = [emptyStep(), emptyStep(), emptyStep()];
  const keys = (of: typeof steps | ReturnType<typeof moved>) =>
    of.map(({ key }) => steps.findIndex((s) => s.key === key));
  expect(keys(moved(steps, 0, 1))).toEqual([1, 0, 2]);
  expect(keys(moved(steps, 2, 3))).toEqual([0, 1, 2]);
  expect(keys(moved(steps, 0, -1))).toEqual([0, 1, 2]);
  expect([stepOfField("plan.steps[2].ssh.script_ref"), stepOfField("plan.plan_id")]).toEqual([2, -1]);
});
