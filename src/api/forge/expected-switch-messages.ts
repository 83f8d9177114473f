import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ExpectedSwitch,
  ExpectedSwitchRequest,
  ExpectedSwitchSchema,
  LinkedExpectedSwitchSchema,
} from "../../../contract/forge/expected_pb.js";
import type { ExpectedSwitchInput, ExpectedSwitchRecord } from "../../services/expected-switch/expected-switches.ts";
import { nonEmpty } from "../convert/fields.ts";
import { expectedFieldsOf, expectedInputFrom, expectedKeyFrom, linkedFieldsOf } from "./expected-device-messages.ts";

/** `prefix` says where in the request it stands. */
export const expectedSwitchFrom = (message: ExpectedSwitch, prefix = ""): ExpectedSwitchInput => ({
  ...expectedInputFrom(message, { id: message.expectedSwitchId, serial: message.switchSerialNumber }, prefix),
  nvosMacs: message.nvosMacAddresses,
  nvosUsername: nonEmpty(message.nvosUsername ?? ""),
  nvosPassword: nonEmpty(message.nvosPassword ?? ""),
});

export const expectedSwitchKeyFrom = ({ expectedSwitchId, bmcMacAddress }: ExpectedSwitchRequest) =>
  expectedKeyFrom(expectedSwitchId, bmcMacAddress);

/** Without passwords, always. */
export const forgeExpectedSwitchOf = (row: ExpectedSwitchRecord): MessageInitShape<typeof ExpectedSwitchSchema> => ({
  ...expectedFieldsOf(row),
  switchSerialNumber: row.serial,
  expectedSwitchId: { value: row.id },
  nvosMacAddresses: [...row.nvosMacs],
  ...(row.nvosUsername !== null && { nvosUsername: row.nvosUsername }),
});

export const linkedExpectedSwitchOf = (
  row: ExpectedSwitchRecord,
): MessageInitShape<typeof LinkedExpectedSwitchSchema> => ({
  ...linkedFieldsOf(row, (id) => ({ switchId: { id } })),
  switchSerialNumber: row.serial,
  expectedSwitchId: { value: row.id },
});
