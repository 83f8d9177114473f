import { disksOf, SUBNETS } from "./hardware.ts";
import type { InterfaceRecord, LinkRecord, MachineRecord } from "./machine-record.ts";
import type { Region } from "./region.ts";
import { nameOf } from "./statuses.ts";

const ZONE = { id: 1, name: "default", description: "", resource_uri: "/MAAS/api/2.0/zones/default/" };
const POOL = { id: 0, name: "default", description: "Default pool", resource_uri: "/MAAS/api/2.0/resourcepool/0/" };
const DOMAIN = { id: 0, name: "maas", authoritative: true, ttl: null, resource_record_count: 0, is_default: true };

/** MAAS writes times in UTC and leaves the zone out. */
export const timeOf = (region: Region, simulated: number): string =>
  new Date(region.clock.realTimeOf(simulated)).toISOString().replace(/Z$/, "");

export function subnetJson(id: number) {
  const subnet = SUBNETS.find((each) => each.id === id) ?? SUBNETS[0];
  const { vid, fabric, ...rest } = subnet;
  return {
    ...rest,
    space: "undefined",
    dns_servers: [],
    managed: true,
    vlan: vlanJson(vid, fabric),
    resource_uri: `/MAAS/api/2.0/subnets/${subnet.id}/`,
  };
}

const vlanJson = (vid: number, fabric: string) => ({
  id: 5_001 + vid,
  vid,
  name: vid === 0 ? "untagged" : `vlan-${vid}`,
  mtu: 1_500,
  dhcp_on: vid === 0,
  fabric,
  fabric_id: vid === 0 ? 0 : 1,
  primary_rack: vid === 0 ? "4y3h7n" : null,
  secondary_rack: null,
  space: "undefined",
  external_dhcp: null,
  relay_vlan: null,
  resource_uri: `/MAAS/api/2.0/vlans/${5_001 + vid}/`,
});

const linkJson = ({ id, mode, subnet, ipAddress }: LinkRecord) => ({
  id,
  mode,
  ...(subnet !== null && { subnet: subnetJson(subnet) }),
  ...(ipAddress !== null && { ip_address: ipAddress }),
});

export function interfaceJson(systemId: string, port: InterfaceRecord) {
  const { id, name, mac, mtu, tags, links } = port;
  const linked = links.find(({ subnet }) => subnet !== null)?.subnet;
  return {
    ...{ id, name, mac_address: mac, tags, system_id: systemId, type: "physical", enabled: true, effective_mtu: mtu },
    vlan: linked == null ? vlanJson(0, "fabric-0") : subnetJson(linked).vlan,
    links: links.map(linkJson),
    params: mtu === 1_500 ? "" : { mtu },
    ...{
      parents: [],
      children: [],
      discovered: null,
      link_connected: true,
      link_speed: 25_000,
      interface_speed: 25_000,
    },
    ...{ vendor: "Mellanox Technologies", product: "ConnectX-7", firmware_version: "28.39.1002" },
    ...{ numa_node: 0, sriov_max_vf: 0 },
    resource_uri: `/MAAS/api/2.0/nodes/${systemId}/interfaces/${id}/`,
  };
}

export function blockDevicesJson(region: Region, machine: MachineRecord) {
  const host = region.hostOf(machine);
  if (host === undefined || machine.storage === null) return [];
  const { bootDisk, hasBossDisk } = machine.storage;
  return disksOf(host, hasBossDisk).map(({ id, name, model, serial, size }) => ({
    ...{ id, name, model, serial, size, type: "physical", path: `/dev/disk/by-dname/${name}`, block_size: 512 },
    id_path: `/dev/disk/by-id/${serial}`,
    uuid: null,
    available_size: id === bootDisk ? 0 : size,
    used_size: id === bootDisk ? size : 0,
    used_for: id === bootDisk ? "GPT partitioned with 2 partitions" : "Unused",
    ...{ tags: ["ssd"], partitions: [], partition_table_type: id === bootDisk ? "GPT" : null, filesystem: null },
    ...{ firmware_version: "1.0", numa_node: 0, system_id: machine.systemId, storage_pool: null },
    resource_uri: `/MAAS/api/2.0/nodes/${machine.systemId}/blockdevices/${id}/`,
  }));
}

