import { isSameUuid, swappedUuid } from "../../capabilities/system-uuid.ts";

/** What firmware says of the machine that it boots; empty: nothing. */
export interface BootIdentity {
  readonly serial: string;
  readonly systemUuid: string;
}

/** What the owner and the BMC of a machine say that it is. */
export interface KnownIdentity {
  /** Of both of them. */
  readonly serials: readonly (string | null)[];
  readonly systemUuid: string | null;
}

/**
 * Whether the hardware that boots is another than the machine that its MAC address belongs to. A card that was moved brings its address
 * along, and a serial number is written in several ways, so that one match is enough; where nothing can be compared, nothing contradicts.
 */
export function isContradicted(told: BootIdentity, known: KnownIdentity): boolean {
  const serial = serialOf(told.serial);
  const serials = known.serials.flatMap((each) => serialOf(each) ?? []);
  const isSerialTold = serial !== undefined && serials.length > 0;
  const uuid = uuidOf(told.systemUuid);
  const knownUuid = uuidOf(known.systemUuid);
  const isUuidTold = uuid !== undefined && knownUuid !== undefined;
  if (!isSerialTold && !isUuidTold) return false;
  if (isSerialTold && serials.includes(serial)) return false;
  return !(isUuidTold && isSameUuid(uuid, knownUuid));
}

/** For people: `serial S1, UUID 4c4c4544-…`, without what says nothing. */
export function describeIdentity(serial: string | null, systemUuid: string | null): string {
  const parts = [
    ...(serialOf(serial) === undefined ? [] : [`serial ${serial?.trim()}`]),
    ...(uuidOf(systemUuid) === undefined ? [] : [`UUID ${systemUuid?.trim().toLowerCase()}`]),
  ];
  return parts.join(", ") || "no serial and no UUID";
}

/** What makers leave where a serial number belongs. Many machines have it alike. */
const NO_SERIAL =
  /^(0+|1?234567890?|0123456789(abcdef)?|x+|\.+|-+|n\/?a|none|null|unknown|empty|invalid|default( string)?|not (specified|available|applicable|present|set)|to be filled( by o\.?e\.?m\.?)?|(system|chassis|base board)? ?serial ?(number)?|o\.?e\.?m\.?|undefined)$/;

function serialOf(text: string | null): string | undefined {
  const serial = text?.trim().toLowerCase() ?? "";
  return serial === "" || NO_SERIAL.test(serial) ? undefined : serial;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** What boards are sold with, in either byte order. */
const NO_UUIDS: ReadonlySet<string> = new Set(
  [
    "03000200-0400-0500-0006-000700080009",
    "12345678-1234-5678-90ab-cddeefaabbcc",
    "fefefefe-fefe-fefe-fefe-fefefefefefe",
    "4c4c4544-0000-2010-8020-80c04f202020",
  ].flatMap((uuid) => [uuid, swappedUuid(uuid)]),
);

function uuidOf(text: string | null): string | undefined {
  const uuid = text?.trim().toLowerCase() ?? "";
  const isOneDigit = new Set(uuid.replaceAll("-", "")).size === 1;
  return UUID.test(uuid) && !isOneDigit && !NO_UUIDS.has(uuid) ? uuid : undefined;
}
