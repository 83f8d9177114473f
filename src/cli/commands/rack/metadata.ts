import { create } from "@bufbuild/protobuf";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { MetadataSchema } from "../../../../contract/forge/shared_pb.js";
import type { DescribedKind } from "../device/metadata.ts";

/** Racks are called by their ids: several may have the same name. */
export const describedRacks: DescribedKind = {
  noun: "rack",
  listCommand: "millwright rack list",
  resolve: async (_, id) => id,
  async read(session, id) {
    const forge = await session.client(Forge);
    const [rack] = (await forge.findRacksByIds({ rackIds: [{ id }] }, { signal: session.signal })).racks;
    return rack && { metadata: rack.metadata ?? create(MetadataSchema), version: rack.version };
  },
  async update(session, id, change) {
    const forge = await session.client(Forge);
    await forge.updateRackMetadata({ rackId: { id }, ...change }, { signal: session.signal });
  },
};
