import type { BootProgress, ComputerSystem, FirmwareVersion } from "../../../capabilities/computer-system.ts";
import { findManager } from "../manager.ts";
import { linkAt, membersOf, type Resource, textAt } from "../resource.ts";
import type { Machines, OpenMachine } from "./machine.ts";
import { machinePowerOf } from "./power.ts";

/** More than any machine has; a BMC that lists more is not followed. */
const MOST_MEMBERS = 64;

export function createComputerSystem(machines: Machines): ComputerSystem {
  return {
    async identify(target, call) {
      const machine = await machines.open(target, call);
      const { system, certificateFingerprint } = machine;
      return {
        serial: textAt(system, "SerialNumber") ?? null,
        vendor: textAt(system, "Manufacturer") ?? null,
        model: textAt(system, "Model") ?? null,
        systemUuid: textAt(system, "UUID")?.toLowerCase() ?? null,
        macs: await readMacs(machine),
        ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
      };
    },

    async readBoot(target, call) {
      const machine = await machines.open(target, call);
      return {
        lastReset: textAt(machine.system, "LastResetTime") ?? null,
        progress: progressOf(machine),
      };
    },

    async readFirmware(target, call) {
      const machine = await machines.open(target, call);
      const bmc = textAt(await findManager(machine, machine.system), "FirmwareVersion");
      const bios = textAt(machine.system, "BiosVersion");
      const listed = await readFirmwareInventory(machine);
      const own: FirmwareVersion[] = [
        ...(bmc === undefined ? [] : [{ name: "BMC", version: bmc }]),
        ...(bios === undefined ? [] : [{ name: "BIOS", version: bios }]),
      ];
      return [...own, ...listed.filter(({ name }) => !own.some((each) => each.name === name))];
    },
  };
}

const PROGRESS: readonly (readonly [RegExp, BootProgress])[] = [
  [/^osrunning$/, "running"],
  [/^osbootstarted$/, "booting"],
  [/initializ|^setupentered$/, "starting"],
];

/** "OSRunning" stays in the register of many BMCs after the power is gone, so power comes first. */
function progressOf(machine: OpenMachine): BootProgress {
  const power = machinePowerOf(machine);
  if (power === "off") return "off";
  if (power === "powering_on") return "starting";
  const said = textAt(machine.system, "BootProgress", "LastState")?.toLowerCase() ?? "";
  return PROGRESS.find(([words]) => words.test(said))?.[1] ?? "unknown";
}

async function readMacs(machine: OpenMachine): Promise<readonly string[]> {
  const ports = await readMembers(machine, linkAt(machine.system, "EthernetInterfaces"));
  // Ports between the host and its BMC have the same address on every machine of a maker.
  const real = ports.filter((port) => textAt(port, "EthernetInterfaceType")?.toLowerCase() !== "virtual");
  const macs = real.flatMap((port) => textAt(port, "PermanentMACAddress") ?? textAt(port, "MACAddress") ?? []);
  return [...new Set(macs.map((mac) => mac.toLowerCase()))];
}

async function readFirmwareInventory(machine: OpenMachine): Promise<readonly FirmwareVersion[]> {
  const { client, target, call, places } = machine;
  if (places.updateService === undefined) return [];
  const service = await client.find(target, places.updateService, call);
  const items = await readMembers(machine, linkAt(service, "FirmwareInventory"));
  return items.flatMap((item) => {
    const name = textAt(item, "Name") ?? textAt(item, "Id");
    const version = textAt(item, "Version");
    return name === undefined || version === undefined ? [] : [{ name, version }];
  });
}

/** One after the other: nobody is in a hurry for these, and others wait for the same BMC. */
async function readMembers(
  { client, target, call }: OpenMachine,
  collection: string | undefined,
): Promise<readonly Resource[]> {
  if (collection === undefined) return [];
  const found: Resource[] = [];
  for (const { path, resource } of membersOf(await client.find(target, collection, call)).slice(0, MOST_MEMBERS)) {
    const member = resource ?? (await client.find(target, path, call));
    if (member !== undefined) found.push(member);
  }
  return found;
}
