import type { ServiceImpl } from "@connectrpc/connect";
import type {
  RackActivity,
  RackService,
  StartRackMaintenanceRequest,
} from "../../../../contract/millwright/v1/rack_pb.js";
import { wrongField } from "../../../kernel/errors.ts";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { deleteRack } from "../../../services/rack/deletion.ts";
import { limitPreviews } from "../../../services/rack/limited-preview.ts";
import {
  clearRackError,
  reprovisionRack,
  resumeRackMaintenance,
  type StartRackMaintenance,
  startRackMaintenance,
  terminateRackMaintenance,
} from "../../../services/rack/maintenance.ts";
import type { PreviewDeps } from "../../../services/rack/preview.ts";
import { nonEmpty } from "../../convert/fields.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { rackPreviewOf } from "./preview-messages.ts";

type Activity = StartRackMaintenance["activities"][number];

/** A request of a maintenance, and of its preview: the two have the same fields. */
type Asked = Omit<StartRackMaintenanceRequest, "$typeName" | "$unknown">;

export function rackMaintenance(deps: ServiceDeps & PreviewDeps) {
  const preview = limitPreviews();
  return {
    startRackMaintenance: async (request, { values }) =>
      startRackMaintenance(deps, values.get(callerKey), inputFrom(request)),
    previewRackMaintenance: async (request, { values }) =>
      rackPreviewOf(await preview(deps, values.get(callerKey), inputFrom(request))),
    async terminateRackMaintenance({ rackId }, { values }) {
      await terminateRackMaintenance(deps, values.get(callerKey), rackId);
      return {};
    },
    async resumeRackMaintenance(_, { values }) {
      const { overlooked, waiting } = await resumeRackMaintenance(deps, values.get(callerKey));
      return { overlooked: [...overlooked], waiting: [...waiting] };
    },
    reprovisionRack: ({ rackId, reference }, { values }) =>
      reprovisionRack(deps, values.get(callerKey), { rackId, reference: nonEmpty(reference) }),
    async clearRackError({ rackId }, { values }) {
      await clearRackError(deps, values.get(callerKey), rackId);
      return {};
    },
    async deleteRack({ id, detach }, { values }) {
      await deleteRack(deps, values.get(callerKey), { id, detach });
      return {};
    },
  } satisfies Partial<ServiceImpl<typeof RackService>>;
}

const inputFrom = (request: Asked): StartRackMaintenance => ({
  rackId: request.rackId,
  scope: {
    machine_ids: request.machineIds,
    switch_ids: request.switchIds,
    power_shelf_ids: request.powerShelfIds,
  },
  activities: request.activities.map(activityFrom),
  reference: nonEmpty(request.reference),
  ...(request.includeAssigned && { includeAssigned: { reason: request.reason } }),
});

function activityFrom({ kind, firmwareVersion, components, operation }: RackActivity, at: number): Activity {
  switch (kind) {
    case "firmware_upgrade":
      return {
        kind,
        ...(firmwareVersion !== "" && { firmware_version: firmwareVersion }),
        ...(components.length > 0 && { components }),
      };
    case "configure_nmx_cluster":
      return { kind };
    case "power_sequence":
      if (operation === "") return { kind };
      if (operation === "on" || operation === "off" || operation === "cycle") return { kind, operation };
      throw wrongField(`activities[${at}].operation`, "must be on, off or cycle");
    default:
      throw wrongField(`activities[${at}].kind`, "must be firmware_upgrade, configure_nmx_cluster or power_sequence");
  }
}
