import type { HandlerContext } from "@connectrpc/connect";
import {
  type MaintenanceActivityConfig,
  PowerSequenceOperation,
  type RackMaintenanceOnDemandRequest,
} from "../../../../contract/forge/rack_pb.js";
import { wrongField } from "../../../kernel/errors.ts";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { type StartRackMaintenance, startRackMaintenance } from "../../../services/rack/maintenance.ts";
import { required, wordFor } from "../../convert/fields.ts";
import { callerOf } from "../device-methods.ts";

type Activity = StartRackMaintenance["activities"][number];

const OPERATIONS = {
  [PowerSequenceOperation.UNSPECIFIED]: undefined,
  [PowerSequenceOperation.ON]: "on",
  [PowerSequenceOperation.OFF]: "off",
  [PowerSequenceOperation.CYCLE]: "cycle",
} as const satisfies Record<PowerSequenceOperation, "on" | "off" | "cycle" | undefined>;

/** Without the override for assigned trays, which this contract does not have. */
export async function onDemandRackMaintenance(
  deps: ServiceDeps,
  { rackId, scope }: RackMaintenanceOnDemandRequest,
  context: HandlerContext,
): Promise<Record<string, never>> {
  await startRackMaintenance(deps, callerOf(context), {
    rackId: required(rackId, "rack_id").id,
    scope: {
      machine_ids: scope?.machineIds ?? [],
      switch_ids: scope?.switchIds ?? [],
      power_shelf_ids: scope?.powerShelfIds ?? [],
    },
    activities: scope?.activities.map(activityFrom) ?? [],
  });
  return {};
}

function activityFrom({ activity }: MaintenanceActivityConfig, at: number): Activity {
  switch (activity.case) {
    case "firmwareUpgrade": {
      const { firmwareVersion, components } = activity.value;
      return {
        kind: "firmware_upgrade",
        ...(firmwareVersion !== "" && { firmware_version: firmwareVersion }),
        ...(components.length > 0 && { components }),
      };
    }
    case "configureNmxCluster":
      return { kind: "configure_nmx_cluster" };
    case "powerSequence": {
      const field = `scope.activities[${at}].power_sequence.operation`;
      const operation = wordFor<"on" | "off" | "cycle" | undefined>(OPERATIONS, activity.value.operation, field);
      return { kind: "power_sequence", ...(operation && { operation }) };
    }
    default:
      throw wrongField(`scope.activities[${at}]`, "names no activity");
  }
}
