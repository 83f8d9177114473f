import type { BootProgress, ComputerSystem } from "../../capabilities/computer-system.ts";
import type { Vitals } from "../../capabilities/vitals.ts";
import { listAt, textAt } from "../transport/device-json.ts";
import type { IronicNode, Nodes } from "./node.ts";
import { type IronicPower, powerOf } from "./power.ts";

/** What operators and Ironic's inspectors put into a node's properties. */
const SERIAL = ["serial_number", "serial", "system_serial_number"] as const;
const VENDOR = ["vendor", "manufacturer"] as const;
const MODEL = ["model", "product_name"] as const;
const SYSTEM_UUID = ["system_uuid", "smbios_uuid"] as const;
const FIRMWARE = [
  ["BMC", "bmc_version"],
  ["BIOS", "bios_version"],
] as const;

const propertyOf = (node: IronicNode, names: readonly string[]): string | null =>
  names.flatMap((name) => textAt(node.properties, name) ?? [])[0] ?? null;

/** What Ironic knows of a machine. It looks at it from outside alone: whether a system runs on it, it cannot tell. */
export function createComputerSystem(nodes: Nodes, power: IronicPower): ComputerSystem & Vitals {
  return {
    async identify(target, call) {
      const node = await nodes.read(target, call);
      const { resource } = await nodes.client.getBeside(target, `/v1/ports?node=${node.uuid}`, call);
      const macs = listAt(resource, "ports").flatMap((port) => textAt(port, "address")?.toLowerCase() ?? []);
      return {
        serial: propertyOf(node, SERIAL),
        vendor: propertyOf(node, VENDOR),
        model: propertyOf(node, MODEL),
        systemUuid: propertyOf(node, SYSTEM_UUID)?.toLowerCase() ?? null,
        macs: [...new Set(macs)],
        ...(node.certificateFingerprint === undefined ? {} : { certificateFingerprint: node.certificateFingerprint }),
      };
    },
    /** Ironic knows nothing of sensors; what it does know is whether it has lost the machine. */
    async readVitals(target, call) {
      const node = await nodes.read(target, call);
      const ailments = node.fault === undefined ? [] : [{ name: node.fault, health: "critical" as const }];
      return {
        serial: propertyOf(node, SERIAL),
        systemUuid: propertyOf(node, SYSTEM_UUID)?.toLowerCase() ?? null,
        power: powerOf(node),
        health: node.fault === undefined ? "unknown" : "critical",
        ailments,
      };
    },
    async readBoot(target, call) {
      const node = power.check(target, await nodes.read(target, call));
      return { lastReset: node.lastPowerChange ?? null, progress: progressOf(node) };
    },
    async readFirmware(target, call) {
      const node = await nodes.read(target, call);
      return FIRMWARE.flatMap(([name, property]) => {
        const version = textAt(node.properties, property);
        return version === undefined ? [] : [{ name, version }];
      });
    },
  };
}

function progressOf(node: IronicNode): BootProgress {
  const power = powerOf(node);
  if (power === "off" || power === "powering_off") return "off";
  return power === "powering_on" ? "starting" : "unknown";
}
