import { expect, test } from "vitest";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { RunThing } from "../model/lifecycle.ts";
import { machineTarget } from "./machine.ts";
import type { RunEnd, RunOn } from "./target-kind.ts";

const runOf = (holder: RunThing["holder"]): RunOn<Machine> =>
  ({
    id: "run-1",
    jobId: "job-1",
    holder,
    plan: { planId: "p", displayName: "", steps: [] },
    target: { kind: "machine", id: "m1", thing: { id: "m1", conditions: [], facts: {} } },
  }) as unknown as RunOn<Machine>;
const END: RunEnd = { phase: "FAILED", message: "no", at: new Date(0), residue: [] };

test("a run of its own moves the machine to PROVISIONING and on", () => {
  const own = runOf({ kind: "run", id: "run-1" });
  expect(machineTarget.whenStarted(own, new Map())).toMatchObject([{ type: "move", cause: "run_started" }]);
  expect(machineTarget.whenEnded(own, END, new Map())).toMatchObject([{ type: "move", cause: "run_failed" }]);
});

test("a run on behalf of a rack leaves the machine's phase and conditions alone, also when it fails", () => {
  const child = runOf({ kind: "rack", id: "rack-1" });
  expect(machineTarget.whenStarted(child, new Map())).toEqual([]);
  expect(machineTarget.whenEnded(child, END, new Map())).toEqual([]);
});
