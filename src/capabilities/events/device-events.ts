import type { BmcTarget } from "../bmc-target.ts";
import type { CallContext } from "../call.ts";
import type { EventInbox } from "./event-inbox.ts";

/** Is told what is heard of a device. Never what it was: a device is believed only when it is read. */
export interface EventListener {
  /** The stream stands. What happened before was not heard. */
  opened(): void;
  /** The device sent a whole line, be it only to keep the stream alive. */
  alive(): void;
  /** The device still has the address that it is to send its events to. That they would arrive, it does not show. */
  present(): void;
  /** Something happened to the device. Several events that arrive together are told once. */
  happened(): void;
}

/**
 * What a device reports by itself, as it happens. One stream a call, which blocks no other call to the device.
 *
 * `follow` lasts for as long as the stream does, and resolves when the call's signal ends it. It needs bounded memory and bounded
 * time whatever the device sends; a device that sends nothing is for the caller to give up on.
 *
 * With an inbox, a device that offers no stream is asked to send its events there, for as long as `follow` lasts.
 *
 * @throws DeviceFailure "unsupported" when the device offers no events, "unreachable" when the stream is cut; else as every call
 */
export interface DeviceEvents {
  follow(target: BmcTarget, listener: EventListener, call: CallContext, inbox?: EventInbox): Promise<void>;
}
