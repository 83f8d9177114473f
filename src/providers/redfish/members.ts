import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { DeviceFailure } from "../../capabilities/device-failure.ts";
import { bmcFailure } from "../transport/bmc-failure.ts";
import { nameOf } from "../transport/bmc-gateway.ts";
import type { RedfishClient } from "./client.ts";
import { linkAt, membersOf, type Resource } from "./resource.ts";
import { SERVICE_ROOT } from "./sessions.ts";

interface Found {
  readonly root: Resource;
  readonly collection: string;
  /** At least one. */
  readonly members: readonly [Member, ...Member[]];
}
type Member = ReturnType<typeof membersOf>[number];

/** The members of a collection that the service root names, for a device that has nothing without them. */
export async function findMembers(
  client: RedfishClient,
  { target, call }: { readonly target: BmcTarget; readonly call: CallContext },
  wanted: {
    readonly collection: "Systems" | "Chassis";
    /** In words: `computer systems`. */
    readonly called: string;
    /** The device that has such a BMC: `a machine`. */
    readonly device: string;
  },
): Promise<Found> {
  const { resource: root } = await client.get(target, SERVICE_ROOT, call);
  const collection = linkAt(root, wanted.collection);
  if (collection === undefined)
    throw notSuchDevice(target, ` lists no ${wanted.called} in ${SERVICE_ROOT}: is it the BMC of ${wanted.device}?`);
  const [first, ...others] = membersOf((await client.get(target, collection, call)).resource);
  if (first === undefined) throw notSuchDevice(target, `: ${collection} has no members`);
  return { root, collection, members: [first, ...others] };
}

/** What answers is not the device that it should be: nobody need try again. */
export const notSuchDevice = (target: BmcTarget, why: string): DeviceFailure =>
  bmcFailure("protocol", target, `${nameOf(target)}${why}`, { disposition: "fail" });
