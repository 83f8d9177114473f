import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type { OnLeaving } from "../../runs/steps/fleet/decommission/on-leaving.ts";
import type { OnFleetNode } from "../../runs/steps/fleet/on-fleet-node.ts";
import { listOpenAllocations } from "../../store/fleet/allocations.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { removeMachineCredentials } from "../../store/machine/credentials.ts";
import type { TargetTools } from "../things/thing.ts";

/** What the stages of a decommission are given beside what all steps on fleet nodes are. */
export const leavingPartsOf = ({ db, secrets }: TargetTools, node: FleetNode): Omit<OnLeaving, keyof OnFleetNode> => ({
  async openAllocations() {
    const open = await listOpenAllocations(db, node.id);
    return open.map(({ id, tenant, state, outcome }) => ({
      ...{ id, tenant },
      state: state.name,
      why: state.cause ?? outcome?.reason ?? "",
    }));
  },
  forgetCredentials: () =>
    db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: machineLifecycle.kind, id: node.machineId }]);
      await removeMachineCredentials(tx, secrets, node.machineId);
    }),
});
