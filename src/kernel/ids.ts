import { wrongField } from "./errors.ts";
import { isPrintable } from "./printable.ts";

const DEVICE_ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

export type PowerShelfId = string & { readonly __brand: "PowerShelfId" };
export type SwitchId = string & { readonly __brand: "SwitchId" };
export type MachineId = string & { readonly __brand: "MachineId" };

export const parsePowerShelfId = (text: string, field: string): PowerShelfId =>
  checkDeviceId(text, field, "power shelf") as PowerShelfId;
export const parseSwitchId = (text: string, field: string): SwitchId =>
  checkDeviceId(text, field, "switch") as SwitchId;
export const parseMachineId = (text: string, field: string): MachineId =>
  checkDeviceId(text, field, "machine") as MachineId;

/** Device ids are DNS-safe words: `[a-z0-9]`, then up to 62 of `[a-z0-9-]`. */
function checkDeviceId(text: string, field: string, kind: string): string {
  if (!DEVICE_ID.test(text)) {
    const shown = text.length > 80 ? `${text.slice(0, 80)}…` : text;
    const rule = `is not a ${kind} id (1 to 63 characters, a-z, 0-9 and -, not starting with -)`;
    throw wrongField(field, `${JSON.stringify(shown)} ${rule}`);
  }
  return text;
}

const LONGEST_RACK_ID = 64;

/** A rack is called whatever the site calls it. */
export function parseRackId(text: string, field: string): string {
  if (text === "") throw wrongField(field, "is empty; give the id of a rack");
  if (text.length > LONGEST_RACK_ID) throw wrongField(field, `at most ${LONGEST_RACK_ID} characters`);
  if (!isPrintable(text)) throw wrongField(field, "has a character that cannot be shown, such as a line break");
  return text;
}

/** With colons, dashes, dots or nothing between; a mixture is more likely a slip than an address. */
const MAC_NOTATIONS = [
  /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/,
  /^[0-9a-f]{2}(-[0-9a-f]{2}){5}$/,
  /^[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}$/,
  /^[0-9a-f]{12}$/,
];

/** A MAC address in any common notation, as `aa:bb:cc:dd:ee:ff`. */
export function parseMac(text: string, field: string): string {
  const lower = text.toLowerCase();
  if (!MAC_NOTATIONS.some((notation) => notation.test(lower))) {
    const shown = JSON.stringify(text.slice(0, 40));
    throw wrongField(field, `${shown} is not a MAC address (like 02:00:5e:10:00:01)`);
  }
  return lower.replace(/[:.-]/g, "").replace(/(..)(?=.)/g, "$1:");
}

/**
 * That of one network port, by which a machine is known. A group's address, or zeros, is what is written where none could be read: two machines
 * would seem to be the same.
 */
export function parsePortMac(text: string, field: string): string {
  const mac = parseMac(text, field);
  if (isOfPort(mac)) return mac;
  const whose = isGroup(mac) ? "the address of a group" : "nobody's address";
  throw wrongField(field, `${mac} is ${whose}, and not of one network port`);
}

const isGroup = (mac: string): boolean => (Number.parseInt(mac.slice(0, 2), 16) & 1) === 1;
const isOfPort = (mac: string): boolean => !isGroup(mac) && mac !== "00:00:00:00:00:00";

/** The same for what a device says: undefined for what is no such address. */
export function portMacOf(text: string): string | undefined {
  if (!MAC_NOTATIONS.some((notation) => notation.test(text.toLowerCase()))) return undefined;
  const mac = parseMac(text, "mac");
  return isOfPort(mac) ? mac : undefined;
}
