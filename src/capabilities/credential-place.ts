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

interface At {
  readonly address: string;
  readonly port: number;
}
const origin = ({ address, port }: At): string =>
  `${isIP(address) === 6 ? `[${address.toLowerCase()}]` : address.toLowerCase()}:${port}`;

export function placeOfBmc({ address, port, scheme, trust, isIpmi = false }: PlacedBmc): CredentialPlace {
  const at = origin({ address, port });
  if (isIpmi) return `ipmi://${at}`;
  return scheme === "https" ? `https://${at} ${trust}` : `http://${at}`;
}

/** Stands where a host does, and is no name that a host can have. */
const AS_REPORTED = "<as-its-bmc-reports>";

/** Wherever the BMC of a device says that the device's system is: the BMC has proved itself with a credential of its own. */
export const placeAsReported = (bmc: Omit<PlacedBmc, "address" | "isIpmi">): CredentialPlace =>
  placeOfBmc({ ...bmc, address: AS_REPORTED });

/** Host keys are not part of it: another one is accepted by its fingerprint alone, and none is dropped with a move. */
export function placeOfSsh({ jumpHosts, ...at }: At & { readonly jumpHosts: readonly At[] }): CredentialPlace {
  const way = jumpHosts.map(origin).join(",");
  return `ssh://${origin(at)}${way === "" ? "" : ` via ${way}`}`;
}

const TRUSTS: Readonly<Record<string, string>> = {
  pin: "with a pinned certificate",
  ca: "with a certificate of a trusted CA",
  off: "without a check of its certificate",
};

/** For people. */
export function describePlace(place: CredentialPlace): string {
  if (place === NOWHERE) return "no address";
  const [at = "", trust = ""] = place.split(" ");
  const how = TRUSTS[trust];
  return how === undefined ? place : `${at} ${how}`;
}
