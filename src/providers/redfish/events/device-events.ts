import type { IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import type { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { DeviceEvents, EventListener } from "../../../capabilities/events/device-events.ts";
import { signInEndpoint } from "../../../capabilities/sign-in-ledger.ts";
import { seconds } from "../../../kernel/time/duration.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import { transportCause } from "../../transport/transport-cause.ts";
import type { RedfishClient } from "../client.ts";
import { isLocalPath, linkAt, type Resource, textAt, valueAt } from "../resource.ts";
import { SERVICE_ROOT } from "../sessions.ts";
import { EventScanner } from "./event-scanner.ts";
import { receiveEvents } from "./event-subscription.ts";

/** More than this a second is left with the device: a flood costs us next to nothing, and the device all of it. */
const MOST_BYTES_A_SECOND = 256 * 1_024;
/** Measurements come in all the time, and are no events. */
const EVENTS_ALONE = "$filter=EventFormatType%20eq%20Event";

/** The events of Redfish's EventService, by the stream of server-sent events that it names. */
export function createDeviceEvents(client: RedfishClient): DeviceEvents {
  return {
    async follow(target, listener, call, inbox) {
      const service = await readService(client, target, call);
      const place = linkAt(service, "Subscriptions");
      const stream = streamOf(service, target);
      if (stream === undefined) {
        if (inbox === undefined || place === undefined) throw offersNone(target);
        return receiveEvents({ client, target, place, inbox, listener, call });
      }
      const body = await client.stream(target, stream, call);
      listener.opened();
      await readEvents(body, listener, target, call.signal);
    },
  };
}

const offersNone = (target: BmcTarget): DeviceFailure =>
  bmcFailure("unsupported", target, `${nameOf(target)} offers no server-sent events`);

async function readService(client: RedfishClient, target: BmcTarget, call: CallContext): Promise<Resource> {
  const { resource: root } = await client.get(target, SERVICE_ROOT, call);
  const place = linkAt(root, "EventService");
  const service = place === undefined ? undefined : await client.find(target, place, call);
  if (service === undefined || valueAt(service, "ServiceEnabled") === false) throw offersNone(target);
  return service;
}

function streamOf(service: Resource, target: BmcTarget): string | undefined {
  const uri = textAt(service, "ServerSentEventUri");
  if (uri === undefined || uri === "") return undefined;
  const path = pathHere(target, uri);
  const isFiltered = valueAt(service, "SSEFilterPropertiesSupported", "EventFormatType") === true;
  return isFiltered && !path.includes("?") ? `${path}?${EVENTS_ALONE}` : path;
}

/** The sign-in goes with the request, so a stream at any other place than this BMC's own is refused. */
function pathHere(target: BmcTarget, uri: string): string {
  const own = `${target.scheme}://${signInEndpoint(target)}`;
  const isOwn = URL.canParse(uri) && URL.canParse(own) && new URL(uri).origin === new URL(own).origin;
  const path = isOwn ? uri.slice(uri.indexOf("/", uri.indexOf("//") + 2)) : uri;
  if (isLocalPath(path)) return path;
  const message = `${nameOf(target)} names a place for its events that is not its own (${uri.slice(0, 100)}); nothing is sent there`;
  throw bmcFailure("protocol", target, message, { disposition: "fail" });
}

/** Resolves when the signal ends it. */
async function readEvents(
  body: IncomingMessage,
  listener: EventListener,
  target: BmcTarget,
  signal: AbortSignal,
): Promise<void> {
  const scanner = new EventScanner();
  const onAbort = () => void body.destroy();
  signal.addEventListener("abort", onAbort, { once: true });
  let failure = endedBy(target, "it has ended it");
  try {
    if (signal.aborted) return;
    let taken = 0;
    for await (const chunk of body) {
      const { lines, events } = scanner.scan(chunk);
      if (lines > 0) listener.alive();
      if (events > 0) listener.happened();
      taken += chunk.length;
      if (taken < MOST_BYTES_A_SECOND) continue;
      taken = 0;
      await pause(seconds(1), undefined, { signal });
    }
  } catch (error) {
    failure = endedBy(target, transportCause(error), error);
  } finally {
    signal.removeEventListener("abort", onAbort);
    body.destroy();
  }
  if (!signal.aborted) throw failure;
}

const endedBy = (target: BmcTarget, why: string, cause?: unknown): DeviceFailure =>
  bmcFailure("unreachable", target, `the stream of events of ${nameOf(target)} has broken: ${why}`, { cause });
