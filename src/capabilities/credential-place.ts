import { isIP } from "node:net";
import type { BmcTarget } from "./bmc-target.ts";

/**
 * Where a credential may be sent, as one text: scheme, host and port, and how whoever answers there is judged. Two texts that are
 * equal are the same place. Empty: nowhere.
 */
export type CredentialPlace = string;

export const NOWHERE: CredentialPlace = "";

/** What of a BMC's target is its place. Paths are not: all that is behind one address gets the same request. */
export interface PlacedBmc extends Pick<BmcTarget, "address" | "port" | "scheme"> {
  readonly trust: BmcTarget["trust"]["mode"];
  /** It speaks IPMI, which has neither a scheme nor certificates. */
  readonly isIpmi?: boolean;
}

export function placeOfBmc({ address, port, scheme, trust, isIpmi = false }: PlacedBmc): CredentialPlace {
  const at = `${isIP(address) === 6 ? `[${address.toLowerCase()}]` : address.toLowerCase()}:${port}`;
  if (isIpmi) return `ipmi://${at}`;
  return scheme === "https" ? `https://${at} ${trust}` : `http://${at}`;
}

const TRUSTS: Readonly<Record<string, string>> = {
  pin: "with a pinned certificate",
  ca: "with a certificate of a trusted CA",
  off: "without a check of its certificate",
};

/** For people. */
export function describePlace(place: CredentialPlace): string {
  if (place === NOWHERE) return "no address";
  const [origin = "", trust = ""] = place.split(" ");
  const how = TRUSTS[trust];
  return how === undefined ? origin : `${origin} ${how}`;
}
