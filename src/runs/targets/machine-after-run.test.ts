import { describe, expect, test } from "vitest";
import type { Residue } from "../../kernel/residue.ts";
import type { ObservedCondition } from "../../lifecycles/machine/conditions.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type { Plan } from "../model/plan/plan.ts";
import type { EndedRunPhase } from "../model/run.ts";
import { BUILT_IN_PLANS } from "../plans/built-in.ts";
import { allSteps } from "../steps/index.ts";
import * as machineAfterRun from "./machine-after-run.ts";

const { CAUSE_OF_END } = machineAfterRun;
type Steps = Pick<Plan, "steps">;
const phaseOnSuccess = (steps: Steps) => machineAfterRun.phaseOnSuccess(steps, allSteps);
const conditionsAtEnd = (
  steps: Steps,
  phase: EndedRunPhase,
  message: string,
  before: readonly ObservedCondition[],
  residue: readonly Residue[] = [],
) => machineAfterRun.conditionsAtEnd(steps, allSteps, { phase, message, before, residue });
const residueAfter = (steps: Steps, phase: EndedRunPhase, residue: readonly Residue[]) =>
  machineAfterRun.residueAfter(steps, allSteps, { phase, residue });

const plan = (...kinds: string[]) => ({
  steps: kinds.map((kind) => ({ name: kind, kind, timeoutSeconds: 1, maxRetries: 0, payload: {} })),
});

describe("a run that succeeded leads the machine", () => {
  test.each([
    ["plan/repave-join", "IN_SERVICE"],
    ["plan-repave-ubuntu-2204-v1", "IN_SERVICE"],
    ["plan/join", "IN_SERVICE"],
    ["plan/rma", "RMA"],
    ["plan/reboot", null],
    ["plan/upgrade", null],
    ["plan/net-reconfig", null],
  ])("with %s to %s", (planId, phase) => {
    const found = BUILT_IN_PLANS.find((each) => each.planId === planId);
    expect(found && phaseOnSuccess(found)).toBe(phase);
  });

  test("to READY when it only repaved, and to RMA whatever else it did", () => {
    expect(phaseOnSuccess(plan("netboot", "repave"))).toBe("READY");
    expect(phaseOnSuccess(plan("repave", "join", "rma"))).toBe("RMA");
  });
});

describe("an installation after a join", () => {
  test("leaves the machine READY, and in no cluster; a join after it counts again", () => {
    const inCluster = (...kinds: string[]) =>
      conditionsAtEnd(plan(...kinds), "SUCCEEDED", "", []).some(({ type }) => type === "InCustomerCluster");
    expect(phaseOnSuccess(plan("join", "repave"))).toBe("READY");
    expect(inCluster("join", "verify", "repave", "reboot")).toBe(false);
    expect(phaseOnSuccess(plan("join", "repave", "join", "reboot"))).toBe("IN_SERVICE");
    expect(inCluster("join", "repave", "join")).toBe(true);
  });
});

describe("the end of a run", () => {
  test("is told to the machine by words that its table knows", () => {
    const known = machineLifecycle.transitions.map(([, { name }]) => name as string);
    expect(CAUSE_OF_END).toEqual({ SUCCEEDED: "run_succeeded", FAILED: "run_failed", CANCELED: "run_canceled" });
    for (const cause of Object.values(CAUSE_OF_END)) expect(known).toContain(cause);
  });

  test("in failure calls for a person, and says why", () => {
    expect(conditionsAtEnd(plan("repave", "join"), "FAILED", "the BMC is dead", [])).toEqual([
      { type: "NeedsIntervention", status: true, reason: "RunFailed", message: "the BMC is dead" },
    ]);
  });

  test("by cancel calls for nobody", () => {
    expect(conditionsAtEnd(plan("repave"), "CANCELED", "", [])).toEqual([]);
  });

  describe("without success, when an installation was begun,", () => {
    const what = "the installation of ubuntu may have begun: what was on the disk may be lost";
    const [step] = plan("repave").steps.map((one) => ({ ...one, payload: { image_ref: "ubuntu" } }));
    const steps = { steps: step ? [step] : [] };
    const begun = { step: "repave", what };
    const provisioned = (phase: EndedRunPhase, residue: readonly Residue[], of: Steps = steps) =>
      conditionsAtEnd(of, phase, "", [], residue).find(({ type }) => type === "Provisioned");

    test.each(["FAILED", "CANCELED"] as const)("%s, says that the machine has no proven system", (phase) => {
      const said = { type: "Provisioned", status: false, reason: "InstallationNotProven", message: `repave: ${what}` };
      expect(provisioned(phase, [begun])).toEqual(said);
      const stays = { ...begun, found: "the medium is still inserted: the machine installs again at each boot" };
      expect(provisioned(phase, [stays])?.message).toBe(`repave: ${stays.found}`);
    });

    test("says so only of an installation of its own plan that left something", () => {
      expect(provisioned("FAILED", [])).toBeUndefined();
      expect(provisioned("FAILED", [{ step: "set-netboot", what: "may boot from the network" }])).toBeUndefined();
      expect(provisioned("CANCELED", [begun], plan("reboot"))).toBeUndefined();
    });
  });

  test("in success ends the call for a person, and proves what the plan did", () => {
    const proved = (...kinds: string[]) =>
      conditionsAtEnd(plan(...kinds), "SUCCEEDED", "", []).map(({ type, status }) => [type, status]);
    expect(proved("reboot")).toEqual([["NeedsIntervention", false]]);
    expect(proved("repave")).toEqual([
      ["NeedsIntervention", false],
      ["Provisioned", true],
    ]);
    expect(proved("repave", "join", "verify")).toEqual([
      ["NeedsIntervention", false],
      ["Provisioned", true],
      ["InCustomerCluster", true],
    ]);
  });

  test("in success says which cluster was joined, since the machine's owner may name another one", () => {
    const [join] = plan("join").steps.map((step) => ({ ...step, payload: { cluster_ref: "cluster-a" } }));
    const steps = join ? [...plan("repave").steps, join] : [];
    expect(conditionsAtEnd({ steps }, "SUCCEEDED", "", [])).toContainEqual(
      expect.objectContaining({ reason: "JoinVerified", message: "cluster cluster-a" }),
    );
  });

  test.each([
    ["RunFailed", ["reboot"], true],
    ["HostKeyChanged", ["reboot"], false],
    ["HostKeyChanged", ["repave"], true],
    ["WrongSerial", ["repave"], false],
    ["WrongIdentity", ["reboot"], false],
  ] as const)("in success ends a call for a person because of %s after %s: %s", (reason, kinds, ends) => {
    const before = [{ type: "NeedsIntervention", status: true, reason, message: "" }] as const;
    const told = conditionsAtEnd(plan(...kinds), "SUCCEEDED", "", before).map(({ type }) => type);
    expect(told.includes("NeedsIntervention")).toBe(ends);
  });
});

describe("what runs left behind", () => {
  const left = [
    { step: "set-netboot", what: "may boot from the network" },
    { step: "repave", what: "may have begun" },
    { step: "repave", what: "may have begun" },
  ];

  test.each(["FAILED", "CANCELED"] as const)("stays listed after a run that %s, each once", (phase) => {
    expect(residueAfter(plan("repave"), phase, left)).toEqual(left.slice(0, 2));
  });

  test("is gone once a run made something new of the machine, and not by a reboot", () => {
    expect(residueAfter(plan("repave", "join"), "SUCCEEDED", left)).toEqual([]);
    expect(residueAfter(plan("reboot"), "SUCCEEDED", left)).toEqual(left.slice(0, 2));
  });
});
