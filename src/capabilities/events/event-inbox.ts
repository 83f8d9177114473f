import type { Duration } from "../../kernel/time/duration.ts";

/** Where one device may send its events, if it sends them instead of streaming them. */
export interface EventInbox {
  /** Made for this device, and for nobody else to guess. It is good until then; a later call gives another one. */
  address(): { readonly url: string; readonly until: Date };
  /** Whether an address leads to this site, for whichever device it was made, and when. */
  isHere(url: string): boolean;
  /** Resolves once something came, with true, or after that time, with false; at once when the signal aborts. */
  waitForNews(within: Duration, signal: AbortSignal): Promise<boolean>;
  /** How often the device is asked whether it still knows the address. */
  readonly checkedEvery: Duration;
}
