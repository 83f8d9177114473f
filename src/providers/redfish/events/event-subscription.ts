import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { EventListener } from "../../../capabilities/events/device-events.ts";
import type { EventInbox } from "../../../capabilities/events/event-inbox.ts";
import { type Duration, milliseconds, seconds } from "../../../kernel/time/duration.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import type { RedfishClient } from "../client.ts";
import { isLocalPath, membersOf, type Resource, textAt } from "../resource.ts";

/** Tells ours from others in the list of a BMC, for people. */
const CONTEXT = "millwright";
/** A BMC has room for a handful. */
const MOST_READ = 16;
const CLEANED_WITHIN: Duration = seconds(5);
/** Another address is given to the BMC before this much of its time is left. */
const RENEWED_BEFORE = 0.25;

/** For BMCs that know nothing of formats yet. */
const OLD_EVENT_TYPES = ["StatusChange", "ResourceUpdated", "ResourceAdded", "ResourceRemoved", "Alert"];

export interface Subscribing {
  readonly client: RedfishClient;
  readonly target: BmcTarget;
  /** Of the subscriptions of its EventService. */
  readonly place: string;
  readonly inbox: EventInbox;
  readonly listener: EventListener;
  readonly call: CallContext;
}

interface Subscription {
  readonly path: string;
  readonly url: string;
  readonly renewAt: number;
}

/**
 * Has the BMC send its events to the inbox, until the signal ends that. A BMC that has forgotten is told again; what it forgot while nobody
 * noticed may have been missed, so that the device is read.
 */
export async function receiveEvents(of: Subscribing): Promise<void> {
  const { inbox, listener, call } = of;
  let current = await subscribe(of);
  try {
    listener.opened();
    for (let checkedAt = performance.now(); !call.signal.aborted; ) {
      const left = milliseconds(Math.max(0, checkedAt + inbox.checkedEvery - performance.now()));
      if (await inbox.waitForNews(left, call.signal)) listener.happened();
      if (call.signal.aborted || performance.now() - checkedAt < inbox.checkedEvery) continue;
      const before = current;
      current = await kept(of, before);
      if (current !== before) listener.happened();
      listener.present();
      checkedAt = performance.now();
    }
  } finally {
    await unsubscribe(of, current.path);
  }
}

/** The same subscription where the BMC still has it, and its address is good for a while; else another one. */
async function kept(of: Subscribing, current: Subscription): Promise<Subscription> {
  const { client, target, call } = of;
  const found = await client.find(target, current.path, call);
  const isThere = textAt(found, "Destination") === current.url;
  return isThere && Date.now() < current.renewAt ? current : subscribe(of);
}

/** Ours of before are removed first, also those that a replica left behind when it died: a BMC has room for a handful. */
async function subscribe(of: Subscribing): Promise<Subscription> {
  const { client, target, place, inbox, call } = of;
  for (const path of await findOurs(of)) await unsubscribe(of, path);
  const { url, until } = inbox.address();
  const body: Resource = { Destination: url, Context: CONTEXT, Protocol: "Redfish" };
  const { headers } = await client.post(target, place, body, call).catch((error: unknown) => {
    if (!(error instanceof DeviceFailure) || error.status !== 400) throw error;
    return client.post(target, place, { ...body, EventTypes: OLD_EVENT_TYPES }, call);
  });
  const [path] = await pathsOf(of, headers.location, url);
  if (path === undefined)
    throw bmcFailure("protocol", target, `${nameOf(target)} took a subscription to its events, and does not list it`);
  return { path, url, renewAt: until.getTime() - (until.getTime() - Date.now()) * RENEWED_BEFORE };
}

/** Where it says that it is, be it with its own host before it; else where it is listed. */
async function pathsOf(of: Subscribing, location: unknown, url: string): Promise<readonly string[]> {
  const named = typeof location === "string" ? location.replace(/^https?:\/\/[^/]+/, "") : "";
  return isLocalPath(named) ? [named] : findOurs(of, (destination) => destination === url);
}

async function findOurs(
  { client, target, place, inbox, call }: Subscribing,
  isOurs: (destination: string) => boolean = (destination) => inbox.isHere(destination),
): Promise<string[]> {
  const members = membersOf(await client.find(target, place, call)).slice(0, MOST_READ);
  const ours: string[] = [];
  for (const { path, resource } of members) {
    const known = textAt(resource, "Destination") ?? textAt(await client.find(target, path, call), "Destination");
    if (known !== undefined && isOurs(known)) ours.push(path);
  }
  return ours;
}

/** Also once the call was ended. A BMC that does not answer forgets by itself what it cannot deliver, and the address ends. */
async function unsubscribe({ client, target, call }: Subscribing, path: string): Promise<void> {
  const ending = { ...call, signal: AbortSignal.timeout(CLEANED_WITHIN) };
  await client.remove(target, path, ending).catch(() => undefined);
}
