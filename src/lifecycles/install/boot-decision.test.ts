import { describe, expect, test } from "vitest";
import { type BootDecision, decideBoot, type WorkflowSeen } from "./boot-decision.ts";
import { INSTALL_STATES, type Install, type InstallState } from "./install.ts";

/** Only what a boot is decided by. */
const install = (state: InstallState, facts: Partial<Install["facts"]> = {}) =>
  ({
    state: { name: state },
    facts: { installAttempts: 0, attemptFailed: false, lastInstallError: null, steps: [], ...facts },
  }) as Install;

/** The specification's table, for a node that has a workflow. */
// biome-ignore format: a table is read by its columns
const BOOTS: Readonly<Record<InstallState, BootDecision["type"]>> = {
  discovered:     "local",
  pending:        "install",
  installing:     "local",
  install_failed: "problem",
  installed:      "local",
  active:         "local",
  reprovision:    "local",
  deprovisioning: "erase",
  migrating:      "local",
  retired:        "local",
};

describe("a machine that boots from the network while its node is", () => {
  test.each(INSTALL_STATES.map((state) => [state, BOOTS[state]] as const))("%s is answered: %s", (state, type) => {
    expect(decideBoot(install(state), "ready")).toMatchObject({ type });
  });

  test.each<[WorkflowSeen, BootDecision]>([
    ["none", { type: "wait", why: "is approved and waits for a workflow" }],
    ["missing", { type: "problem", message: "its workflow does not exist any more" }],
    ["ready", { type: "install", attempt: 1 }],
  ])("pending, with a workflow that is %s", (workflow, decision) => {
    expect(decideBoot(install("pending"), workflow)).toEqual(decision);
  });

  test("installing behind a step that rebooted it goes on with the same attempt", () => {
    const step = { sequence: 1, name: "again", type: "reboot", attempts: 1, message: null, required: true } as const;
    const at = (state: "rebooting" | "completed") => install("installing", { steps: [{ ...step, state }] });
    expect(decideBoot(at("rebooting"), "ready")).toEqual({ type: "install", attempt: 1, resumes: true });
    expect(decideBoot(at("completed"), "ready")).toMatchObject({ type: "local" });
  });

  test("installing after a failed attempt gets the install script again, as the next attempt", () => {
    const failed = install("installing", { attemptFailed: true, installAttempts: 2 });
    expect(decideBoot(failed, "ready")).toEqual({ type: "install", attempt: 3 });
  });

  test("install_failed shows the last error", () => {
    expect(decideBoot(install("install_failed", { lastInstallError: "no disk" }), "ready")).toEqual({
      type: "problem",
      message: "the installation failed: no disk",
    });
  });

  test.each(INSTALL_STATES.filter((state) => state !== "pending" && state !== "installing"))(
    "%s is answered the same whatever its workflow",
    (state) => {
      const answers = (["none", "missing", "ready"] as const).map((seen) => decideBoot(install(state), seen));
      expect(answers[0]).toEqual(answers[1]);
      expect(answers[1]).toEqual(answers[2]);
    },
  );
});
