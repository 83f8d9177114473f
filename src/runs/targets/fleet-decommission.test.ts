import { describe, expect, test } from "vitest";
import { aFleetNode } from "../../../test/support/fleet/fleet-node.ts";
import type { MoveEffect } from "../../kernel/effects.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { decommissionEnded } from "./fleet-decommission.ts";
import type { RunEnd, RunOn } from "./target-kind.ts";

interface Step {
  readonly name: string;
  readonly state: string;
  readonly actingAt?: string | null;
}

function movesAfter(
  phase: RunEnd["phase"],
  { params = {}, steps = [], end = {} }: { params?: object; steps?: readonly Step[]; end?: Partial<RunEnd> },
): readonly string[] {
  const thing = aFleetNode("draining");
  const run = {
    target: { kind: "fleet_node", id: thing.id, thing },
    params,
    facts: { steps },
  } as unknown as RunOn<FleetNode>;
  const effects = decommissionEnded(run, { phase, message: "", at: new Date(0), residue: [], ...end });
  // Where the node is elsewhere by now nothing is written, and the end of the run is.
  expect(effects.every((effect) => (effect as MoveEffect).ifPossible)).toBe(true);
  return effects.map((effect) => (effect as MoveEffect).cause);
}

describe("the end of a decommission", () => {
  test.each([
    ["soft_reset", ["reset_completed", "still_quarantined"]],
    ["storage_cleanup", ["reset_completed", "still_quarantined"]],
    ["reimage", ["reimaged", "still_quarantined"]],
    ["full_decommission", ["removal_begun", "uninstalled"]],
    ["retire", []],
  ])("by %s leads the node along %j", (mode, moves) => {
    expect(movesAfter("SUCCEEDED", { params: { mode } })).toEqual(moves);
  });

  test.each([
    ["disable_node", ["drain_failed", "still_quarantined", "uninstall_failed"]],
    ["drain_node", ["drain_failed", "still_quarantined", "uninstall_failed"]],
    ["cleanup_storage", ["uninstall_failed"]],
    ["scrub_gpu", ["uninstall_failed"]],
    ["validate_clean_node", ["validation_failed", "validation_failed"]],
    ["release_maas_node", ["uninstall_failed"]],
  ])("that fails in %s leads it along %j", (name, moves) => {
    const steps = [
      { name: "earlier", state: "SUCCEEDED" },
      { name, state: "FAILED" },
    ];
    expect(movesAfter("FAILED", { steps })).toEqual(moves);
  });

  const wiped = { name: "cleanup_storage", state: "SUCCEEDED", actingAt: "2026-01-01T00:00:00Z" };
  test.each<[string, readonly Step[], string]>([
    ["before anything was wiped", [{ name: "drain_node", state: "RUNNING" }], "still_quarantined"],
    ["in the middle of the cleanup", [{ ...wiped, state: "RUNNING" }], "validation_failed"],
    ["before the validation", [wiped], "validation_failed"],
    ["once the node is validated", [wiped, { name: "validate_clean_node", state: "SUCCEEDED" }], "still_quarantined"],
  ])("that is canceled %s", (_, steps, last) => {
    expect(movesAfter("CANCELED", { steps })).toEqual(["decommission_canceled", last]);
  });
});
