import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import { signInEndpoint } from "../../../capabilities/sign-in-ledger.ts";
import { namedList } from "../../../kernel/named-list.ts";
import type { RedfishClient } from "../client.ts";
import { openAtKnownPlaces } from "../known-places.ts";
import { findMembers, notSuchDevice } from "../members.ts";
import { lastSegment, linkAt, type Resource } from "../resource.ts";

/** Where things are on the BMC of a machine. Found once; members that are found later are filled in. */
export interface MachinePlaces {
  readonly system: string;
  readonly managers: string | undefined;
  readonly updateService: string | undefined;
  /** The virtual drives that take media, the one to install from first; `undefined` until looked for. */
  drives?: readonly string[] | undefined;
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
  const wantedId = target.path === undefined ? undefined : lastSegment(target.path);
  // Which of several is meant could only be guessed, and a wrong guess restarts somebody else's machine.
  const system = wantedId === undefined ? onlyOne(members) : members.find(({ path }) => lastSegment(path) === wantedId);
  if (system === undefined) throw notSuchDevice(target, describeChoice(target, collection, members));
  return { system: system.path, managers: linkAt(root, "Managers"), updateService: linkAt(root, "UpdateService") };
}

const onlyOne = <T>(members: readonly T[]): T | undefined => (members.length === 1 ? members[0] : undefined);

const MOST_NAMED = 8;

/** Which systems there are, and how one of them is named. */
function describeChoice(target: BmcTarget, collection: string, members: readonly { readonly path: string }[]): string {
  const ids = members.map(({ path }) => lastSegment(path));
  const named = namedList(ids, MOST_NAMED);
  const example = `${target.scheme}://${signInEndpoint(target)}${collection.replace(/\/$/, "")}/${ids[0]}`;
  const problem =
    target.path === undefined
      ? `${collection} has ${ids.length} computer systems (${named})`
      : `${collection} has no computer system ${lastSegment(target.path)} (it has ${named})`;
  return `: ${problem}; name the machine's own in its BMC endpoint, like ${example}`;
}
