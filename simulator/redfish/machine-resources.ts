import type { Machine } from "../devices/machine.ts";
import { machineChassisResources } from "./machine-chassis-resources.ts";
import { logEntryMembers, managerResources } from "./manager-resources.ts";
import { link, type Resource, type ResourceTree } from "./resources.ts";
import { serviceMembers, serviceResources } from "./service-resources.ts";
import { SYSTEM, systemResources } from "./system-resources.ts";
import { VIRTUAL_MEDIA, virtualMediaResources } from "./virtual-media-resources.ts";

const CHASSIS = "/redfish/v1/Chassis/1";

/** What the management controller of a machine shows. */
export function machineTree(): ResourceTree<Machine> {
  return {
    fixed: new Map<string, Resource<Machine>>([
      ...serviceResources<Machine>({ systems: true }),
      ...systemResources(CHASSIS),
      ...machineChassisResources(CHASSIS, SYSTEM),
      ...managerResources<Machine>({
        name: "Baseboard management controller",
        chassis: CHASSIS,
        more: () => ({ VirtualMedia: link(VIRTUAL_MEDIA) }),
        links: { ManagerForServers: [link(SYSTEM)] },
      }),
      ...virtualMediaResources(),
    ]),
    members: new Map([...serviceMembers, logEntryMembers]),
  };
}
