import type { HostSpec } from "./host.ts";
import type { InterfaceRecord, LinkRecord } from "./machine-record.ts";

export interface Disk {
  readonly id: number;
  readonly name: string;
  readonly model: string;
  readonly serial: string;
  readonly size: number;
}

/** The model that a Dell BOSS card shows for its mirrored boot disk. */
const BOSS_MODEL = "DELLBOSS VD";
const DATA_DISKS = 2;

/** What commissioning finds. The data disks come first: whoever takes the first one installs onto customers' data. */
export function disksOf(host: HostSpec, hasBossDisk: boolean): readonly Disk[] {
  const data = Array.from({ length: DATA_DISKS }, (_, index) => ({
    id: index + 1,
    name: `nvme${index}n1`,
    model: "GPU DATA 7.68TB",
    serial: `${host.serial}-D${index + 1}`,
    size: 7_681_501_126_656,
  }));
  const boot = { id: 9, name: "sda", model: BOSS_MODEL, serial: `${host.serial}-BOSS`, size: 480_036_847_616 };
  return hasBossDisk ? [...data, boot] : data;
}

export const SUBNETS = [
  { id: 1, name: "10.40.0.0/24", cidr: "10.40.0.0/24", gateway_ip: "10.40.0.1", vid: 0, fabric: "fabric-0" },
  { id: 2, name: "10.41.0.0/24", cidr: "10.41.0.0/24", gateway_ip: null, vid: 41, fabric: "fabric-1" },
] as const;

const BOOT_SUBNET = SUBNETS[0];

/** Before commissioning MAAS knows the port that booted, and no more. */
export const discoveredPort = (mac: string): InterfaceRecord => ({
  ...{ id: 1, name: "eth0", mac, mtu: 1_500, tags: [] },
  links: [{ id: 1, mode: "link_up", subnet: null, ipAddress: null }],
});

export function commissionedPorts(host: HostSpec): readonly InterfaceRecord[] {
  const subnet = host.bootLink === "link_up" ? null : BOOT_SUBNET.id;
  const boot: LinkRecord = { id: 1, mode: host.bootLink, subnet, ipAddress: null };
  return [
    { id: 1, name: "eno1", mac: host.mac, mtu: 1_500, tags: [], links: [boot] },
    ...host.roceMacs.map((mac, index) => ({
      ...{ id: index + 2, name: `ens${index + 1}np0`, mac, mtu: 1_500, tags: [] },
      links: [{ id: index + 2, mode: "link_up" as const, subnet: null, ipAddress: null }],
    })),
  ];
}
