import { AppError } from "../../kernel/errors.ts";
import { findTwins, type NodeIdentity } from "../../store/fleet/nodes.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { CheckedNode } from "./node-input.ts";

/** Locked before anything is read, so that who onboards the same node waits, and then finds it. */
export const namesOf = ({ site, hostname, ipmiIp }: Pick<CheckedNode, "site" | "hostname" | "ipmiIp">) => [
  { kind: "fleet_hostname", id: `${site}/${hostname}` },
  ...(ipmiIp === null ? [] : [{ kind: "fleet_bmc", id: ipmiIp }]),
];

/** One host name of a site, one BMC and one machine are one node. */
export async function refuseTwin(db: Queryable, identity: NodeIdentity): Promise<void> {
  const [twin] = await findTwins(db, identity);
  if (!twin) return;
  const has =
    twin.site === identity.site && twin.hostname === identity.hostname
      ? (["hostname", `the name ${twin.hostname}`] as const)
      : twin.ipmiIp !== null && twin.ipmiIp === identity.ipmiIp
        ? (["ipmi_ip", `the BMC ${twin.ipmiIp}`] as const)
        : (["ipmi_ip", `the machine ${twin.machineId}`] as const);
  throw new AppError(
    "already_exists",
    `${has[0]}: fleet node ${twin.id} (${twin.hostname}, ${twin.state.name}) has ${has[1]}`,
    { field: has[0], next: `millwright fleet show ${twin.id}` },
  );
}
