import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ExpectedRackSchema, ExpectedRack as WireRack } from "../../../contract/forge/expected_pb.js";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  addExpectedRack,
  deleteAllExpectedRacks,
  deleteExpectedRack,
  type ExpectedRack,
  type ExpectedRackInput,
  getExpectedRack,
  listAllExpectedRacks,
  replaceAllExpectedRacks,
  updateExpectedRack,
} from "../../services/expected-rack/expected-racks.ts";
import { required } from "../convert/fields.ts";
import { metadataFrom, metadataOf } from "../convert/metadata.ts";
import { callerOf } from "./device-methods.ts";

/** `prefix` says where in the request it stands. */
const expectedRackFrom = ({ rackId, rackProfileId, metadata }: WireRack, prefix = ""): ExpectedRackInput => ({
  rackId: required(rackId, `${prefix}rack_id`).id,
  profileId: required(rackProfileId, `${prefix}rack_profile_id`).id,
  metadata: metadata ? metadataFrom(metadata, `${prefix}metadata`) : { name: "", description: "", labels: {} },
});

const forgeExpectedRackOf = (row: ExpectedRack): MessageInitShape<typeof ExpectedRackSchema> => ({
  rackId: { id: row.id },
  rackProfileId: { id: row.profileId },
  metadata: metadataOf(row),
});

export const forgeExpectedRacks = (deps: ServiceDeps) =>
  ({
    async addExpectedRack(expected, context) {
      await addExpectedRack(deps, callerOf(context), expectedRackFrom(expected));
      return {};
    },
    async updateExpectedRack(expected, context) {
      await updateExpectedRack(deps, callerOf(context), expectedRackFrom(expected));
      return {};
    },
    async deleteExpectedRack({ rackId }, context) {
      await deleteExpectedRack(deps, callerOf(context), rackId);
      return {};
    },
    async getExpectedRack({ rackId }) {
      return forgeExpectedRackOf(await getExpectedRack(deps, rackId));
    },
    async getAllExpectedRacks() {
      return { expectedRacks: (await listAllExpectedRacks(deps)).map(forgeExpectedRackOf) };
    },
    async replaceAllExpectedRacks({ expectedRacks }, context) {
      const inputs = expectedRacks.map((one, index) => expectedRackFrom(one, `expected_racks[${index}].`));
      await replaceAllExpectedRacks(deps, callerOf(context), inputs);
      return {};
    },
    async deleteAllExpectedRacks(_request, context) {
      await deleteAllExpectedRacks(deps, callerOf(context));
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof Forge>>;
