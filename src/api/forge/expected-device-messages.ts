import type { Metadata } from "../../../contract/forge/shared_pb.js";
import type { ExpectedDeviceRecord, ExpectedKey } from "../../services/expected-device/expected-devices.ts";
import type { ExpectedInput } from "../../services/expected-device/input.ts";
import { endpointText } from "../convert/bmc-endpoint.ts";
import { nonEmpty } from "../convert/fields.ts";
import { metadataFrom, metadataOf } from "../convert/metadata.ts";

/** What the contract's expected devices of every kind have. */
interface WireExpected {
  readonly bmcMacAddress: string;
  readonly bmcUsername: string;
  readonly bmcPassword: string;
  readonly bmcIpAddress: string;
  readonly metadata?: Metadata | undefined;
  readonly rackId?: { readonly id: string } | undefined;
  readonly bmcRetainCredentials?: boolean | undefined;
}

type WireId = { readonly value: string } | undefined;

/** `prefix` says where in the request it stands. */
export function expectedInputFrom(
  message: WireExpected,
  { id, serial }: { readonly id: WireId; readonly serial: string },
  prefix: string,
): ExpectedInput {
  const { metadata, bmcRetainCredentials } = message;
  return {
    ...(id !== undefined && { id: id.value }),
    bmcMac: message.bmcMacAddress,
    bmcUsername: message.bmcUsername,
    bmcPassword: nonEmpty(message.bmcPassword),
    serial,
    bmcEndpoint: nonEmpty(message.bmcIpAddress),
    rackId: message.rackId?.id,
    metadata: metadata ? metadataFrom(metadata, `${prefix}metadata`) : { name: "", description: "", labels: {} },
    ...(bmcRetainCredentials !== undefined && { retainCredentials: bmcRetainCredentials }),
  };
}

/** The id wins over the MAC address. */
export const expectedKeyFrom = (id: WireId, bmcMac: string): ExpectedKey => (id ? { id: id.value } : { bmcMac });

/** Without the password, always. */
export const expectedFieldsOf = (row: ExpectedDeviceRecord) => ({
  bmcMacAddress: row.bmc.mac,
  bmcUsername: row.bmcUsername,
  bmcIpAddress: endpointText(row.bmc),
  metadata: metadataOf(row),
  bmcRetainCredentials: row.retainCredentials,
  ...(row.rackId !== null && { rackId: { id: row.rackId } }),
});

/** An expected device and what became of it; `link` names the device. */
export const linkedFieldsOf = <L extends object>(row: ExpectedDeviceRecord, link: (id: string) => L) => ({
  bmcMacAddress: row.bmc.mac,
  ...(row.state.name === "linked" &&
    row.deviceId !== null && { ...link(row.deviceId), exploredEndpointAddress: endpointText(row.bmc) }),
  ...(row.rackId !== null && { rackId: { id: row.rackId } }),
});
