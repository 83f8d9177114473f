import type { MaasDisk, MaasInterface, MaasLink, MaasMachine } from "../../capabilities/fleet/maas-machine.ts";
import { listAt, numberAt, textAt, valueAt } from "../transport/device-json.ts";

/** What MAAS wrote for what it does not know. */
const UNKNOWN = "Unknown";
/** Server vendors write these where nobody entered a serial number. */
const NO_SERIAL = new Set(["unknown", "none", "not specified", "to be filled by o.e.m.", "0123456789"]);

/** Undefined for what is no machine. Members that are missing or new are no failure: versions of MAAS differ in them. */
export function machineOf(value: unknown): MaasMachine | undefined {
  const systemId = textAt(value, "system_id");
  const status = numberAt(value, "status");
  if (systemId === undefined || status === undefined) return undefined;
  const serial = textAt(value, "hardware_info", "system_serial");
  return {
    systemId,
    hostname: textAt(value, "hostname") ?? "",
    status,
    statusName: textAt(value, "status_name") ?? String(status),
    power: powerOf(textAt(value, "power_state")),
    powerType: textAt(value, "power_type") ?? null,
    owner: textAt(value, "owner") ?? null,
    distroSeries: textAt(value, "distro_series") ?? null,
    isLocked: valueAt(value, "locked") === true,
    errorDescription: textAt(value, "error_description") ?? null,
    serial: serial === undefined || serial === UNKNOWN || NO_SERIAL.has(serial.toLowerCase()) ? null : serial,
    systemUuid: textAt(value, "hardware_uuid")?.toLowerCase() ?? null,
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
function timeOf(text: string | undefined): Date | null {
  if (text === undefined) return null;
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/i.test(text);
  const time = new Date(hasZone ? text : `${text}Z`);
  return Number.isNaN(time.getTime()) ? null : time;
}
