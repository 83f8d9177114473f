import { describe, expect, test } from "vitest";
import type { ConditionType } from "./conditions.ts";
import { bannersOf, effectiveState } from "./effective-state.ts";
import { MACHINE_PHASES, type MachinePhase } from "./machine.ts";

const shown = (phase: MachinePhase, { run = false, inCluster = false } = {}) =>
  effectiveState({ phase, runIsActive: run, inCustomerCluster: inCluster });

describe("effective state is", () => {
  test.each(MACHINE_PHASES)("PROVISIONING while a run is active, also in %s and in a cluster", (phase) => {
    expect(shown(phase, { run: true })).toBe("PROVISIONING");
    expect(shown(phase, { run: true, inCluster: true })).toBe("PROVISIONING");
  });

  test.each(["RMA", "RETIRED", "MAINTENANCE"] as const)("%s as the phase says, also in a cluster", (phase) => {
    expect(shown(phase)).toBe(phase);
    expect(shown(phase, { inCluster: true })).toBe(phase);
  });

  test.each(["FACTORY_READY", "READY", "PROVISIONING", "IN_SERVICE"] as const)(
    "IN_SERVICE for a machine in its cluster whose phase is %s",
    (phase) => {
      expect(shown(phase, { inCluster: true })).toBe("IN_SERVICE");
    },
  );

  test.each([
    ["FACTORY_READY", "FACTORY_READY"],
    ["READY", "READY"],
    ["IN_SERVICE", "READY"],
    ["PROVISIONING", "READY"],
  ] as const)("of %s without run and cluster: %s", (phase, state) => {
    expect(shown(phase)).toBe(state);
  });
});

test("banners are what needs a person and what is degraded, the gravest first, and nothing else", () => {
  const condition = (type: ConditionType, status: boolean) => ({ type, status, reason: "Seen", message: "" });
  expect(
    bannersOf([condition("Degraded", true), condition("NeedsIntervention", true), condition("Reachable", true)]),
  ).toEqual(["NeedsIntervention", "Degraded"]);
  expect(bannersOf([condition("Degraded", false)])).toEqual([]);
  expect(bannersOf([])).toEqual([]);
});