function syncJson(region: Region, { hardwareSync, deployedAt, ...machine }: MachineRecord) {
  if (hardwareSync === null || deployedAt === null)
    return {
      enable_hw_sync: hardwareSync !== null,
      sync_interval: hardwareSync?.intervalSeconds ?? null,
      last_sync: null,
      next_sync: null,
    };
  const every = hardwareSync.intervalSeconds * 1_000;
  const silent = region.faults.strike("hardware_sync_silent", { device: machine.hostId ?? machine.systemId });
  const rounds = Math.floor((region.clock.now() - deployedAt) / every);
  const last = deployedAt + rounds * every;
  return {
    enable_hw_sync: true,
    sync_interval: hardwareSync.intervalSeconds,
    last_sync: silent === undefined ? timeOf(region, last) : null,
    next_sync: silent === undefined ? timeOf(region, last + every) : null,
  };
}

/** A machine as `GET machines/{system_id}/` shows it. */
export function machineJson(region: Region, machine: MachineRecord) {
  const { systemId, hostname, interfaces } = machine;
  const host = region.hostOf(machine);
  const disks = blockDevicesJson(region, machine);
  const ports = interfaces.map((port) => interfaceJson(systemId, port));
  const last = machine.events.at(-1);
  return {
    system_id: systemId,
    hostname,
    fqdn: `${hostname}.maas`,
    domain: DOMAIN,
    description: machine.description,
    status: machine.status,
    status_name: nameOf(machine.status),
    status_action: "",
    status_message: last === undefined ? null : `${last.type} - ${last.description}`,
    power_state: machine.power,
    power_type: machine.powerType,
    owner: machine.owner,
    owner_data: machine.ownerData,
    workload_annotations: machine.ownerData,
    osystem: machine.distroSeries === "" ? "" : "ubuntu",
    distro_series: machine.distroSeries,
    hwe_kernel: machine.distroSeries === "" ? null : `ga-${machine.distroSeries}`,
    min_hwe_kernel: null,
    architecture: machine.architecture,
    locked: machine.isLocked,
    netboot: machine.deployedAt === null,
    ephemeral_deploy: false,
    error_description: machine.errorDescription,
    cpu_count: machine.storage === null ? 0 : 128,
    memory: machine.storage === null ? 0 : 2_097_152,
    storage: disks.reduce((sum, { size }) => sum + size, 0) / 1e6,
    ip_addresses: interfaces.flatMap(({ links }) => links.flatMap(({ ipAddress }) => ipAddress ?? [])),
    boot_interface: ports[0] ?? null,
    interface_set: ports,
    boot_disk: disks.find(({ id }) => id === machine.storage?.bootDisk) ?? null,
    blockdevice_set: disks,
    physicalblockdevice_set: disks,
    virtualblockdevice_set: [],
    zone: ZONE,
    pool: POOL,
    tag_names: [],
    hardware_uuid: machine.storage === null ? null : (host?.systemUuid ?? null),
    hardware_info: hardwareInfo(machine.storage === null ? undefined : host?.serial),
    commissioning_status: machine.storage === null ? -1 : 2,
    commissioning_status_name: machine.storage === null ? "Unknown" : "Passed",
    testing_status: -1,
    testing_status_name: "Unknown",
    current_commissioning_result_id: null,
    current_testing_result_id: null,
    current_installation_result_id: null,
    ...syncJson(region, machine),
    default_gateways: { ipv4: { gateway_ip: null, link_id: null }, ipv6: { gateway_ip: null, link_id: null } },
    node_type: 0,
    node_type_name: "Machine",
    resource_uri: `/MAAS/api/2.0/machines/${systemId}/`,
  };
}

const hardwareInfo = (serial: string | undefined) => ({
  system_vendor: serial === undefined ? "Unknown" : "Dell Inc.",
  system_product: serial === undefined ? "Unknown" : "PowerEdge XE9680",
  system_serial: serial ?? "Unknown",
  system_version: "Unknown",
  cpu_model: serial === undefined ? "Unknown" : "Intel(R) Xeon(R) Platinum 8480C",
  mainboard_vendor: serial === undefined ? "Unknown" : "Dell Inc.",
  mainboard_product: "Unknown",
});

export const eventJson = (region: Region, machine: MachineRecord) =>
  machine.events.map(({ id, at, level, type, description }) => ({
    ...{ id, level, type, description, username: "", node: machine.systemId, hostname: machine.hostname },
    created: timeOf(region, at),
  }));
