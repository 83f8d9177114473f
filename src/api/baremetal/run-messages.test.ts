import { expect, test } from "vitest";
import { StepStatus_State } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { beginVisit, skipped } from "../../runs/executor/step/visit.ts";
import { STEP_STATES, type StepState } from "../../services/run/read.ts";
import { stepOf } from "./run-messages.ts";

const NOW = new Date("2026-01-01T00:00:00Z");
const step = { name: "network", kind: "reboot", timeoutSeconds: 60, maxRetries: 0, payload: {} };

test("every state of a step has one of the contract's", () => {
  const shown = (state: StepState) => StepStatus_State[stepOf({ ...beginVisit(step, NOW), state }).state];
  expect(STEP_STATES.map((state) => [state, shown(state)])).toEqual([
    ["WAITING", "WAITING"],
    ["RUNNING", "RUNNING"],
    ["SUCCEEDED", "SUCCEEDED"],
    ["FAILED", "FAILED"],
    ["SKIPPED", "SUCCEEDED"],
  ]);
});

test("a step that was skipped says so, and why", () => {
  const message = stepOf(skipped(step, 1, "the profile has none", NOW));
  expect(message).toMatchObject({ state: StepStatus_State.SUCCEEDED, message: "skipped: the profile has none" });
  expect(message.startedAt).toBeUndefined();
});
