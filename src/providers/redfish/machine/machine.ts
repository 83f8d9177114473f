import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import type { RedfishClient } from "../client.ts";
import { openAtKnownPlaces } from "../known-places.ts";
import { linkAt, membersOf, type Resource } from "../resource.ts";
import { SERVICE_ROOT } from "../sessions.ts";

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
  const { resource: root } = await client.get(target, SERVICE_ROOT, call);
  const collection = linkAt(root, "Systems");
  if (collection === undefined) {
    throw bmcFailure(
      "protocol",
      target,
      `${nameOf(target)} lists no computer systems in ${SERVICE_ROOT}: is it the BMC of a machine?`,
      { disposition: "fail" },
    );
  }
  const members = membersOf((await client.get(target, collection, call)).resource);
  const [system] = members;
  if (system === undefined)
    throw bmcFailure("protocol", target, `${nameOf(target)}: ${collection} has no members`, {
      disposition: "fail",
    });
  if (members.length > 1) {
    // Which of them is meant could only be guessed, and a wrong guess restarts somebody else's machine.
    throw bmcFailure(
      "protocol",
      target,
      `${nameOf(target)}: ${collection} has ${members.length} computer systems, and a machine's BMC must have one`,
      { disposition: "fail" },
    );
  }
  return { system: system.path, managers: linkAt(root, "Managers"), updateService: linkAt(root, "UpdateService") };
}
