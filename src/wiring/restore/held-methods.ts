import type { Authenticate } from "../../api/auth/authenticate.ts";
import { refuseUnderReview } from "../../services/restore/gate.ts";
import type { Queryable } from "../../store/postgres/database.ts";

/**
 * Methods and routes that reach a device, or begin something that does. While a restored backup is under review, nobody may call them. A test
 * compares this list with the table of roles: each method that writes is here, or in the other list.
 */
export const HELD_METHODS: ReadonlySet<string> = new Set([
  "POST /api/v1/fleet/allocations",
  "POST /api/v1/fleet/allocations/{id}/force-release",
  "POST /api/v1/fleet/allocations/{id}/release",
  "POST /api/v1/fleet/batches",
  "POST /api/v1/fleet/nodes",
  "POST /api/v1/fleet/nodes/{node}/actions",
  "POST /api/v1/fleet/nodes/{node}/decommission",
  "POST /api/v1/fleet/nodes/{node}/drain-abort",
  "POST /api/v1/fleet/nodes/{node}/reactivate",
  "POST /api/v1/fleet/nodes/{node}/recover",
  "POST /api/v1/fleet/nodes/{node}/remove-rollback",
  "POST /api/v1/fleet/nodes/{node}/retire",
  "PATCH /api/v1/nodes/{id}/state",
  "POST /api/v1/nodes/bulk/change-state",
  "POST /api/v1/nodes/{id}/arm",
  "baremetal.v1.RunService/CancelRun",
  "baremetal.v1.RunService/StartRun",
  "forge.Forge/ApplyRackFirmware",
  "forge.Forge/ComponentPowerControl",
  "forge.Forge/OnDemandRackMaintenance",
  "forge.Forge/SetPowerShelfMaintenance",
  "forge.Forge/UpdateComponentFirmware",
  "millwright.v1.FleetAllocationService/ForceReleaseAllocation",
  "millwright.v1.FleetAllocationService/ReleaseAllocation",
  "millwright.v1.FleetAllocationService/RequestAllocation",
  "millwright.v1.FleetNodeService/AbortDrain",
  "millwright.v1.FleetNodeService/ActOnNode",
  "millwright.v1.FleetNodeService/DecommissionNode",
  "millwright.v1.FleetNodeService/OnboardNode",
  "millwright.v1.FleetNodeService/OnboardNodes",
  "millwright.v1.FleetNodeService/ReactivateNode",
  "millwright.v1.FleetNodeService/RecoverNode",
  "millwright.v1.FleetNodeService/RetireNode",
  "millwright.v1.FleetNodeService/RollbackRemoval",
  "millwright.v1.MachineLifecycleService/EnterMaintenance",
  "millwright.v1.MachineLifecycleService/ExitMaintenance",
  "millwright.v1.MachineLifecycleService/ReprovisionMachine",
  "millwright.v1.MachineLifecycleService/ReturnMachine",
  "millwright.v1.MachinePowerService/SetBootDevice",
  "millwright.v1.MachinePowerService/SetMachinePower",
  "millwright.v1.NodeService/ArmNode",
  "millwright.v1.NodeService/ChangeNodeState",
  "millwright.v1.PowerShelfService/CancelPowerShelfRequest",
  "millwright.v1.RackService/ClearRackError",
  "millwright.v1.RackService/ReprovisionRack",
  "millwright.v1.RackService/ResumeRackMaintenance",
  "millwright.v1.RackService/StartRackMaintenance",
  "millwright.v1.RackService/TerminateRackMaintenance",
  "millwright.v1.RunActionsService/AdoptRun",
  "millwright.v1.RunActionsService/CancelJob",
  "millwright.v1.RunActionsService/MarkRunManual",
  "millwright.v1.RunActionsService/RerunRun",
  "millwright.v1.RunActionsService/RestartRunClean",
  "millwright.v1.RunActionsService/ResumeRun",
  "millwright.v1.RunActionsService/RetryRun",
  "millwright.v1.RunActionsService/StartRuns",
  "millwright.v1.RunService/CancelRun",
]);

/** Lets nobody in where the method is held. Asked of the database at each such call: another replica may have begun the review. */
export const refusingHeld =
  (authenticate: Authenticate, db: Queryable): Authenticate =>
  async (headers, peer, method) => {
    const caller = await authenticate(headers, peer, method);
    if (HELD_METHODS.has(method)) await refuseUnderReview(db);
    return caller;
  };
