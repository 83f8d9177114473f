import { type RackContext, rackHandlers, type StartedRun } from "../../lifecycles/rack/handlers.ts";
import type { Rack } from "../../lifecycles/rack/rack.ts";
import { USUAL_LIMITS } from "../../lifecycles/rack/usual-limits.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import type { OnRack } from "../../runs/steps/rack/configure-fabric.ts";
import type { OnManagedRack } from "../../runs/steps/rack/managed/managed-rack.ts";
import { startsRun } from "../../runs/targets/new-run.ts";
import { rackTarget } from "../../runs/targets/rack.ts";
import { planOfMaintenance, planOfValidation } from "../../runs/workflows/rack/plan-of-rack.ts";
import { explainRack } from "../../services/explain/rack/rack.ts";
import { rackListing } from "../../store/rack/rack-list.ts";
import { rackStore } from "../../store/rack/racks.ts";
import { wireFabricTargets } from "../rack/fabric-targets.ts";
import { wireManagedDevices } from "../rack/managed-devices.ts";
import type { WiredTarget } from "../run-targets.ts";
import { rackMethods, rackRoles, rackThings } from "./rack-methods.ts";
import { defineThing, type HandlerTools, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

/** The rack works under its own claims, and so does the run that it starts on itself. */
function started({ id }: Rack, plan: Plan, initiator: string, unique: readonly (string | number)[]): StartedRun {
  const itself = { kind: rackStore.lifecycle.kind, id };
  const effect = startsRun({ target: itself, plan, initiator, holder: itself }, unique);
  return { id: effect.id, effect };
}

/** Undefined where no machines are worked on: then racks are on record, and nothing is done with them. */
function handlers({ clock, runs, rackLimits = USUAL_LIMITS }: HandlerTools) {
  if (!runs) return undefined;
  const { steps } = runs;
  return withContext(
    rackHandlers,
    (): RackContext => ({
      clock,
      limits: rackLimits,
      startMaintenance: (rack, { payloads, initiator, unique }) =>
        started(rack, planOfMaintenance(payloads, steps), initiator, unique),
      startValidation: (rack, payloads) =>
        started(rack, planOfValidation(payloads, steps), `rack ${rack.id}`, [
          rack.id,
          "validation",
          rack.stateVersion,
          rack.stateSince.toISOString(),
        ]),
    }),
  );
}

const runTarget = (tools: TargetTools): WiredTarget<Rack> => {
  const { fabric, rackManager } = tools;
  const fabricTarget = wireFabricTargets(tools);
  const devices = wireManagedDevices(tools);
  return {
    kind: rackTarget,
    providerOf: () => ({ name: "rack", can: fabric ? { fabric } : {} }),
    partsOf: ({ target: { thing: target } }): OnRack & OnManagedRack => ({
      ...{ target, fabricTarget, devices },
      ...(rackManager && { rackManager }),
    }),
  };
};

export const rack = defineThing<Rack>({
  store: rackStore,
  handlers,
  runTarget,
  explain: explainRack,
  methods: rackMethods,
  methodGroup: "racks",
  roles: rackRoles,
  things: rackThings,
  listing: rackListing,
});
