import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { RedfishClient } from "./client.ts";
import { linkAt, listAt, membersOf, type Resource } from "./resource.ts";

/** What has been opened behind a BMC. */
interface Opened {
  readonly client: RedfishClient;
  readonly target: BmcTarget;
  readonly call: CallContext;
  readonly places: { readonly managers: string | undefined };
}

/** The manager that the system or the chassis names as its own, else the first there is. */
export async function findManager(
  { client, target, call, places }: Opened,
  managed: Resource,
): Promise<Resource | undefined> {
  const own = linkAt(listAt(managed, "Links", "ManagedBy")[0]);
  if (own !== undefined) return client.find(target, own, call);
  if (places.managers === undefined) return undefined;
  const first = membersOf(await client.find(target, places.managers, call))[0];
  return first === undefined ? undefined : client.find(target, first.path, call);
}
