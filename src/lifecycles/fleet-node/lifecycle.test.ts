import { describe, expect, test } from "vitest";
import { aFleetNode as node } from "../../../test/support/fleet/fleet-node.ts";
import { followOrRefuse } from "../../kernel/decide.ts";
import { GONE, type Row, STAY } from "../../kernel/lifecycle.ts";
import type { FleetNode } from "./fleet-node.ts";
import { fleetNodeLifecycle } from "./lifecycle.ts";

/** Sections 3.1 to 3.3 of the specification: each edge with who owns it, as the triggers here name them. */
// biome-ignore format: a table is read by its columns
const SPECIFICATION = {
  "bootstrap_issued → enrolling": ["other onboarding_started", "handler bundle_expired"],
  "enrolling → active":           ["other onboarding_completed"],
  "enrolling → quarantined":      ["other onboarding_failed", "other onboarding_canceled", "handler bundle_expired", "caller quarantine"],
  "active → offline":             ["other heartbeat_lost"],
  "offline → active":             ["other heartbeat_recovered"],
  "active → quarantined":         ["other drift_found", "other validation_failed", "caller quarantine"],
  "offline → quarantined":        ["other drift_found", "other validation_failed", "other still_quarantined", "caller quarantine"],
  "quarantined → active":         ["caller recover", "other health_proven", "other onboarding_completed"],
  "active → draining":            ["caller retire", "other drain_begun"],
  "offline → draining":           ["caller retire", "other drain_begun"],
  "quarantined → draining":       ["caller retire", "other drain_begun"],
  "draining → retired":           ["other drained"],
  "draining → offline":           ["other reset_completed", "other drain_failed", "other validation_failed", "other decommission_canceled", "caller abort_drain"],
  "retired → offline":            ["caller reactivate", "other reimaged"],
  "retired → removing":           ["other removal_begun"],
  "removing → retired":           ["other uninstall_failed", "other decommission_canceled", "caller rollback_removal"],
  "removing → deleted":           ["other uninstalled"],
} as const;

const rows: readonly Row<FleetNode>[] = fleetNodeLifecycle.transitions;
const moves = rows.filter(([, , to]) => to !== STAY);

describe("the table of a fleet node", () => {
  test("has the seventeen edges of the specification with their owners, no more and no fewer", () => {
    const edges = Map.groupBy(moves, ([from, , to]) => `${from} → ${to}`);
    const drawn = [...edges].map(([edge, all]) => [edge, all.map(([, { owner, name }]) => `${owner} ${name}`)]);
    expect(Object.fromEntries(drawn)).toEqual(SPECIFICATION);
    expect(edges.size).toBe(17);
  });

  test("has the nine states, and none for what a workflow is at", () => {
    expect(Object.keys(fleetNodeLifecycle.states)).toEqual([
      ...["bootstrap_issued", "enrolling", "active", "offline", "quarantined"],
      ...["draining", "retired", "removing", "deleted"],
    ]);
    expect(fleetNodeLifecycle.alsoInitial).toEqual(["enrolling"]);
  });

  test("never lets a removed node come back, nor forgets it", () => {
    expect(fleetNodeLifecycle.states.deleted).toMatchObject({ terminal: true });
    expect(rows.filter(([from, , to]) => from === "deleted" || from === "*" || to === GONE)).toEqual([]);
  });

  test("has no deadline in draining and removing: nothing leaves them since time passed", () => {
    for (const state of ["draining", "removing"] as const)
      expect(fleetNodeLifecycle.states[state]).not.toHaveProperty("deadline");
    const out = moves.filter(([from]) => from === "draining" || from === "removing");
    expect(out.filter(([, { owner }]) => owner === "controller" || owner === "handler")).toEqual([]);
  });

  test("enters draining and removing only by a verb that starts a job, or by the job itself", () => {
    const into = moves.filter(([, , to]) => to === "draining" || to === "removing");
    expect(new Set(into.map(([, { owner, name }]) => `${owner} ${name}`))).toEqual(
      new Set(["caller retire", "other drain_begun", "other removal_begun"]),
    );
  });
});

const other = (name: string, more: object = {}) => ({ owner: "other", name, ...more }) as const;

describe("a quarantine", () => {
  test("keeps its reason until an operator or a completed onboarding lifts it", () => {
    const drift = followOrRefuse(
      fleetNodeLifecycle,
      node("active"),
      other("drift_found", { message: "it is broken in MAAS" }),
    );
    expect(drift).toMatchObject({ to: "quarantined", facts: { quarantineReason: "it is broken in MAAS" } });
    const held = node("quarantined", { quarantineReason: "it is broken in MAAS" });
    expect(followOrRefuse(fleetNodeLifecycle, held, other("drain_begun")).facts).toEqual({});
    for (const happened of [{ owner: "caller", name: "recover" } as const, other("onboarding_completed")])
      expect(followOrRefuse(fleetNodeLifecycle, held, happened)).toMatchObject({
        to: "active",
        facts: { quarantineReason: null },
      });
  });

  test("is not lifted by a heartbeat, also not of a node that was drained in between", () => {
    const reset = node("offline", { quarantineReason: "it is broken in MAAS" });
    expect(() => followOrRefuse(fleetNodeLifecycle, reset, other("heartbeat_recovered"))).toThrow("is not possible");
    expect(followOrRefuse(fleetNodeLifecycle, reset, other("still_quarantined")).to).toBe("quarantined");
    const healthy = node("offline");
    expect(followOrRefuse(fleetNodeLifecycle, healthy, other("heartbeat_recovered")).to).toBe("active");
    expect(() => followOrRefuse(fleetNodeLifecycle, healthy, other("still_quarantined"))).toThrow("is not possible");
  });

  test("of a node that fails its validation comes by way of offline, both by the same trigger", () => {
    expect(followOrRefuse(fleetNodeLifecycle, node("draining"), other("validation_failed")).to).toBe("offline");
    const failed = followOrRefuse(
      fleetNodeLifecycle,
      node("offline"),
      other("validation_failed", { message: "2 GPUs busy" }),
    );
    expect(failed).toMatchObject({ to: "quarantined", facts: { quarantineReason: "2 GPUs busy" } });
  });
});
