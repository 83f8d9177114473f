import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PreviewRackMaintenanceResponseSchema } from "../../../../contract/millwright/v1/rack_pb.js";
import type { RackPreview } from "../../../services/rack/preview.ts";
import { durationOf, timestampOf } from "../../convert/fields.ts";

export const rackPreviewOf = (preview: RackPreview): MessageInitShape<typeof PreviewRackMaintenanceResponseSchema> => ({
  rackId: preview.rackId,
  devices: preview.devices.map(({ kind, id, name, components, disturbances }) => ({
    name,
    kind,
    id,
    components: components.map(({ from, ...component }) => ({ ...component, from: from ?? "" })),
    disturbances: [...disturbances],
  })),
  leftOut: preview.leftOut.map(({ id, why }) => ({ id, why })),
  stages: preview.stages.map(({ skipped, fails, ...stage }) => ({
    ...stage,
    skipped: skipped ?? "",
    fails: fails ?? "",
  })),
  firmware: preview.firmware ?? "",
  holders: preview.holders.map(({ holder, does, since, devices }) => ({
    ...holder,
    does,
    since: timestampOf(since),
    devices: devices.map(({ kind, id }) => `${kind} ${id}`),
  })),
  assignedTrays: preview.assignedTrays.map((tray) => ({ ...tray })),
  expectedDuration: durationOf(preview.expectedDuration),
  durationBasis: preview.durationBasis,
  notes: [...preview.notes],
});
