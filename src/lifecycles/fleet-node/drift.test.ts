import { describe, expect, test } from "vitest";
import type { ObservedMaasState } from "../../capabilities/fleet/maas-machine.ts";
import { rowsFrom } from "../../kernel/lifecycle.ts";
import { DRIFT_REASONS, type Drift, type DriftReason, driftOf, isSameServer, remedyOfDrift } from "./drift.ts";
import { type FleetNodeState, fleetNodeLifecycle, FLEET_NODE_STATES as STATES } from "./lifecycle.ts";

const OBSERVED = [
  ...["New", "Commissioning", "Ready", "Allocated", "Deploying", "Deployed", "Failed deployment"],
  ...["Failed", "Broken", "absent", "Transient", "Other"],
] as ObservedMaasState[];

const drift = (state: FleetNodeState, observed: ObservedMaasState, more: object = {}): Drift =>
  driftOf({ state, observed, retainInMaas: false, isSameServer: true, ...more });
const wordsOf = (state: FleetNodeState, more: object = {}) =>
  OBSERVED.filter((observed) => drift(state, observed, more).is === "fine");

/** The table of the specification, "Expected MAAS state by lifecycle", with the statuses that it does not name. */
test.each<[FleetNodeState, readonly ObservedMaasState[]]>([
  ["bootstrap_issued", OBSERVED],
  ["active", ["Deployed"]],
  ["offline", ["Deployed"]],
  ["quarantined", OBSERVED],
  ["draining", ["Ready", "Deployed"]],
  ["retired", ["Ready", "Deployed", "Transient"]],
  ["removing", ["Ready", "Deployed", "absent", "Transient"]],
  ["deleted", ["absent"]],
])("of a node in %s MAAS should show %j", (state, expected) => {
  expect(wordsOf(state)).toEqual(OBSERVED.filter((observed) => expected.includes(observed)));
});

test("an enrolling node whose job failed may be anywhere between New and Deployed: what has gone on is adopted", () => {
  expect(Object.groupBy(OBSERVED, (observed) => drift("enrolling", observed).is)).toEqual({
    fine: ["New", "Transient"],
    adopt: ["Commissioning", "Ready", "Allocated", "Deploying", "Deployed"],
    report: ["Failed deployment", "Failed", "Broken", "absent", "Other"],
  });
});

test("a machine stays in MAAS after its node where the site says so, whatever becomes of it there", () => {
  expect(drift("deleted", "Ready")).toEqual({ is: "report", reason: "released_in_maas" });
  expect(drift("deleted", "Deployed")).toEqual({ is: "report", reason: "still_in_maas" });
  expect(wordsOf("deleted", { retainInMaas: true })).toEqual(OBSERVED);
});

describe("only an active or offline node is quarantined for it", () => {
  test.each(STATES)("%s", (state) => {
    const found = OBSERVED.flatMap((observed) => [
      drift(state, observed),
      drift(state, observed, { isSameServer: false }),
    ]);
    expect(found.some(({ is }) => is === "quarantine")).toBe(state === "active" || state === "offline");
  });

  test("which are the states that the reconciler's row of the table leaves", () => {
    const from = STATES.filter((state) =>
      rowsFrom(fleetNodeLifecycle, state).some(([, { name }, to]) => name === "drift_found" && to === "quarantined"),
    );
    expect(from).toEqual(["active", "offline"]);
  });
});

test.each<[ObservedMaasState, DriftReason]>([
  ["absent", "machine_deleted_in_maas"],
  ["New", "released_in_maas"],
  ["Ready", "released_in_maas"],
  ["Allocated", "released_in_maas"],
  ["Transient", "released_in_maas"],
  ["Commissioning", "commissioned_in_maas"],
  ["Deploying", "redeployed_in_maas"],
  ["Failed deployment", "redeployed_in_maas"],
  ["Failed", "failed_in_maas"],
  ["Broken", "broken_in_maas"],
  ["Other", "not_usable_in_maas"],
])("an active node that MAAS shows as %s is quarantined: %s", (observed, reason) => {
  expect(drift("active", observed)).toEqual({ is: "quarantine", reason });
});

test("another server under the same name is told wherever somebody builds on it, and an absent one is just absent", () => {
  const other = { isSameServer: false };
  expect(drift("active", "Deployed", other)).toEqual({ is: "quarantine", reason: "identity_mismatch" });
  expect(drift("retired", "Ready", other)).toEqual({ is: "report", reason: "identity_mismatch" });
  expect(drift("active", "absent", other)).toEqual({ is: "quarantine", reason: "machine_deleted_in_maas" });
  expect(drift("quarantined", "Ready", other)).toEqual({ is: "fine" });
});

test("a serial number that one side does not know contradicts nothing", () => {
  expect(isSameServer("ABC1", { serial: "abc1" })).toBe(true);
  expect(isSameServer(null, { serial: "abc1" })).toBe(true);
  expect(isSameServer("ABC1", { serial: null })).toBe(true);
  expect(isSameServer("ABC1", { serial: "ABC2" })).toBe(false);
});

test("every reason has a command that names the node or its site, unless people have to put the machine right in MAAS", () => {
  const remedies = (Object.keys(DRIFT_REASONS) as DriftReason[]).map(
    (reason) => [reason, remedyOfDrift({ id: "fn-1", site: "lab" }, reason)] as const,
  );
  const without = remedies.filter(([, command]) => command === null).map(([reason]) => reason);
  expect(without).toEqual(["commissioned_in_maas", "failed_in_maas", "broken_in_maas", "not_usable_in_maas"]);
  for (const [, command] of remedies)
    if (command !== null) expect(command).toMatch(/^millwright fleet (decommission|candidates) .*(fn-1|lab)/);
});
