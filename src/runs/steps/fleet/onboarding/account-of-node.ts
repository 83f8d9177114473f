import type { IpmiPower } from "../../../../capabilities/fleet/maas.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { nameOf, type Onboarding } from "./on-onboarding.ts";

type Asking = Pick<Onboarding, "powerAccount" | "knownIdentity" | "target">;

/**
 * What MAAS signs in to the management controller of the node with. Address and account are one unit: the account on record belongs to the
 * address that the machine has now, and is sent with no other one.
 */
export async function accountOfNode({ powerAccount, knownIdentity, target: node }: Asking): Promise<IpmiPower> {
  const { ipmiIp, machineId } = node;
  const missing = (why: string, next: string) =>
    failedAs("credentials_missing", `${why}; next: ${next}`, { at: "bmc", name: machineId });
  const account = ipmiIp === null ? undefined : await powerAccount();
  if (ipmiIp === null || account === undefined)
    throw missing(
      `no account for the management controller of ${nameOf(node)} (${ipmiIp ?? "without an address"}) is on record`,
      `millwright machine set-credentials ${machineId}`,
    );
  const { bmcAddress } = await knownIdentity();
  if (bmcAddress !== null && !isSameAddress(bmcAddress, ipmiIp))
    throw missing(
      `${nameOf(node)} was onboarded with the management controller ${ipmiIp}, and machine ${machineId} has ${bmcAddress} by now: the account on record is for that one`,
      `millwright machine update ${machineId} --bmc-endpoint ${ipmiIp}, or decommission the node and onboard it with the address that is right`,
    );
  return { address: ipmiIp, ...account };
}

/** A record may have an IPv6 address between brackets. */
export const isSameAddress = (one: string, other: string): boolean =>
  one.replace(/^\[(.*)\]$/, "$1").toLowerCase() === other.toLowerCase();
