import { isIPv6 } from "node:net";

/** An IPv4 address as such, also where the system shows it inside IPv6. */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "");

/**
 * What counts as one address. One host commonly has a whole /64 of IPv6 and may use any address in it, so those count as one.
 */
export function addressGroup(address: string): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = (plain.split("%", 1)[0] ?? "").split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const words = [...before, ...Array<string>(zeros).fill("0"), ...after].slice(0, 4);
  return `${words.map((word) => Number.parseInt(word, 16).toString(16)).join(":")}::/64`;
}
