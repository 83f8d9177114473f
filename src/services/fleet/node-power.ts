import { AppError } from "../../kernel/errors.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { asCallerError, callOf, maasOf, targetOfSite } from "./site-target.ts";
import { getSite } from "./sites.ts";

/** Of MAAS: the machine runs the system that it was deployed with. */
const DEPLOYED = 6;

/**
 * The machine of a node that is to come back runs what the node was onboarded with; one that is off is switched on. Asked again it changes nothing. A
 * manual node is switched on by whoever has it, and one that was never bound has nothing to switch on.
 */
export async function switchOn(deps: ServiceDeps, { id, hostname, site, mode, facts }: FleetNode): Promise<void> {
  const lost = (why: string) =>
    new AppError("failed_precondition", `fleet node ${hostname} has no system to come back with: ${why}`, {
      field: "node",
      next: `millwright fleet decommission ${id} --mode reimage`,
    });
  const { systemId } = facts;
  if (mode === "manual" || systemId === null) return;
  const target = await targetOfSite(deps, await getSite(deps, site));
  const maas = maasOf(deps);
  const call = () => callOf(`reactivation of ${id}`);
  await asCallerError("node", async () => {
    const machine = await maas.findMachine(target, systemId, call());
    if (machine === undefined) throw lost(`MAAS has no machine ${systemId} any more`);
    if (machine.status !== DEPLOYED) throw lost(`MAAS shows its machine as ${machine.statusName}`);
    if (machine.power !== "on") await maas.powerOn(target, systemId, call());
  });
}
