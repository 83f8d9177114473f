import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import type { RedfishClient } from "../client.ts";
import { openAtKnownPlaces } from "../known-places.ts";
import { findMembers } from "../members.ts";
import { lastSegment, linkAt, type Resource } from "../resource.ts";
import { SHELF_CHASSIS_ID } from "./layouts.ts";

/** Where things are on one BMC. Found once; members that are found later are filled in. */
export interface ShelfPlaces {
  readonly chassis: string;
  readonly managers: string | undefined;
  readonly systems: string | undefined;
  /** That no computer system stands behind the BMC; `undefined` until looked for. */
  isWithoutSystems?: true;
  /** The sensors at the shelf's output; `undefined` until looked for. */
  meter?: { readonly watts: string | undefined; readonly volts: string | undefined } | undefined;
}

export interface Shelf {
  readonly target: BmcTarget;
  readonly call: CallContext;
  readonly client: RedfishClient;
  readonly places: ShelfPlaces;
  readonly chassis: Resource;
  readonly certificateFingerprint: string | undefined;
}

/** Opens the shelf behind a BMC: its chassis, read just now. */
export interface Shelves {
  open(target: BmcTarget, call: CallContext): Promise<Shelf>;
}

export function createShelves(client: RedfishClient): Shelves {
  return {
    open: openAtKnownPlaces<ShelfPlaces, Shelf>({
      find: (target, call) => findPlaces(client, target, call),
      async read(target, call, places) {
        const { resource, certificateFingerprint } = await client.get(target, places.chassis, call);
        return { target, call, client, places, chassis: resource, certificateFingerprint };
      },
    }),
  };
}

async function findPlaces(client: RedfishClient, target: BmcTarget, call: CallContext): Promise<ShelfPlaces> {
  const wanted = { collection: "Chassis", called: "chassis", device: "a power shelf" } as const;
  const { root, members } = await findMembers(client, { target, call }, wanted);
  const shelf = members.find(({ path }) => SHELF_CHASSIS_ID.test(lastSegment(path))) ?? members[0];
  return { chassis: shelf.path, managers: linkAt(root, "Managers"), systems: linkAt(root, "Systems") };
}

/** A few at a time: the gateway would take all, but then nobody else's request to this BMC got through. */
export async function readEach(shelf: Shelf, paths: readonly string[]): Promise<readonly (Resource | undefined)[]> {
  const found: (Resource | undefined)[] = [];
  for (let from = 0; from < paths.length; from += 2) {
    found.push(
      ...(await Promise.all(
        paths.slice(from, from + 2).map((path) => shelf.client.find(shelf.target, path, shelf.call)),
      )),
    );
  }
  return found;
}
