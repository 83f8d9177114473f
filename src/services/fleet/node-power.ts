import type { MaasTarget } from "../../capabilities/fleet/maas.ts";
import { AppError } from "../../kernel/errors.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { asCallerError, callOf, maasOf, targetOfSite } from "./site-target.ts";
import { getSite } from "./sites.ts";

/** Of MAAS: the machine runs the system that it was deployed with. */
const DEPLOYED = 6;

interface System {
  readonly target: MaasTarget;
  readonly systemId: string;
  readonly isOff: boolean;
}

/**
 * The system that a node would come back with. Null: nobody has to switch it on. A manual node is switched on by whoever has it, and one that was
 * never bound has nothing to switch on.
 */
export async function findSystem(
  deps: ServiceDeps,
  { id, hostname, site, mode, facts }: FleetNode,
): Promise<System | null> {
  const lost = (why: string) =>
    new AppError("failed_precondition", `fleet node ${hostname} has no system to come back with: ${why}`, {
      field: "node",
      next: `millwright fleet decommission ${id} --mode reimage`,
    });
  const { systemId } = facts;
  if (mode === "manual" || systemId === null) return null;
  const target = await targetOfSite(deps, await getSite(deps, site));
  const machine = await asCallerError("node", () => maasOf(deps).findMachine(target, systemId, callTo(id)));
  if (machine === undefined) throw lost(`MAAS has no machine ${systemId} any more`);
  if (machine.status !== DEPLOYED) throw lost(`MAAS shows its machine as ${machine.statusName}`);
  return { target, systemId, isOff: machine.power !== "on" };
}

const callTo = (id: string) => callOf(`reactivation of ${id}`);

/** The machine of a node that is to come back runs what the node was onboarded with; one that is off is switched on. Asked again it changes nothing. */
export async function switchOn(deps: ServiceDeps, node: FleetNode): Promise<void> {
  const system = await findSystem(deps, node);
  if (!system?.isOff) return;
  await asCallerError("node", () => maasOf(deps).powerOn(system.target, system.systemId, callTo(node.id)));
}
