import { move, wake } from "../../../../kernel/effects.ts";
import { minutes } from "../../../../kernel/time/duration.ts";
import { fleetAllocationLifecycle } from "../../../../lifecycles/fleet-allocation/lifecycle.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import { defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { drainBegun, isRetired, type OnLeaving, parseLeaving } from "./on-leaving.ts";

/** From now on nobody schedules anything on the node. */
export const disableNode = defineStepOn<OnLeaving>()({
  kind: "disable_node",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  parse: parseLeaving,
  actsByEffectsOnly: true,
  before: async () => ({}),
  act: async ({ target }) => ({ effects: [drainBegun(target)] }),
  async probe({ target }): Promise<ProbeReport> {
    const message = `the node is ${target.state.name}`;
    return { state: target.state.name === "draining" || isRetired(target) ? "done" : "not_done", message };
  },
});

/** Ends whatever use is made of the node, and waits until its cleanup is proven. None is made anew: the node is not active. */
export const forceReleaseAllocations = defineStepOn<OnLeaving>()({
  kind: "force_release_allocations",
  needs: [],
  defaults: { timeout: minutes(45), maxRetries: 1 },
  parse: parseLeaving,
  actsByEffectsOnly: true,
  before: async () => ({}),
  async act({ openAllocations, target }) {
    const open = await openAllocations();
    return {
      effects: [
        drainBegun(target),
        ...open.flatMap(({ id }) => [
          move(fleetAllocationLifecycle, id, "node_leaves", { ifPossible: true }),
          // One that is still being prepared gives up by itself, now that the node leaves.
          wake(fleetAllocationLifecycle, id),
        ]),
      ],
    };
  },
  async probe({ openAllocations, actingAt }): Promise<ProbeReport> {
    const open = await openAllocations();
    if (open.length === 0) return { state: "done", message: "nobody uses the node" };
    if ((actingAt ?? null) === null) return { state: "not_done" };
    const stuck = open.find(({ state }) => state === "release_failed");
    if (stuck)
      throw failedAs(
        "allocation_in_use",
        `allocation ${stuck.id} of ${stuck.tenant} could not be released: ${stuck.why}`,
        {
          name: stuck.id,
        },
      );
    // One that came into use while it was being given up is asked once more.
    if (open.some(({ state }) => state === "active")) return { state: "not_done" };
    return { state: "in_progress", message: `${open.length} allocations are being released` };
  },
});

/** Taken out of scheduling on purpose; the node keeps its identity. */
export const retireNode = defineStepOn<OnLeaving>()({
  kind: "retire_gpuaas_node",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  parse: parseLeaving,
  actsByEffectsOnly: true,
  before: async () => ({}),
  // After a failure the node may have been let go.
  act: async ({ target }) => ({
    effects: [drainBegun(target), move(fleetNodeLifecycle, target.id, "drained", { ifPossible: true })],
  }),
  probe: async ({ target }): Promise<ProbeReport> => ({
    state: isRetired(target) ? "done" : "not_done",
    message: `the node is ${target.state.name}`,
  }),
});
