import { z } from "zod";
import type { SeededValues } from "../seeded-values.ts";
import { accountFields, loopbackAddress, mac, name, seededUuid, word } from "../site/fields.ts";

/** A GPU server that MAAS manages, as it stands in the rack. Nobody but MAAS reaches its management controller. */
export interface HostSpec {
  readonly id: string;
  /** Of its management controller, which is on a network that MAAS listens to. */
  readonly ipmiAddress: string;
  readonly ipmiMac: string;
  readonly username: string;
  readonly password: string;
  /** Of the port that boots from the network. */
  readonly mac: string;
  readonly roceMacs: readonly string[];
  readonly serial: string;
  readonly systemUuid: string;
  /** Whether MAAS has found it already: somebody switched it on, and it booted from the network. */
  readonly isDiscovered: boolean;
  /** How MAAS links its boot port after commissioning. */
  readonly bootLink: "auto" | "dhcp" | "link_up";
  readonly hasBossDisk: boolean;
}

const MOST_HOSTS = 10_000;
const ROCE_PORTS = 2;
/** In the MAC address, behind all other ports. */
const IPMI_PORT = 255;

const hostFields = z.strictObject({
  id: name.optional(),
  ipmi_address: loopbackAddress.optional(),
  ipmi_mac: mac.optional(),
  username: accountFields.username,
  password: accountFields.password,
  mac: mac.optional(),
  roce_macs: z.array(mac).max(16).optional(),
  serial: word.optional(),
  discovered: z.boolean().optional(),
  boot_link: z.enum(["auto", "dhcp", "link_up"]).optional(),
  boss_disk: z.boolean().optional(),
});

/** `maas` of a site file: how many servers, or each of them. */
export const maasHosts = z.union([z.int().min(1).max(MOST_HOSTS), z.array(hostFields).min(1).max(MOST_HOSTS)]);

export function hostsOf(given: z.infer<typeof maasHosts> | undefined, seeded: SeededValues): readonly HostSpec[] {
  const entries = typeof given === "number" ? Array.from({ length: given }, () => ({})) : (given ?? []);
  return entries.map((entry, index) => hostOf(entry, index + 1, seeded));
}

function hostOf(entry: z.infer<typeof hostFields>, number: number, seeded: SeededValues): HostSpec {
  const id = entry.id ?? `gpu-${number}`;
  const macAt = (port: number): string =>
    (
      `1a${seeded.hex(`${id}/mac`, 4)}${number.toString(16).padStart(4, "0")}${port.toString(16).padStart(2, "0")}`.match(
        /../g,
      ) ?? []
    ).join(":");
  return {
    id,
    ipmiAddress: entry.ipmi_address ?? `127.96.${number >> 8}.${number & 255}`,
    ipmiMac: entry.ipmi_mac ?? macAt(IPMI_PORT),
    username: entry.username ?? "maas",
    password: entry.password ?? seeded.label(`${id}/ipmi-password`, 16),
    mac: entry.mac ?? macAt(0),
    roceMacs: entry.roce_macs ?? Array.from({ length: ROCE_PORTS }, (_, port) => macAt(port + 1)),
    serial: entry.serial ?? `GP${seeded.label(`${id}/serial`, 8)}`,
    systemUuid: seededUuid(seeded, `${id}/uuid`),
    isDiscovered: entry.discovered ?? false,
    // MAAS leaves a port unlinked whose network it could not tell; onboarding has to mend that.
    bootLink: entry.boot_link ?? (number % 2 === 0 ? "link_up" : "auto"),
    hasBossDisk: entry.boss_disk ?? true,
  };
}
