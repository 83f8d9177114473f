import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { type FleetNodeContext, fleetNodeHandlers } from "../../lifecycles/fleet-node/handlers.ts";
import { fleetNodeTarget } from "../../runs/targets/fleet-node.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { fleetNodeStore } from "../../store/fleet/nodes.ts";
import { fleetPartsOf } from "../fleet/fleet-parts.ts";
import type { WiredTarget } from "../run-targets.ts";
import { defineThing, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const runTarget = (tools: TargetTools): WiredTarget<FleetNode> => {
  const partsOf = fleetPartsOf(tools);
  return {
    kind: fleetNodeTarget,
    providerOf: () => ({ name: "maas", can: {} }),
    partsOf: ({ target: { thing } }) => partsOf(thing),
  };
};

export const fleetNode = defineThing<FleetNode>({
  store: fleetNodeStore,
  handlers: ({ clock }) => withContext(fleetNodeHandlers, (): FleetNodeContext => ({ clock })),
  runTarget,
  explain: (deps, id) => explainAnyThing(deps, fleetNodeStore.lifecycle.kind, id, `millwright fleet show ${id}`),
});
