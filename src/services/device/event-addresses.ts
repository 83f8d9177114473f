import { type Duration, hours, milliseconds } from "../../kernel/time/duration.ts";
import type { Signer } from "../../store/access/secrets.ts";
import { noteNews } from "../../store/device/event-streams.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";

/**
 * The addresses that BMCs send their events to. A BMC has no credentials here, so the address is its secret: it is signed for one device and one
 * stream of it, and expires. An event is only a nudge: whatever is sent, the device is read, and nothing in it is read.
 */
const PURPOSES = { shared: "events of a device", own: "events of a device at bmc.listen" } as const;
/** Whether BMCs have a listener of their own. An address for the one is none for the other. */
export type EventListenerName = keyof typeof PURPOSES;
export const EVENT_INBOXES = "/bmc/events";
const VALID_FOR: Duration = hours(24);
/** Of one address. What comes sooner after the last one is read with that: a nudge is followed by one more. */
const NOTED_EVERY: Duration = milliseconds(500);

interface Stream {
  readonly kind: string;
  readonly id: string;
  readonly epoch: number | string;
}
const signedText = ({ kind, id, epoch }: Stream, expires: string): string => `${kind} ${id} ${epoch} ${expires}`;

export function eventAddress(
  signer: Signer,
  stream: Stream,
  { server, now, listener }: { readonly server: string; readonly now: Date; readonly listener: EventListenerName },
): { readonly url: string; readonly until: Date } {
  const seconds = Math.ceil((now.getTime() + VALID_FOR) / 1_000);
  const expires = seconds.toString(36);
  const signature = signer.sign(PURPOSES[listener], signedText(stream, expires));
  const parts = [stream.kind, encodeURIComponent(stream.id), stream.epoch, expires, signature];
  return { url: `${server}${EVENT_INBOXES}/${parts.join("/")}`, until: new Date(seconds * 1_000) };
}

export interface EventRequest {
  readonly kind: string;
  readonly id: string;
  readonly epoch: string;
  readonly expires: string;
  readonly signature: string;
}

/** Judges an address before anything of the request is read. */
export function isEventAddress(
  deps: ServiceDeps,
  request: EventRequest,
  listeners: readonly EventListenerName[],
): boolean {
  const { epoch, expires, signature } = request;
  if (!/^[0-9]{1,15}$/.test(epoch) || !/^[0-9a-z]{1,11}$/.test(expires)) return false;
  const isSigned = (listener: EventListenerName) =>
    deps.secrets.isSigned(PURPOSES[listener], signedText(request, expires), signature);
  return listeners.some(isSigned) && Number.parseInt(expires, 36) * 1_000 > nowOf(deps).getTime();
}

/** Notes that something came. However much comes, the database hears of it twice a second and device. */
export function openEventDesk(deps: ServiceDeps): (request: EventRequest) => Promise<boolean> {
  let noted = new Set<string>();
  let since = 0;
  return async ({ kind, id, epoch }) => {
    const now = nowOf(deps).getTime();
    // All at once: of each device no more than one more is heard for it.
    if (now - since >= NOTED_EVERY) [noted, since] = [new Set(), now];
    const key = `${kind} ${id} ${epoch}`;
    if (noted.has(key)) return true;
    noted.add(key);
    return noteNews(deps.db, { kind, id, epoch: Number(epoch) });
  };
}
