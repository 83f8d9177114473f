import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import { type Duration, seconds } from "../kernel/time/duration.ts";
import type { Database } from "../store/postgres/database.ts";
import { askTime, type OnTime } from "../store/postgres/database-time.ts";
import { forgetReplica, noteReplica, type OwnReplica, type ReplicaOrders } from "../store/replica/replicas.ts";

const EVERY = seconds(2);
/** A busy pool is no trouble, one from which nothing can be had for so long is. */
const PATIENCE = seconds(10);

export interface PresenceOptions {
  readonly db: Database;
  readonly log: Log;
  readonly own: OwnReplica;
  readonly onTime: OnTime;
  /** Told with each beat, also where nothing has changed. Absent: nobody carries them out. */
  readonly onOrders?: (orders: ReplicaOrders) => void;
  /** How long nothing may be written. */
  readonly patience?: Duration;
}

/**
 * Tells others that this replica is at work, and by that learns whether the database takes writes: a standby, a full disk and a pool
 * without a free connection answer every question that only reads, and no work can be done on them.
 */
export class ReplicaPresence {
  readonly #options: PresenceOptions;
  #wroteAt = performance.now();
  #trouble: string | null = null;
  #stopping = false;
  #draining = false;

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  /** Why nothing can be written; null when it can. Asks nobody. */
  trouble(): string | null {
    if (this.#trouble !== null) return this.#trouble;
    const silence = performance.now() - this.#wroteAt;
    return silence > (this.#options.patience ?? PATIENCE) + EVERY ? this.#hanging(silence) : null;
  }

  #hanging(silence: number): string {
    const { inUse, most } = this.#options.db.connections();
    const since = `nothing could be written for ${Math.round(silence / 1_000)} s`;
    return inUse >= most
      ? `${since}: all ${most} connections are in use (database.pool_size)`
      : `${since}: it does not answer`;
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /** An operator wants it to take no work. */
  get isDraining(): boolean {
    return this.#draining;
  }

  /** From now on others see that it hands its work over. */
  stopping(): void {
    this.#stopping = true;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { db, log, own, onTime, onOrders } = this.#options;
    while (!signal.aborted) {
      try {
        const orders = await noteReplica(db, own, { stopping: this.#stopping });
        this.#draining = orders.draining;
        onOrders?.(orders);
        await askTime(db, onTime);
        if (this.#trouble !== null) log.info({}, "the database takes writes again");
        this.#wroteAt = performance.now();
        this.#trouble = null;
      } catch (error) {
        const trouble = this.#describe(error);
        if (this.#trouble === null) log.error({ error: trouble }, "the database takes no writes");
        this.#trouble = trouble;
      }
      await pause(EVERY, undefined, { signal, ref: false }).catch(() => undefined);
    }
    await forgetReplica(db, own.id).catch(() => undefined); // others see that it is gone in a while anyway
  }

  /** A pool that is full says the same as a server that does not answer. */
  #describe(error: unknown): string {
    const { inUse, most, waiting } = this.#options.db.connections();
    const isFull = inUse >= most && waiting > 0;
    return isFull ? this.#hanging(performance.now() - this.#wroteAt) : messageOf(error);
  }
}
