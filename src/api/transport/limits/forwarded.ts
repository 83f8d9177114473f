import { isIP } from "node:net";
import { plainAddress } from "./client-address.ts";

/**
 * Where a request comes from: the other end of the connection, unless that is a trusted proxy. Each proxy appends the address that it was
 * called from, so the list is read from its end: the first address there that is no trusted proxy's was seen by a trusted one. What stands
 * before it may be the caller's own invention.
 */
export function clientOf(
  connected: string | null,
  forwardedFor: string | readonly string[] | undefined,
  isTrustedProxy: (address: string) => boolean,
): string | null {
  if (connected === null || forwardedFor === undefined || !isTrustedProxy(connected)) return connected;
  let seen = connected;
  for (const said of String(forwardedFor).split(",").reverse()) {
    const address = addressIn(said.trim());
    if (address === undefined) return seen;
    seen = address;
    if (!isTrustedProxy(address)) return seen;
  }
  return seen;
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`. */
function addressIn(said: string): string | undefined {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(said)?.[1];
  const address = plainAddress(bracketed ?? said.replace(/^([\d.]+):\d+$/, "$1"));
  return isIP(address) === 0 ? undefined : address;
}
