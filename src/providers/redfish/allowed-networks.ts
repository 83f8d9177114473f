import { type LookupAddress, lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { DeviceFailure } from "../../capabilities/device-failure.ts";

/** Says whether an IP address lies in a network that the operator listed. */
export type MayReach = (address: string) => boolean;

const outside = (host: string): DeviceFailure =>
  new DeviceFailure(
    "retry",
    "unreachable",
    `BMC ${host} is outside the networks that may be called: add its network to bmc.allowed_networks`,
  );

/** An address given as such is judged before anything is sent. */
export function checkAddress(host: string, mayReach: MayReach | undefined): void {
  if (mayReach && isIP(host) !== 0 && !mayReach(host)) throw outside(host);
}

/** Names are resolved once, and the connection goes to the very address that was judged. */
export function guardedLookup(mayReach: MayReach): LookupFunction {
  return (host, options, callback) => {
    lookup(host, { ...options, all: true }, (error, found: LookupAddress[]) => {
      const allowed = error ? [] : found.filter(({ address }) => mayReach(address));
      const [first] = allowed;
      if (error) callback(error, "");
      else if (!first) callback(outside(host), "");
      else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
