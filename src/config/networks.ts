import { BlockList, isIP } from "node:net";

export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** `10.0.0.0/8`, `fd00::/8`, or one address; nothing for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [address = "", prefixText, ...rest] = text.trim().split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0 || address.includes("%")) return undefined;
  const longest = version === 4 ? 32 : 128;
  if (prefixText !== undefined && !/^\d{1,3}$/.test(prefixText)) return undefined;
  const prefix = prefixText === undefined ? longest : Number(prefixText);
  return prefix > longest ? undefined : { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Says whether an IP address lies in one of the networks. An empty list holds nothing, and neither does a host name:
 * the caller resolves first and connects to the very address that was judged.
 */
export function createAddressFilter(networks: readonly Network[]): (address: string) => boolean {
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  return (address) => {
    const plain = MAPPED.exec(address)?.[1] ?? address;
    const version = isIP(plain);
    return version !== 0 && list.check(plain, version === 4 ? "ipv4" : "ipv6");
  };
}

/** Hosts that no other machine can reach. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
