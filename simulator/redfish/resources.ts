import type { ManagedDevice } from "../devices/managed-device.ts";
import type { Conduct, PowerPhase } from "../devices/power.ts";
import type { FaultType } from "../faults/fault-rule.ts";
import type { Accounts } from "./accounts.ts";
import type { Answer } from "./answer.ts";
import type { Fetched } from "./fetch-medium.ts";
import type { Upload } from "./update/upload.ts";

/** One request, seen from the resource that it is for. */
export interface ResourceCall<D extends ManagedDevice = ManagedDevice> {
  readonly device: D;
  readonly accounts: Accounts;
  /** The path as asked, without a trailing slash. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The parsed body; undefined without one. */
  readonly body: unknown;
  /** What the request had fetched; undefined while that is nothing. */
  readonly fetched?: Fetched | undefined;
  /** The body of a request to a path that takes images. */
  readonly upload?: Upload | undefined;
  /** The last part of the path, for members of collections that come and go. */
  readonly member: string;
  /** The serial number that this answer shows. A device with the fault for it shows that of another. */
  shownSerial(): string;
  /** How the device takes the power command that is about to be given. */
  conduct(): Conduct;
  /** Whether a fault rule of that type strikes this request. */
  strike(type: FaultType): boolean;
  /** The rule of wrong credentials, and lockouts, also for the creation of sessions. */
  signIn(username: string, password: string): "right" | "wrong" | "locked";
}

export const RESOURCE_METHODS = ["GET", "POST", "PATCH", "DELETE"] as const;
export type ResourceMethod = (typeof RESOURCE_METHODS)[number];
export type ResourceHandler<D extends ManagedDevice = ManagedDevice> = (call: ResourceCall<D>) => Answer;

/** What can be done to a resource. A method that is missing is answered with 405. */
export type Resource<D extends ManagedDevice = ManagedDevice> = Partial<Record<ResourceMethod, ResourceHandler<D>>> & {
  /** Methods that need no credentials. */
  readonly open?: readonly ResourceMethod[];
};

/** Paths without trailing slash. `members` serves every path one level below its key that `fixed` does not name. */
export interface ResourceTree<D extends ManagedDevice = ManagedDevice> {
  readonly fixed: ReadonlyMap<string, Resource<D>>;
  readonly members: ReadonlyMap<string, Resource<D>>;
}

export function findResource<D extends ManagedDevice>(
  tree: ResourceTree<D>,
  path: string,
): { resource: Resource<D>; member: string } | undefined {
  const fixed = tree.fixed.get(path);
  if (fixed !== undefined) return { resource: fixed, member: "" };
  const slash = path.lastIndexOf("/");
  const members = tree.members.get(path.slice(0, slash));
  return members === undefined ? undefined : { resource: members, member: path.slice(slash + 1) };
}

export const link = (path: string) => ({ "@odata.id": path });

export const collection = (path: string, type: string, name: string, members: readonly string[]) => ({
  "@odata.id": path,
  "@odata.type": `#${type}.${type}`,
  Name: name,
  "Members@odata.count": members.length,
  Members: members.map(link),
});

export const REDFISH_POWER_STATE: Readonly<Record<PowerPhase, string>> = {
  on: "On",
  off: "Off",
  powering_on: "PoweringOn",
  powering_off: "PoweringOff",
};
