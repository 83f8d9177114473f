import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type GetRackProfileResponseSchema,
  RackHardwareClass,
  RackHardwareTopology,
  type RackSchema,
} from "../../../contract/forge/rack_pb.js";
import type { ProfilePart, RackProfile, Topology } from "../../services/catalog/rack-profiles.ts";
import { metadataVersionOf } from "../../services/device/metadata.ts";
import type { RackRecord, RackView } from "../../services/rack/racks.ts";
import { timestampOf } from "../convert/fields.ts";
import { metadataOf } from "../convert/metadata.ts";
import { lifecycleOf, mergedHealthOf } from "./device-messages.ts";
import { rackStateJson, rackStateText } from "./rack-state.ts";

export function forgeRackOf(view: RackView): MessageInitShape<typeof RackSchema> {
  const { rack } = view;
  const { name, ...carried } = rack.state;
  return {
    id: { id: rack.id },
    rackState: rackStateText(name, carried),
    created: timestampOf(rack.createdAt),
    updated: timestampOf(rack.stateSince > rack.metadataChangedAt ? rack.stateSince : rack.metadataChangedAt),
    deleted: timestampOf(rack.deletedAt),
    metadata: metadataOf(rack),
    version: metadataVersionOf(rack),
    config: {},
    status: {
      ...mergedHealthOf(view),
      lifecycle: lifecycleOf(view, rack, JSON.stringify(rackStateJson(name, carried))),
    },
  };
}

const TOPOLOGIES = {
  gb200_nvl36r1_c2g4: RackHardwareTopology.GB200_NVL36R1_C2G4,
  gb300_nvl36r1_c2g4: RackHardwareTopology.GB300_NVL36R1_C2G4,
  gb200_nvl72r1_c2g4: RackHardwareTopology.GB200_NVL72R1_C2G4,
  gb300_nvl72r1_c2g4: RackHardwareTopology.GB300_NVL72R1_C2G4,
  vr_nvl8r1_c2g4_rtf: RackHardwareTopology.VR_NVL8R1_C2G4_RTF,
  vr_nvl72r1_c2g4: RackHardwareTopology.VR_NVL72R1_C2G4,
} as const satisfies Record<Topology, RackHardwareTopology>;

const CLASSES = {
  dev: RackHardwareClass.DEV,
  prod: RackHardwareClass.PROD,
} as const satisfies Record<RackProfile["class"], RackHardwareClass>;

export const forgeProfileOf = (
  { id, profileId }: RackRecord,
  profile: RackProfile | undefined,
): MessageInitShape<typeof GetRackProfileResponseSchema> => ({
  rackId: { id },
  ...(profileId !== null && { rackProfileId: { id: profileId } }),
  ...(profile && {
    profile: {
      ...(profile.hardwareType !== null && { rackHardwareType: { value: profile.hardwareType } }),
      rackHardwareTopology: TOPOLOGIES[profile.topology as Topology] ?? RackHardwareTopology.UNSPECIFIED,
      rackHardwareClass: CLASSES[profile.class],
      capabilities: {
        compute: partOf(profile.compute),
        switch: partOf(profile.switches),
        powerShelf: partOf(profile.powerShelves),
      },
    },
  }),
});

const partOf = ({ name, count, vendor, slotIds }: ProfilePart) => ({
  count,
  slotIds: [...slotIds],
  ...(name !== null && { name }),
  ...(vendor !== null && { vendor }),
});
