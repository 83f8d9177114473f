import { isIPv4 } from "node:net";
import { parse as parseYaml } from "yaml";
import { z } from "zod";

/** Where a machine answers, by its own settings. Null: as it was delivered. */
export interface Network {
  readonly addresses: readonly string[];
}

const NETPLAN = /^\/etc\/netplan\/[^/]+\.yaml$/;
const FROM_THE_FACTORY = "/etc/netplan/50-cloud-init.yaml";

const settingsSchema = z.object({
  network: z.object({
    version: z.literal(2).optional(),
    ethernets: z
      .record(z.string(), z.looseObject({ dhcp4: z.boolean().optional(), addresses: z.array(z.string()).optional() }))
      .optional(),
  }),
});

/** What is on the disk of every machine unless somebody wrote something else there. */
export const factoryNetplan = "network:\n  version: 2\n  ethernets:\n    eth0:\n      dhcp4: true\n";

/**
 * The settings that the files on the disk add up to, later names after earlier ones, as netplan reads them: lists are put
 * together, and the last word on anything else counts. The lease gives the address that the machine was delivered with.
 */
export function networkFrom(
  files: Readonly<Record<string, string>>,
  leasedAddress: string,
): Network | { readonly problem: string } {
  const all: Readonly<Record<string, string>> = { [FROM_THE_FACTORY]: factoryNetplan, ...files };
  let isLeased = false;
  const addresses: string[] = [];
  for (const path of Object.keys(all)
    .filter((each) => NETPLAN.test(each))
    .sort()) {
    const read = readSettings(all[path] ?? "");
    if (typeof read === "string") return { problem: `${path}: ${read}` };
    for (const { dhcp4, addresses: more = [] } of Object.values(read.network.ethernets ?? {})) {
      isLeased = dhcp4 ?? isLeased;
      for (const text of more) {
        const address = text.split("/")[0] ?? "";
        if (!isIPv4(address) || !/\/\d{1,2}$/.test(text)) return { problem: `${path}: malformed address '${text}'` };
        addresses.push(address);
      }
    }
  }
  return { addresses: [...addresses, ...(isLeased ? [leasedAddress] : [])] };
}

function readSettings(text: string): z.infer<typeof settingsSchema> | string {
  try {
    const read = settingsSchema.safeParse(parseYaml(text) ?? { network: {} });
    return read.success ? read.data : `${read.error.issues[0]?.path.join(".")}: ${read.error.issues[0]?.message}`;
  } catch (error) {
    return error instanceof Error ? (error.message.split("\n")[0] ?? "") : "not YAML";
  }
}
