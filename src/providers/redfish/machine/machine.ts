import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import type { RedfishClient } from "../client.ts";
import { openAtKnownPlaces } from "../known-places.ts";
import { findMembers, notSuchDevice } from "../members.ts";
import { linkAt, type Resource } from "../resource.ts";

/** Where things are on the BMC of a machine. Found once; members that are found later are filled in. */
export interface MachinePlaces {
  readonly system: string;
  readonly managers: string | undefined;
  readonly updateService: string | undefined;
  /** The virtual drive that takes installation media; `undefined` until looked for. */
  drive?: string | undefined;
}

export interface OpenMachine {
  readonly target: BmcTarget;
  readonly call: CallContext;
  readonly client: RedfishClient;
  readonly places: MachinePlaces;
  /** The computer system, read just now. */
  readonly system: Resource;
  readonly certificateFingerprint: string | undefined;
}

/** Opens the machine behind a BMC. */
export interface Machines {
  open(target: BmcTarget, call: CallContext): Promise<OpenMachine>;
}

export function createMachines(client: RedfishClient): Machines {
  return {
    open: openAtKnownPlaces<MachinePlaces, OpenMachine>({
      find: (target, call) => findPlaces(client, target, call),
      async read(target, call, places) {
        const { resource, certificateFingerprint } = await client.get(target, places.system, call);
        return { target, call, client, places, system: resource, certificateFingerprint };
      },
    }),
  };
}

async function findPlaces(client: RedfishClient, target: BmcTarget, call: CallContext): Promise<MachinePlaces> {
  const wanted = { collection: "Systems", called: "computer systems", device: "a machine" } as const;
  const { root, collection, members } = await findMembers(client, { target, call }, wanted);
  if (members.length > 1) {
    // Which of them is meant could only be guessed, and a wrong guess restarts somebody else's machine.
    throw notSuchDevice(
      target,
      `: ${collection} has ${members.length} computer systems, and a machine's BMC must have one`,
    );
  }
  const [{ path: system }] = members;
  return { system, managers: linkAt(root, "Managers"), updateService: linkAt(root, "UpdateService") };
}
