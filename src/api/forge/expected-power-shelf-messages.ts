import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ExpectedPowerShelf,
  ExpectedPowerShelfRequest,
  ExpectedPowerShelfSchema,
  LinkedExpectedPowerShelfSchema,
} from "../../../contract/forge/forge_pb.js";
import type { ExpectedKey } from "../../services/expected-device/expected-devices.ts";
import type { ExpectedInput } from "../../services/expected-device/input.ts";
import type { ExpectedPowerShelfRecord } from "../../services/expected-power-shelf/expected-power-shelves.ts";
import { endpointText } from "../convert/bmc-endpoint.ts";
import { nonEmpty } from "../convert/fields.ts";
import { metadataFrom, metadataOf } from "../convert/metadata.ts";

/** `prefix` says where in the request it stands. */
export function expectedFrom(message: ExpectedPowerShelf, prefix = ""): ExpectedInput {
  const { expectedPowerShelfId, metadata, bmcRetainCredentials } = message;
  return {
    ...(expectedPowerShelfId !== undefined && { id: expectedPowerShelfId.value }),
    bmcMac: message.bmcMacAddress,
    bmcUsername: message.bmcUsername,
    bmcPassword: nonEmpty(message.bmcPassword),
    serial: message.shelfSerialNumber,
    bmcEndpoint: nonEmpty(message.bmcIpAddress),
    rackId: message.rackId?.id,
    metadata: metadata ? metadataFrom(metadata, `${prefix}metadata`) : { name: "", description: "", labels: {} },
    ...(bmcRetainCredentials !== undefined && { retainCredentials: bmcRetainCredentials }),
  };
}

/** The id wins over the MAC address. */
export const expectedKeyFrom = ({ expectedPowerShelfId, bmcMacAddress }: ExpectedPowerShelfRequest): ExpectedKey =>
  expectedPowerShelfId ? { id: expectedPowerShelfId.value } : { bmcMac: bmcMacAddress };

/** Without the password, always. */
export const forgeExpectedOf = (row: ExpectedPowerShelfRecord): MessageInitShape<typeof ExpectedPowerShelfSchema> => ({
  bmcMacAddress: row.bmc.mac,
  bmcUsername: row.bmcUsername,
  shelfSerialNumber: row.serial,
  bmcIpAddress: endpointText(row.bmc),
  metadata: metadataOf(row),
  expectedPowerShelfId: { value: row.id },
  bmcRetainCredentials: row.retainCredentials,
  ...(row.rackId !== null && { rackId: { id: row.rackId } }),
});

export const linkedExpectedOf = (
  row: ExpectedPowerShelfRecord,
): MessageInitShape<typeof LinkedExpectedPowerShelfSchema> => {
  const shelf = row.state.name === "linked" ? row.deviceId : null;
  return {
    shelfSerialNumber: row.serial,
    bmcMacAddress: row.bmc.mac,
    expectedPowerShelfId: { value: row.id },
    ...(shelf !== null && { powerShelfId: { id: shelf }, exploredEndpointAddress: endpointText(row.bmc) }),
    ...(row.rackId !== null && { rackId: { id: row.rackId } }),
  };
};
