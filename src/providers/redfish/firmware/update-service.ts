import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import type { UpdateWay } from "../../../capabilities/rack/firmware.ts";
import { actionOffered } from "../action-offered.ts";
import type { RedfishClient } from "../client.ts";
import { openAtKnownPlaces } from "../known-places.ts";
import { notSuchDevice } from "../members.ts";
import { isLocalPath, linkAt, listAt, type Resource, textAt, valueAt } from "../resource.ts";
import { SERVICE_ROOT } from "../sessions.ts";

export interface UpdateService {
  readonly path: string;
  /** Read just now. */
  readonly resource: Resource;
}

export type OpenUpdateService = (target: BmcTarget, call: CallContext) => Promise<UpdateService>;

export const createUpdateServices = (client: RedfishClient): OpenUpdateService =>
  openAtKnownPlaces<{ readonly path: string }, UpdateService>({
    async find(target, call) {
      const { resource: root } = await client.get(target, SERVICE_ROOT, call);
      const path = linkAt(root, "UpdateService");
      if (path === undefined) throw notSuchDevice(target, ": this BMC offers no updates of firmware (UpdateService)");
      return { path };
    },
    async read(target, call, { path }) {
      return { path, resource: (await client.get(target, path, call)).resource };
    },
  });

const SIMPLE_UPDATE = "#UpdateService.SimpleUpdate";

/** Where an update is asked for that the device fetches itself; undefined where it does not. */
export const simpleUpdateOf = ({ resource }: UpdateService): string | undefined =>
  actionOffered(resource, SIMPLE_UPDATE);

/** Whether the device fetches over this protocol; one that lists none is believed to. */
export function fetchesOver({ resource }: UpdateService, protocol: "HTTP" | "HTTPS"): boolean {
  const listed = valueAt(resource, "Actions", SIMPLE_UPDATE, "TransferProtocol@Redfish.AllowableValues");
  return listed === undefined || listAt(listed).includes(protocol);
}

/** Where images are sent to; undefined where the device takes none in this way. */
export function pushUriOf({ resource }: UpdateService, way: Exclude<UpdateWay, "simple">): string | undefined {
  const uri = textAt(resource, way === "multipart" ? "MultipartHttpPushUri" : "HttpPushUri");
  if (uri === undefined || !URL.canParse(uri, "https://bmc/")) return undefined;
  // Some write their whole address: nothing is sent anywhere but to the BMC that we call.
  const { pathname } = new URL(uri, "https://bmc/");
  return isLocalPath(pathname) ? pathname : undefined;
}

export function waysOf(service: UpdateService): readonly UpdateWay[] {
  if (valueAt(service.resource, "ServiceEnabled") === false) return [];
  const ways: UpdateWay[] = simpleUpdateOf(service) === undefined ? [] : ["simple"];
  return [...ways, ...(["multipart", "push"] as const).filter((way) => pushUriOf(service, way) !== undefined)];
}
