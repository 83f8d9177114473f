import type { EventInbox } from "../../capabilities/events/event-inbox.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { type ClaimedStream, listNews } from "../../store/device/event-streams.ts";
import type { Queryable } from "../../store/postgres/database.ts";

/** How devices are told where to send their events. */
export interface EventAddresses {
  addressFor(claimed: ClaimedStream): { readonly url: string; readonly until: Date };
  isHere(url: string): boolean;
  readonly checkedEvery: Duration;
}

interface Inbox {
  readonly claimed: ClaimedStream;
  /** When something came last, as the database says it; empty: never. */
  heardAt: string;
  hasNews: boolean;
  wake: () => void;
}

/** The inboxes of the streams that this replica holds. What is sent to one may arrive at any replica, and is noted in the database. */
export class Inboxes {
  readonly #db: Queryable;
  readonly #addresses: EventAddresses;
  readonly #open = new Set<Inbox>();

  constructor(db: Queryable, addresses: EventAddresses) {
    this.#db = db;
    this.#addresses = addresses;
  }

  /** Counts from the first address that is asked for, until it is closed. */
  openFor(claimed: ClaimedStream): EventInbox & { close(): void } {
    const { addressFor, isHere, checkedEvery } = this.#addresses;
    const inbox: Inbox = { claimed, heardAt: "", hasNews: false, wake: () => undefined };
    return {
      checkedEvery,
      isHere,
      address: () => {
        this.#open.add(inbox);
        return addressFor(claimed);
      },
      waitForNews: (within, signal) => waitFor(inbox, within, signal),
      close: () => void this.#open.delete(inbox),
    };
  }

  /** Called again and again: nobody tells of news. */
  async collect(): Promise<void> {
    const open = [...this.#open];
    if (open.length === 0) return;
    const news = await listNews(
      this.#db,
      open.map(({ claimed }) => claimed),
    );
    for (const inbox of open) {
      const heardAt = news.get(inbox.claimed) ?? "";
      if (heardAt === inbox.heardAt) continue;
      inbox.heardAt = heardAt;
      inbox.hasNews = true;
      inbox.wake();
    }
  }
}

async function waitFor(inbox: Inbox, within: Duration, signal: AbortSignal): Promise<boolean> {
  if (!inbox.hasNews && !signal.aborted)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, within);
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        inbox.wake = () => undefined;
        resolve();
      };
      inbox.wake = done;
      signal.addEventListener("abort", done, { once: true });
    });
  const hadNews = inbox.hasNews;
  inbox.hasNews = false;
  return hadNews;
}
