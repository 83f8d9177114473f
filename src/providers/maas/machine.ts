import type { MaasDisk, MaasInterface, MaasLink, MaasMachine } from "../../capabilities/fleet/maas-machine.ts";
import { listAt, numberAt, textAt, valueAt } from "../transport/device-json.ts";

/** What MAAS wrote for what it does not know. */
const UNKNOWN = "Unknown";
/** Server vendors write these where nobody entered a serial number. */
const NO_SERIAL = new Set(["unknown", "none", "not specified", "to be filled by o.e.m.", "0123456789"]);

/** No number of MAAS: what it tells is none of its numbers either. */
const UNKNOWN_STATUS = -1;
const isStatus = (number: number): boolean => Number.isInteger(number) && number >= 0 && number < 2 ** 31;

/** MAAS passes on what firmware wrote: no character of one machine may keep what is known of all from being stored. */
export const wordAt = (value: unknown, ...path: readonly string[]): string | undefined =>
  textAt(value, ...path)
    ?.toWellFormed()
    .replaceAll("\0", "\u{fffd}");

/** Undefined for what is no machine. Members that are missing or new are no failure: versions of MAAS differ in them. */
export function machineOf(value: unknown): MaasMachine | undefined {
  const systemId = wordAt(value, "system_id");
  const told = numberAt(value, "status");
  if (systemId === undefined || told === undefined) return undefined;
  const status = isStatus(told) ? told : UNKNOWN_STATUS;
  const serial = wordAt(value, "hardware_info", "system_serial");
  return {
    systemId,
    hostname: wordAt(value, "hostname") ?? "",
    status,
    statusName: wordAt(value, "status_name") ?? String(told),
    power: powerOf(wordAt(value, "power_state")),
    powerType: wordAt(value, "power_type") ?? null,
    owner: wordAt(value, "owner") ?? null,
    distroSeries: wordAt(value, "distro_series") ?? null,
    isLocked: valueAt(value, "locked") === true,
    errorDescription: wordAt(value, "error_description") ?? null,
    serial: serial === undefined || serial === UNKNOWN || NO_SERIAL.has(serial.toLowerCase()) ? null : serial,
    systemUuid: wordAt(value, "hardware_uuid")?.toLowerCase() ?? null,
    ipAddresses: listAt(value, "ip_addresses").filter((each) => typeof each === "string"),
    interfaces: listAt(value, "interface_set").flatMap(interfaceOf),
    bootInterfaceId: numberAt(value, "boot_interface", "id") ?? null,
    disks: listAt(value, "physicalblockdevice_set").flatMap(diskOf),
    bootDiskId: numberAt(value, "boot_disk", "id") ?? null,
    hardwareSync: hardwareSyncOf(value),
  };
}

const powerOf = (text: string | undefined): MaasMachine["power"] =>
  text === "on" || text === "off" ? text : "unknown";

function interfaceOf(value: unknown): MaasInterface[] {
  const id = numberAt(value, "id");
  if (id === undefined) return [];
  return [
    {
      id,
      name: textAt(value, "name") ?? String(id),
      mac: textAt(value, "mac_address")?.toLowerCase() ?? null,
      links: listAt(value, "links").flatMap(linkOf),
    },
  ];
}

function linkOf(value: unknown): MaasLink[] {
  const id = numberAt(value, "id");
  if (id === undefined) return [];
  return [
    {
      id,
      mode: textAt(value, "mode") ?? "",
      subnetId: numberAt(value, "subnet", "id") ?? null,
      ipAddress: textAt(value, "ip_address") ?? null,
    },
  ];
}

function diskOf(value: unknown): MaasDisk[] {
  const id = numberAt(value, "id");
  if (id === undefined) return [];
  return [
    {
      id,
      name: textAt(value, "name") ?? String(id),
      model: textAt(value, "model") ?? null,
      serial: textAt(value, "serial") ?? null,
      bytes: numberAt(value, "size") ?? 0,
    },
  ];
}

function hardwareSyncOf(value: unknown): MaasMachine["hardwareSync"] {
  if (valueAt(value, "enable_hw_sync") !== true) return null;
  return {
    intervalSeconds: numberAt(value, "sync_interval") ?? null,
    lastSyncAt: timeOf(textAt(value, "last_sync")),
  };
}

/** MAAS writes UTC and mostly leaves the zone out. */
export function timeOf(text: string | undefined): Date | null {
  if (text === undefined) return null;
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/i.test(text);
  const time = new Date(hasZone ? text : `${text}Z`);
  return Number.isNaN(time.getTime()) ? null : time;
}
