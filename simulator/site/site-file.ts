import type { MachineSpec } from "../devices/machine-spec.ts";
import type { PowerShelfSpec } from "../devices/power-shelf.ts";
import type { SwitchSpec } from "../devices/switch.ts";
import { SYSTEM } from "../redfish/system-resources.ts";
import type { Site } from "../site.ts";
import { profileNameOf, profileOf, type RackSpec } from "./racks.ts";

/** Where all devices answer, and how to sign in to systems. */
export interface SiteAccess {
  readonly redfishPort: number;
  readonly sshPort: number;
  readonly ssh: { readonly username: string; readonly privateKey: string };
  /** The host that stands before machines which are behind it. */
  readonly jump: { readonly endpoint: string; readonly username: string; readonly hostKey: string };
}

/** All that stands in the site, as whoever is to manage it writes that down: what `millwright site apply` takes. */
export const siteFileOf = (site: Site, access: SiteAccess) => ({
  rack_profiles: profilesOf(site),
  expected_racks: site.racks.map(expectedRack),
  expected_power_shelves: site.shelves.map((shelf) => expectedShelf(shelf, access.redfishPort)),
  expected_switches: site.switches.map((each) => expectedSwitch(each, access.redfishPort)),
  machines: site.machines.filter(({ isUnknown }) => !isUnknown).map((machine) => machineEntry(machine, access)),
});

export const profilesOf = ({ racks }: Pick<Site, "racks">) => [
  ...new Map(racks.map((rack) => [profileNameOf(rack), profileOf(rack)])).values(),
];

export const expectedRack = (rack: RackSpec) => ({
  rack_id: rack.id,
  rack_profile_id: profileNameOf(rack),
  metadata: { name: rack.id },
});

/** A row of the expected inventory of power shelves. */
export const expectedShelf = (spec: PowerShelfSpec, port: number) => ({
  bmc_mac_address: spec.mac,
  bmc_username: spec.username,
  bmc_password: spec.password,
  shelf_serial_number: spec.serial,
  bmc_ip_address: `${spec.address}:${port}`,
  rack_id: spec.rack,
  metadata: { name: spec.id },
});

export const expectedSwitch = (spec: SwitchSpec, port: number) => ({
  bmc_mac_address: spec.mac,
  bmc_username: spec.username,
  bmc_password: spec.password,
  switch_serial_number: spec.serial,
  bmc_ip_address: `${spec.address}:${port}`,
  rack_id: spec.rack,
  nvos_username: spec.nvos.username,
  nvos_password: spec.nvos.password,
  nvos_mac_addresses: [spec.nvos.mac],
  metadata: { name: spec.id },
});

const machineEntry = (spec: MachineSpec, { redfishPort, sshPort, ssh, jump }: SiteAccess) => ({
  machine_id: spec.id,
  spec: {
    serial: spec.serial,
    mac_addresses: spec.macs,
    rack: spec.rack,
    slot: String(spec.slot),
    bmc_endpoint: `${spec.address}:${redfishPort}${systemPath(spec)}`,
    ssh_endpoint: `${spec.sshAddress}:${sshPort}`,
    ...(spec.initialCluster !== null && { target_cluster_ref: spec.initialCluster }),
    ...(spec.behindBastion && {
      jump_hosts: [{ endpoint: jump.endpoint, host_key: jump.hostKey, username: jump.username }],
    }),
  },
  bmc_username: spec.username,
  bmc_password: spec.password,
  ssh_username: ssh.username,
  ssh_private_key: ssh.privateKey,
});

/** Where several systems are behind the controller, the machine's own is named. */
const systemPath = ({ traits }: MachineSpec): string => (traits.includes("several_systems") ? SYSTEM : "");
