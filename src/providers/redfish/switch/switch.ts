import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import type { RedfishClient } from "../client.ts";
import { openAtKnownPlaces } from "../known-places.ts";
import { findMembers } from "../members.ts";
import { lastSegment, linkAt } from "../resource.ts";
import type { Shelf, Shelves } from "../shelf/shelf.ts";

/** A switch behind its BMC: its chassis, read just now. The same as of a shelf. */
export type OpenSwitch = Shelf;
export type Switches = Shelves;

/** Among several chassis (the switch, its controller, its processors) the switch is the one that says so in its id. */
const SWITCH_CHASSIS_ID = /switch/i;

export function createSwitches(client: RedfishClient): Switches {
  return {
    open: openAtKnownPlaces<OpenSwitch["places"], OpenSwitch>({
      find: (target, call) => findPlaces(client, target, call),
      async read(target, call, places) {
        const { resource, certificateFingerprint } = await client.get(target, places.chassis, call);
        return { target, call, client, places, chassis: resource, certificateFingerprint };
      },
    }),
  };
}

async function findPlaces(client: RedfishClient, target: BmcTarget, call: CallContext): Promise<OpenSwitch["places"]> {
  const wanted = { collection: "Chassis", called: "chassis", device: "a switch" } as const;
  const { root, members } = await findMembers(client, { target, call }, wanted);
  const own = members.find(({ path }) => SWITCH_CHASSIS_ID.test(lastSegment(path))) ?? members[0];
  return { chassis: own.path, managers: linkAt(root, "Managers"), systems: linkAt(root, "Systems") };
}
