import { expect, test } from "vitest";
import { wholeRack } from "../../../test/support/racks/whole-rack.ts";
import type { MoveEffect } from "../../kernel/effects.ts";
import type { Rack, WorkSet } from "../../lifecycles/rack/rack.ts";
import { releasesDevices } from "../../lifecycles/rack/release.ts";
import { RACK_MAINTENANCE } from "../workflows/rack/words.ts";
import { rackTarget } from "./rack.ts";
import type { RunOn } from "./target-kind.ts";

const workSet: WorkSet = {
  machines: ["m1"],
  switches: ["sw1"],
  shelves: ["ps1"],
  leftOut: [],
  firmware: null,
  fabric: false,
  isOff: false,
  barsForMs: 0,
};
const facts = { topology: null, hasValidated: true, failedByItself: false, workSet };
const rackIn = (state: string) => wholeRack(state, { facts }, { run: "run-2" });
const endOf = (id: string) => {
  const run = {
    id,
    plan: { workflow: RACK_MAINTENANCE, steps: [] },
    facts: { steps: [] },
    children: [],
    target: { kind: "rack", id: "rack-1", thing: rackIn("maintenance") },
  } as unknown as RunOn<Rack>;
  return rackTarget.whenEnded(run, { phase: "FAILED", message: "no", cause: null } as never, new Map());
};
const named = (effects: readonly object[]) =>
  effects.map((effect) => {
    const { kind, id, cause } = effect as MoveEffect;
    return `${kind} ${id} ${cause}`;
  });

test("a run of the rack that had the id before leads the rack of now nowhere", () => {
  expect(endOf("run-1")).toEqual([]);
  expect(named(endOf("run-2"))).toEqual([
    "rack rack-1 run_failed",
    "switch sw1 rack_ended",
    "host_reprovision m1 rack_ended",
  ]);
});

test("devices are let go out of maintenance only: later they may wait for another rack", () => {
  expect(named(releasesDevices(rackIn("maintenance")))).toEqual([
    "switch sw1 rack_ended",
    "host_reprovision m1 rack_ended",
  ]);
  expect(releasesDevices(rackIn("ready"))).toEqual([]);
});
