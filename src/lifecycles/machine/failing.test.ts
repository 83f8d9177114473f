import { describe, expect, test } from "vitest";
import { CONDITION_TYPES, type ConditionType } from "./conditions.ts";
import { isFailing } from "./failing.ts";
import { MACHINE_PHASES, type MachinePhase } from "./machine.ts";

const seen = (type: ConditionType, status: boolean) => ({ type, status, reason: "Seen", message: "" });
const phasesIn = (...conditions: ReturnType<typeof seen>[]): MachinePhase[] =>
  MACHINE_PHASES.filter((phase) => isFailing({ phase, conditions }));
const allBut = (...phases: MachinePhase[]) => MACHINE_PHASES.filter((phase) => !phases.includes(phase));

describe("a machine is failing", () => {
  test.each(["NeedsIntervention", "Degraded"] as const)("with %s, unless it is retired", (type) => {
    expect(phasesIn(seen(type, true))).toEqual(allBut("RETIRED"));
    expect(phasesIn(seen(type, false))).toEqual([]);
  });

  test.each(["Reachable", "BMCReachable"] as const)(
    "when %s is known to be false, unless it is away for repair or retired",
    (type) => {
      expect(phasesIn(seen(type, false))).toEqual(allBut("RMA", "RETIRED"));
      expect(phasesIn(seen(type, true))).toEqual([]);
    },
  );

  test("when one thing is wrong among others that are right", () => {
    expect(phasesIn(seen("Reachable", true), seen("BMCReachable", false))).toEqual(allBut("RMA", "RETIRED"));
    expect(phasesIn(seen("BMCReachable", false), seen("Degraded", true))).toEqual(allBut("RETIRED"));
  });

  test.each(CONDITION_TYPES.filter((type) => !/Reach|Needs|Degraded/.test(type)))("never by %s", (type) => {
    expect(phasesIn(seen(type, true))).toEqual([]);
    expect(phasesIn(seen(type, false))).toEqual([]);
  });

  test.each(["NoEndpoint", "OffOnPurpose"])(
    "not when it is not reached for a reason that somebody wants: %s",
    (reason) => {
      const excused = [seen("Reachable", false), seen("BMCReachable", false)].map((one) => ({ ...one, reason }));
      expect(phasesIn(...excused)).toEqual([]);
      expect(phasesIn(...excused, seen("Degraded", true))).toEqual(allBut("RETIRED"));
    },
  );

  test("not while nobody has looked", () => {
    expect(phasesIn()).toEqual([]);
  });
});
