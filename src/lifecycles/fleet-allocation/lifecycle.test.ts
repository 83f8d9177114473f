import { describe, expect, test } from "vitest";
import type { Allocator } from "../../capabilities/fleet/allocator.ts";
import { follow } from "../../kernel/decide.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { FleetAllocation } from "./fleet-allocation.ts";
import { type FleetAllocationContext, fleetAllocationHandlers } from "./handlers.ts";
import { fleetAllocationLifecycle } from "./lifecycle.ts";

/** As the specification has it; `node_leaves` is the force-release of an administrator who decommissions the node. */
const SPECIFIED = [
  ["requested", "handler picked_up", "provisioning"],
  ["provisioning", "handler agent_ready", "active"],
  ["provisioning", "handler gave_up", "failed"],
  ["active", "caller release", "releasing"],
  ["active", "caller force_release", "releasing"],
  ["active", "other node_leaves", "releasing"],
  ["releasing", "handler cleanup_proven", "released"],
  ["releasing", "handler retries_exhausted", "release_failed"],
  ["release_failed", "caller release", "releasing"],
  ["release_failed", "caller force_release", "releasing"],
  ["release_failed", "other node_leaves", "releasing"],
];

test("the table is the specified one, no more and no less", () => {
  const rows = fleetAllocationLifecycle.transitions.map(([from, { owner, name }, to]) => [
    from,
    `${owner} ${name}`,
    to,
  ]);
  expect(rows).toEqual(SPECIFIED);
});

const allocation = (name: string, node: string | null = "active", carried = {}): FleetAllocation => ({
  id: "fa-1",
  version: 1,
  basis: 1,
  state: { name, ...carried },
  stateSince: new Date(0),
  stateVersion: 1,
  outcome: null,
  node: "fn-1",
  hostname: "gpu-1",
  tenant: "team-a",
  createdBy: "ann",
  createdAt: new Date(0),
  facts: {},
  related: { node: node === null ? null : { kind: "fleet_node", id: "fn-1", state: node } },
});

test("a failed release keeps by whose wish it was, and says why", () => {
  const failed = { owner: "handler", name: "retries_exhausted", message: "no answer", cause: { code: "unreachable" } };
  expect(
    follow(fleetAllocationLifecycle, allocation("releasing", "draining", { force: true }), failed as never),
  ).toMatchObject({
    to: "release_failed",
    carried: { force: true, cause: "no answer", failure: { code: "unreachable" } },
  });
});

const call = { subject: "test", signal: new AbortController().signal, mayTouchDevice: (wanted: Duration) => wanted };
const context = (allocator?: Allocator) => ({ call, ...(allocator && { allocator }) }) as FleetAllocationContext;
const answering = (state: "done" | "in_progress", asked: unknown[] = []): Allocator => ({
  provision: async (order) => {
    asked.push(order);
    return { state, message: "" };
  },
  release: async (order) => {
    asked.push(order);
    return { state, message: "tenant data is wiped" };
  },
});

describe("an allocation that is being provisioned", () => {
  test("is active at once on an active node, unless somebody outside prepares it", async () => {
    expect(await fleetAllocationHandlers.provisioning(allocation("provisioning"), context())).toMatchObject({
      event: "agent_ready",
    });
    const asked: unknown[] = [];
    const waits = await fleetAllocationHandlers.provisioning(
      allocation("provisioning"),
      context(answering("in_progress", asked)),
    );
    expect(waits.type).toBe("waiting");
    expect(asked).toEqual([{ id: "fa-1", node: "fn-1", hostname: "gpu-1", tenant: "team-a" }]);
  });

  test.each(["enrolling", "offline"])("waits while its node is %s", async (state) => {
    expect(await fleetAllocationHandlers.provisioning(allocation("provisioning", state), context())).toMatchObject({
      type: "waiting",
    });
  });

  test.each(["quarantined", "draining", "retired", "removing", "deleted", null])(
    "is given up, and asks nobody, when its node is %s",
    async (state) => {
      const asked: unknown[] = [];
      const given = fleetAllocationHandlers.provisioning(
        allocation("provisioning", state),
        context(answering("done", asked)),
      );
      await expect(given).rejects.toMatchObject({ code: "target_gone", disposition: "fail" });
      expect(asked).toEqual([]);
    },
  );
});

describe("an allocation that is being released", () => {
  test("is released once the allocator has cleaned up, whatever its node is, and tells it of force", async () => {
    const asked: unknown[] = [];
    const releasing = allocation("releasing", "draining", { force: true });
    expect(await fleetAllocationHandlers.releasing(releasing, context(answering("in_progress", asked)))).toMatchObject({
      type: "waiting",
      reason: "tenant data is wiped",
    });
    expect(asked).toEqual([expect.objectContaining({ id: "fa-1", force: true })]);
    expect(await fleetAllocationHandlers.releasing(releasing, context(answering("done")))).toMatchObject({
      event: "cleanup_proven",
    });
  });

  test("is released at once where nobody outside uses nodes", async () => {
    expect(await fleetAllocationHandlers.releasing(allocation("releasing", null), context())).toMatchObject({
      event: "cleanup_proven",
    });
  });
});
