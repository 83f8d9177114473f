import type { IpmiRequest } from "./client.ts";

/** Get System GUID (22.14). */
export const GET_SYSTEM_GUID: IpmiRequest = { netFn: 0x06, command: 0x37, what: "Get System GUID", answers: 16 };

/** Where each byte of a UUID, as it is written, stands in the answer. */
const ORDERS = {
  /** As in the SMBIOS tables, which is what most BMCs copy: the first three fields with the least significant byte first. */
  smbios: [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15],
  /** As the IPMI specification has it: the whole with the least significant byte first. */
  ipmi: [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
  /** As it is written. */
  rfc4122: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
} as const;

/**
 * The UUID by which the operating system knows the machine, too.
 *
 * BMCs send it in one of three byte orders and do not say in which. A UUID tells by itself: it has a version (1 to 5) and a
 * variant at fixed places. The first order in which both are there is taken. What is sent as SMBIOS or the IPMI specification have
 * it is never mistaken; of the few BMCs that send it as it is written, a third are read as SMBIOS, so that whoever compares UUIDs
 * takes both orders of the first three fields. Where no order fits, or nobody set one, there is no UUID.
 */
export function systemUuidOf(guid: readonly number[]): string | null {
  if (guid.length < 16 || guid.slice(0, 16).every((byte) => byte === guid[0])) return null;
  const written = Object.values(ORDERS).map((order) => order.map((at) => guid[at] ?? 0));
  const uuid = written.find(isUuid);
  if (uuid === undefined) return null;
  const hex = uuid.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function isUuid(bytes: readonly number[]): boolean {
  const version = (bytes[6] ?? 0) >> 4;
  const variant = (bytes[8] ?? 0) >> 6;
  return version >= 1 && version <= 5 && variant === 0b10;
}
