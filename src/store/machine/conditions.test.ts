import { expect, test } from "vitest";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { observeMachine } from "./conditions.ts";

const seen = { type: "NeedsIntervention", status: true, reason: "RunFailed", message: "no" };
const machine = { conditions: [] } as unknown as Machine;

test("what a run saw of a machine is kept with its cause, and without one where it had none", () => {
  const cause = { code: "busy", facts: { at: "bmc", status: 503 } };
  expect(observeMachine(machine, [{ ...seen, cause }])?.set.conditions).toMatchObject([{ ...seen, cause }]);
  const [plain] = (observeMachine(machine, [seen])?.set.conditions ?? []) as object[];
  expect(plain).toMatchObject(seen);
  expect(plain).not.toHaveProperty("cause");
});

test("a cause of a newer version does not keep a run from ending", () => {
  const set = observeMachine(machine, [{ ...seen, cause: { code: "of_tomorrow" } }])?.set;
  expect(set?.conditions).toMatchObject([{ ...seen, cause: { code: "unknown" } }]);
});
