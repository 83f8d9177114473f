import { z } from "zod";
import type { MachineSpec } from "../devices/machine-spec.ts";
import { MIXED, type ProfileName, type Trait, traitsOf } from "../devices/profile.ts";
import type { SeededValues } from "../seeded-values.ts";
import {
  accountFields,
  addressOf,
  loopbackAddress,
  mac,
  macOf,
  name,
  type Place,
  placeDigits,
  profile,
  seededUuid,
  word,
} from "./fields.ts";

export const MACHINES_PER_RACK = 18;
const MOST_MACHINES = 64;
/** Locally administered, and apart from those of management controllers. */
const PORT_MAC_PREFIXES = ["06", "0a"] as const;

const machineSchema = z.strictObject({
  id: name.optional(),
  address: loopbackAddress.optional(),
  ssh_address: loopbackAddress.optional(),
  mac: mac.optional(),
  mac_addresses: z.array(mac).min(1).max(8).optional(),
  serial: word.optional(),
  system_uuid: z.uuid().optional(),
  vendor: word.optional(),
  model: word.optional(),
  firmware: word.optional(),
  bios: word.optional(),
  ...accountFields,
  power: z.enum(["on", "off"]).optional(),
  /** The image that is on its disk already, or null for an empty disk. */
  image: word.nullable().optional(),
  /** The cluster that it is a node of already, or null for none. */
  cluster: name.nullable().optional(),
  /** Whether SSH to it is only let through from the bastion. */
  behind_bastion: z.boolean().optional(),
  profile: profile.optional(),
  /** In no inventory: it shows up when it boots. */
  unknown: z.boolean().optional(),
});
type MachineEntry = z.infer<typeof machineSchema>;

/** What a rack of the site file may say about its machines. */
export const rackMachineFields = {
  machines: z.union([z.int().min(0).max(MOST_MACHINES), z.array(machineSchema).max(MOST_MACHINES)]).optional(),
  /** Whether SSH to its machines is only let through from the bastion. */
  behind_bastion: z.boolean().optional(),
  /** The cluster that its machines are nodes of already, unless one says otherwise. */
  cluster: name.nullable().optional(),
  /** Of the management controllers of its machines, unless one says otherwise; `mixed` deals out several. */
  profile: z.union([profile, z.literal("mixed")]).optional(),
};
type RackMachines = z.infer<z.ZodObject<typeof rackMachineFields>>;

/** The last byte tells them apart. */
const unknownMac = (number: number): string => `02:00:5e:10:00:${number.toString(16).padStart(2, "0")}`;

/** As they are delivered: with an empty disk, so that they boot from the network. */
export const unknownMachines = (count: number): readonly MachineEntry[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `unknown-${index + 1}`,
    mac_addresses: [unknownMac(index + 1)],
    image: null,
    unknown: true,
  }));

export function machinesOf(
  rack: RackMachines,
  { rackId, rackNumber }: Omit<Place, "slot">,
  options: { seeded: SeededValues; defaultImage: string },
): MachineSpec[] {
  const machines = rack.machines ?? MACHINES_PER_RACK;
  const entries: readonly MachineEntry[] =
    typeof machines === "number" ? Array.from({ length: machines }, () => ({})) : machines;
  return entries.map((entry, index) =>
    machineOf(
      {
        ...entry,
        behind_bastion: entry.behind_bastion ?? rack.behind_bastion,
        cluster: entry.cluster === undefined ? rack.cluster : entry.cluster,
        profile: entry.profile ?? profileAt(rack.profile, index),
      },
      { rackId, rackNumber, slot: index + 1 },
      options,
    ),
  );
}

function profileAt(profile: RackMachines["profile"], index: number): ProfileName | readonly Trait[] | undefined {
  return profile === "mixed" ? MIXED[index % MIXED.length] : profile;
}

function machineOf(
  entry: MachineEntry,
  place: Place,
  { seeded, defaultImage }: { seeded: SeededValues; defaultImage: string },
): MachineSpec {
  const id = entry.id ?? `m-${place.rackId.replaceAll("-", "")}-${String(place.slot).padStart(2, "0")}`;
  const macs = PORT_MAC_PREFIXES.map((prefix, port) =>
    macOf({ prefix, seedName: `${id}/port-${port}`, place, seeded }),
  );
  return {
    kind: "machine",
    id,
    rack: place.rackId,
    slot: place.slot,
    address: entry.address ?? addressOf("machineBmc", place),
    sshAddress: entry.ssh_address ?? addressOf("machineSsh", place),
    mac: entry.mac ?? macOf({ prefix: "0e", seedName: `${id}/mac`, place, seeded }),
    uuid: seededUuid(seeded, `${id}/controller`),
    macs: entry.mac_addresses ?? macs,
    serial: entry.serial ?? `MC${seeded.label(`${id}/serial`, 6)}${placeDigits(place)}`,
    systemUuid: entry.system_uuid ?? seededUuid(seeded, `${id}/uuid`),
    vendor: entry.vendor ?? "Generic",
    model: entry.model ?? "GB-2U-96C",
    components: [
      {
        id: "bmc",
        name: "Management controller firmware",
        version: entry.firmware ?? "1.09.2",
        takesEffect: "manager_restart",
        of: "/redfish/v1/Managers/bmc",
      },
      {
        id: "bios",
        name: "System firmware",
        version: entry.bios ?? "U46-2.20",
        takesEffect: "reset",
        of: "/redfish/v1/Systems/1",
      },
    ],
    username: entry.username ?? "root",
    password: entry.password ?? seeded.label(`${id}/password`, 16),
    sshPassword: seeded.label(`${id}/ssh-password`, 16),
    lockout: { failures: entry.lockout_failures ?? 10, seconds: entry.lockout_seconds ?? 60 },
    initialPower: entry.power ?? "on",
    initialImage: entry.image === undefined ? defaultImage : entry.image,
    initialCluster: entry.cluster ?? null,
    behindBastion: entry.behind_bastion ?? false,
    isUnknown: entry.unknown ?? false,
    traits: traitsOf(entry.profile ?? "ideal"),
  };
}
