import { create } from "@bufbuild/protobuf";
import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import {
  PreviewRackMaintenanceRequestSchema,
  StartRackMaintenanceRequestSchema,
} from "../../../../contract/millwright/v1/rack_pb.js";
import { callerKey } from "../../transport/interceptors.ts";
import { rackMaintenance } from "./maintenance.ts";

const asOperator = {
  values: createContextValues().set(callerKey, { name: "pat", roles: ["operator"], address: null }),
} as HandlerContext;
// Nothing is read before the caller's right is checked.
const { startRackMaintenance, previewRackMaintenance } = rackMaintenance({} as Parameters<typeof rackMaintenance>[0]);
const asked = { rackId: "rack-1", includeAssigned: true, reason: "why not" };

test.each([
  ["start", async () => startRackMaintenance(create(StartRackMaintenanceRequestSchema, asked), asOperator)],
  ["preview", async () => previewRackMaintenance(create(PreviewRackMaintenanceRequestSchema, asked), asOperator)],
])("a %s that includes assigned trays takes the role admin", async (_, call) => {
  await expect(call()).rejects.toMatchObject({ message: "include_assigned: requires the role admin" });
});
