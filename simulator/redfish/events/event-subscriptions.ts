import { request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { z } from "zod";
import type { ManagedDevice } from "../../devices/managed-device.ts";
import { noContent, ok, refuse } from "../answer.ts";
import { readBodyOf } from "../patch-body.ts";
import { collection, type Resource, type ResourceCall } from "../resources.ts";
import { DeviceNews, eventOf } from "./event-stream.ts";

export const SUBSCRIPTIONS = "/redfish/v1/EventService/Subscriptions";
/** As few as a real controller was documented to allow. */
const MOST = 4;
/** Real time, as that of the stream of events. */
const FINDS_OUT_EVERY_MS = 100;
const DELIVERED_WITHIN_MS = 2_000;
/** What cannot be delivered so often in a row ends the subscription, as the standard's default says. */
const TRIES = 3;

interface Subscription {
  readonly id: string;
  readonly destination: string;
  readonly context: string;
  readonly timer: NodeJS.Timeout;
}

/** Who subscribed to the events of a device. They are in the memory of its controller: one that restarts has forgotten them. */
const subscribed = new WeakMap<ManagedDevice, { restarts: number; next: number; all: Map<string, Subscription> }>();

function bookOf(device: ManagedDevice) {
  const known = subscribed.get(device);
  if (known?.restarts === device.managerRestarts) return known;
  for (const { timer } of known?.all.values() ?? []) clearInterval(timer);
  const book = { restarts: device.managerRestarts, next: known?.next ?? 1, all: new Map<string, Subscription>() };
  subscribed.set(device, book);
  return book;
}

const wanted = z.object({
  Destination: z.string(),
  Context: z.string().default(""),
  Protocol: z.literal("Redfish"),
});

export const subscriptionResources: Resource = {
  GET: ({ device, path }) =>
    ok(
      collection(
        path,
        "EventDestinationCollection",
        "Event subscriptions",
        [...bookOf(device).all.keys()].map((id) => `${SUBSCRIPTIONS}/${id}`),
      ),
    ),
  POST: subscribe,
};

export const subscriptionMembers: [string, Resource] = [
  SUBSCRIPTIONS,
  {
    GET({ device, member, path }) {
      const found = bookOf(device).all.get(member);
      return found === undefined ? refuse("ResourceMissingAtURI", path) : ok(bodyOf(found));
    },
    DELETE({ device, member, path }) {
      return forget(device, member) ? noContent : refuse("ResourceMissingAtURI", path);
    },
  },
];

function subscribe({ device, body, path }: ResourceCall) {
  if (device.traits.includes("no_events")) return refuse("ResourceMissingAtURI", path);
  const read = readBodyOf(wanted, body);
  if ("refused" in read) return read.refused;
  const { Destination: destination, Context: context } = read.value;
  if (!URL.canParse(destination) || !/^https?:$/.test(new URL(destination).protocol))
    return refuse("PropertyValueTypeError", "Destination");
  const book = bookOf(device);
  if (book.all.size >= MOST) return refuse("EventSubscriptionLimitExceeded", String(MOST));
  const id = String(book.next);
  book.next += 1;
  const subscription = { id, destination, context, timer: startSending(device, { id, destination, context }) };
  book.all.set(id, subscription);
  return { status: 201, headers: { Location: `${SUBSCRIPTIONS}/${id}` }, body: bodyOf(subscription) };
}

function forget(device: ManagedDevice, id: string): boolean {
  const { all } = bookOf(device);
  clearInterval(all.get(id)?.timer);
  return all.delete(id);
}

function startSending(device: ManagedDevice, { id, destination, context }: Omit<Subscription, "timer">) {
  const news = new DeviceNews(device);
  let sent = 0;
  let failures = 0;
  let isSending = false;
  const goOn = async () => {
    if (isSending || !device.reachable || !bookOf(device).all.has(id)) return;
    isSending = true;
    for (const each of news.take()) {
      sent += 1;
      failures = (await deliver(destination, eventOf(sent, each, context))) ? 0 : failures + 1;
      if (failures >= TRIES) forget(device, id);
    }
    isSending = false;
  };
  return setInterval(() => void goOn(), FINDS_OUT_EVERY_MS).unref();
}

/** As most controllers do, it takes whatever certificate it is shown. */
function deliver(destination: string, event: object): Promise<boolean> {
  const url = new URL(destination);
  const options = {
    method: "POST",
    headers: { "content-type": "application/json" },
    signal: AbortSignal.timeout(DELIVERED_WITHIN_MS),
  };
  return new Promise((resolve) => {
    const request =
      url.protocol === "https:"
        ? secureRequest(url, { ...options, rejectUnauthorized: false })
        : plainRequest(url, options);
    request.on("error", () => resolve(false));
    request.on("response", (response) => {
      response.resume();
      resolve((response.statusCode ?? 500) < 300);
    });
    request.end(JSON.stringify(event));
  });
}

const bodyOf = ({ id, destination, context }: Subscription) => ({
  "@odata.id": `${SUBSCRIPTIONS}/${id}`,
  "@odata.type": "#EventDestination.v1_14_0.EventDestination",
  Id: id,
  Name: "Event subscription",
  Destination: destination,
  Context: context,
  Protocol: "Redfish",
  SubscriptionType: "RedfishEvent",
  Status: { State: "Enabled", Health: "OK" },
});
