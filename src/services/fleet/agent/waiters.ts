import type { Log } from "../../../kernel/log.ts";
import type { EventSource } from "../../../store/lifecycle/event-source.ts";

interface Waiter {
  readonly rouse: () => void;
  isReplaced: boolean;
}

/**
 * Agents that wait for a task, one call a node: a newer call of the same agent ends the one before. All of them are served by one follower of
 * the journal, and one query for each burst of new tasks: what waiting costs does not grow with the number of nodes.
 */
export class Waiters {
  readonly #waiting = new Map<string, Waiter>();
  readonly #events: EventSource;
  readonly #findNodes: () => Promise<ReadonlySet<string>>;
  readonly #log: Log;
  #following: AbortController | undefined;
  #closed = false;

  constructor(options: {
    readonly events: EventSource;
    /** Which nodes have something to take. */
    readonly findNodes: () => Promise<ReadonlySet<string>>;
    readonly log: Log;
  }) {
    this.#events = options.events;
    this.#findNodes = options.findNodes;
    this.#log = options.log;
  }

  /**
   * From now on the node is noticed: `roused` is settled once there may be a task for it, the signal aborts, or nobody can tell any more. Let
   * go of it in any case. A waiter that a newer call has replaced must take nothing: whoever asked by it may be gone.
   */
  enter(nodeId: string, signal: AbortSignal): { readonly roused: Promise<void>; isReplaced(): boolean; leave(): void } {
    const { promise: roused, resolve } = Promise.withResolvers<void>();
    const rouse = () => resolve();
    const waiter: Waiter = { rouse, isReplaced: false };
    const before = this.#waiting.get(nodeId);
    if (before) before.isReplaced = true;
    before?.rouse();
    this.#waiting.set(nodeId, waiter);
    if (this.#closed || signal.aborted) rouse();
    signal.addEventListener("abort", rouse, { once: true });
    if (!this.#following && !this.#closed) void this.#follow();
    const leave = () => {
      signal.removeEventListener("abort", rouse);
      if (this.#waiting.get(nodeId) === waiter) this.#waiting.delete(nodeId);
      if (this.#waiting.size === 0) this.#stopFollowing();
    };
    return { roused, isReplaced: () => waiter.isReplaced, leave };
  }

  /** Whoever waits is answered that there is nothing. */
  close(): void {
    this.#closed = true;
    this.#stopFollowing();
    this.#rouseAll();
  }

  #stopFollowing(): void {
    this.#following?.abort();
    this.#following = undefined;
  }

  async #follow(): Promise<void> {
    const following = new AbortController();
    this.#following = following;
    try {
      const events = this.#events.follow(
        "now",
        { kinds: ["fleet_task"], ids: [], types: ["created"] },
        following.signal,
      );
      // The bookmark at the beginning counts as well: what came before it was seen by nobody.
      for await (const _ of events) await this.#rouseThose();
    } catch (err) {
      this.#log.warn({ err }, "new tasks of fleet nodes cannot be followed; agents ask again");
    }
    if (this.#following !== following) return;
    this.#following = undefined;
    this.#rouseAll();
  }

  async #rouseThose(): Promise<void> {
    for (const id of await this.#findNodes()) this.#waiting.get(id)?.rouse();
  }

  #rouseAll(): void {
    for (const { rouse } of this.#waiting.values()) rouse();
  }
}
