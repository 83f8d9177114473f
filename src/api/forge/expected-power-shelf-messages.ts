import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ExpectedPowerShelf,
  ExpectedPowerShelfRequest,
  ExpectedPowerShelfSchema,
  LinkedExpectedPowerShelfSchema,
} from "../../../contract/forge/forge_pb.js";
import type { ExpectedPowerShelfRecord } from "../../services/expected-power-shelf/expected-power-shelves.ts";
import { expectedFieldsOf, expectedInputFrom, expectedKeyFrom, linkedFieldsOf } from "./expected-device-messages.ts";

export const expectedShelfFrom = (message: ExpectedPowerShelf, prefix = "") =>
  expectedInputFrom(message, { id: message.expectedPowerShelfId, serial: message.shelfSerialNumber }, prefix);

export const expectedShelfKeyFrom = ({ expectedPowerShelfId, bmcMacAddress }: ExpectedPowerShelfRequest) =>
  expectedKeyFrom(expectedPowerShelfId, bmcMacAddress);

export const forgeExpectedShelfOf = (
  row: ExpectedPowerShelfRecord,
): MessageInitShape<typeof ExpectedPowerShelfSchema> => ({
  ...expectedFieldsOf(row),
  shelfSerialNumber: row.serial,
  expectedPowerShelfId: { value: row.id },
});

export const linkedExpectedShelfOf = (
  row: ExpectedPowerShelfRecord,
): MessageInitShape<typeof LinkedExpectedPowerShelfSchema> => ({
  ...linkedFieldsOf(row, (id) => ({ powerShelfId: { id } })),
  shelfSerialNumber: row.serial,
  expectedPowerShelfId: { value: row.id },
});
