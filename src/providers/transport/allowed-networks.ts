import { type LookupAddress, lookup } from "node:dns";
import { lookup as lookupLater } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Peer } from "../../kernel/causes.ts";
import { messageOf } from "../../kernel/errors.ts";
import { ownTrouble } from "./own-trouble.ts";

/** Says whether an IP address lies in a network that the operator listed. */
export type MayReach = (address: string) => boolean;

/** Who is called, for messages and facts. */
export interface Called {
  readonly at: Peer;
  readonly name: string;
  /** What lists the networks that it may be in; bmc.allowed_networks unless told. */
  readonly setting?: string;
}
const BMC: Called = { at: "bmc", name: "BMC" };

const outside = (host: string, { at, name, setting = "bmc.allowed_networks" }: Called = BMC): DeviceFailure =>
  new DeviceFailure(
    "address_not_allowed",
    at,
    `${name} ${host} is outside the networks that may be called: add its network to ${setting}`,
    { facts: { address: host } },
  );

/** An address given as such is judged before anything is sent. */
export function checkAddress(host: string, mayReach: MayReach | undefined, who?: Called): void {
  if (mayReach && isIP(host) !== 0 && !mayReach(host)) throw outside(host, who);
}

/** The address to hand to a program that would resolve the name anew, and could be led elsewhere by then. */
export async function allowedAddress(host: string, mayReach: MayReach | undefined, who = BMC): Promise<string> {
  checkAddress(host, mayReach, who);
  if (isIP(host) !== 0 || mayReach === undefined) return host;
  const found = await lookupLater(host, { all: true }).catch((error: unknown) => {
    const own = ownTrouble(error);
    if (own) throw own;
    throw new DeviceFailure("unreachable", who.at, `${who.name} ${host} cannot be found: ${messageOf(error)}`, {
      facts: { address: host },
      cause: error,
    });
  });
  const allowed = found.find(({ address }) => mayReach(address));
  if (!allowed) throw outside(host, who);
  return allowed.address;
}

/** Names are resolved once, and the connection goes to the very address that was judged. */
export function guardedLookup(mayReach: MayReach, who?: Called): LookupFunction {
  return (host, options, callback) => {
    lookup(host, { ...options, all: true }, (error, found: LookupAddress[]) => {
      const allowed = error ? [] : found.filter(({ address }) => mayReach(address));
      const [first] = allowed;
      if (error) callback(error, "");
      else if (!first) callback(outside(host, who), "");
      else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
