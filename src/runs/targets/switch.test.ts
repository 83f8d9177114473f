import { expect, test } from "vitest";
import type { Switch } from "../../lifecycles/switch/switch.ts";
import { whenRackHasFlashed } from "./host-reprovision.ts";
import { switchTarget } from "./switch.ts";
import type { RunOn } from "./target-kind.ts";

const aRun = (
  holder: { kind: string; id: string },
  kinds: readonly string[],
  params = {},
  actingAt = new Date(0) as Date | null,
) =>
  ({
    id: "run-1",
    holder,
    plan: { steps: kinds.map((kind) => ({ kind, payload: {} })) },
    params,
    facts: { steps: [{ name: "a", actingAt }] },
    target: { kind: "switch", id: "sw-1" },
  }) as unknown as RunOn<Switch>;

const RACK = { kind: "rack", id: "rack-1" };
const END = { message: "", at: new Date(0), residue: [] } as const;

test("a flash for its rack leads a switch to reprovisioning, and its end out of it", () => {
  const run = aRun(RACK, ["update_firmware", "activate_firmware"], { awaits_fabric: "true" });
  const data = { rack: "rack-1", run: "run-1", awaitsFabric: true };
  expect(switchTarget.whenStarted(run, new Map())).toMatchObject([{ cause: "rack_requested", data, ifPossible: true }]);
  expect(switchTarget.whenEnded(run, { ...END, phase: "SUCCEEDED" }, new Map())).toMatchObject([
    { cause: "firmware_proven" },
  ]);
  for (const phase of ["FAILED", "CANCELED"] as const) {
    const ended = switchTarget.whenEnded(run, { ...END, phase, message: "no answer" }, new Map());
    expect(ended).toMatchObject([{ cause: "firmware_failed", message: "no answer" }]);
  }
});

test("a flash that somebody ended before it was begun leads the switch, or the tray, back: nothing has failed", () => {
  const canceled = { ...END, phase: "CANCELED" } as const;
  const run = aRun(RACK, ["update_firmware"], {}, null);
  expect(switchTarget.whenEnded(run, canceled, new Map())).toMatchObject([{ cause: "rack_ended" }]);
  expect(whenRackHasFlashed(run, canceled)).toMatchObject([{ cause: "rack_ended" }]);
  expect(whenRackHasFlashed(aRun(RACK, ["update_firmware"]), canceled)).toMatchObject([{ cause: "firmware_failed" }]);
  // A rack manager was asked before the run was there.
  const followed = aRun(RACK, ["follow_firmware_job"], {}, null);
  expect(switchTarget.whenEnded(followed, canceled, new Map())).toMatchObject([{ cause: "firmware_failed" }]);
  const failed = { ...END, phase: "FAILED" } as const;
  expect(switchTarget.whenEnded(run, failed, new Map())).toMatchObject([{ cause: "firmware_failed" }]);
});

test("a flash that somebody ended between two components says what is written and what is not; one whose last proof was in leaves nothing open", () => {
  const steps = [
    { name: "update_bmc", kind: "update_firmware", payload: { component: "bmc", version: "1.10", activation: "none" } },
    {
      name: "update_bios",
      kind: "update_firmware",
      payload: { component: "bios", version: "2.3", activation: "host_reset" },
    },
    { name: "activate", kind: "activate_firmware", payload: { activation: "host_reset" } },
  ];
  const endAfter = (count: number) => {
    const visits = steps
      .slice(0, count)
      .map(({ name }) => ({ name, state: "SUCCEEDED", verdict: "proven", actingAt: new Date(0) }));
    const run = { ...aRun(RACK, []), plan: { steps }, facts: { steps: visits } } as unknown as RunOn<Switch>;
    return whenRackHasFlashed(run, { ...END, phase: "CANCELED" })[0];
  };
  expect(endAfter(1)).toMatchObject({
    cause: "firmware_failed",
    message: "the upgrade was ended: bmc 1.10 is written, bios 2.3 was not begun",
  });
  expect(endAfter(2)).toMatchObject({
    cause: "firmware_failed",
    message: "the upgrade was ended: bmc 1.10 is written, bios 2.3 is written, but not in use before a restart",
  });
  expect(endAfter(3)).toMatchObject({ cause: "firmware_proven" });
});

test.each([
  ["a run of its own", { kind: "run", id: "run-1" }, ["update_firmware"]],
  ["a power change for its rack", RACK, ["set_device_power"]],
])("%s leaves its state alone", (_name, holder, kinds) => {
  const run = aRun(holder, kinds);
  expect(switchTarget.whenStarted(run, new Map())).toEqual([]);
  expect(switchTarget.whenEnded(run, { ...END, phase: "FAILED" }, new Map())).toEqual([]);
});
