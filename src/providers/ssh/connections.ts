import { createHmac, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure, isStranger } from "../../capabilities/device-failure.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import {
  type ConnectOptions,
  connectTo,
  type Destination,
  lookAtHostKey,
  type SshConnection,
  settleWithin,
} from "./connect.ts";

export interface ConnectionsOptions extends Partial<ConnectOptions> {
  /** Connections kept open, all machines together. */
  readonly keepAtMost?: number;
  /** A connection that nobody used for this long is closed. */
  readonly keepIdleFor?: Duration;
}

interface Kept {
  readonly connection: SshConnection;
  users: number;
  idleTimer: NodeJS.Timeout | undefined;
}

// Made anew in each process: tells "the same target as before" without keeping what it is made of.
const secret = randomBytes(32);
// A host on the way that is a machine of its own is another target: what to do about a failure there differs.
const keyOfTarget = (target: Destination): string =>
  createHmac("sha256", secret).update(JSON.stringify(target)).digest("base64");

/** Silence tells something of a host only where it had all the time that it may take; a refusal always does. */
const holdsForOthers = (error: unknown, wasCutShort: boolean): boolean =>
  error instanceof DeviceFailure && (!wasCutShort || isStranger(error));

/** Open connections, used again by those who come soon after: signing in costs a machine more than a command does. */
export class SshConnections {
  readonly #options: ConnectOptions;
  readonly #keepIdleFor: Duration;
  readonly #kept: LRUCache<string, Kept>;
  /** Undefined: it failed for reasons of its own. */
  readonly #opening = new Map<string, Promise<Kept | undefined>>();
  #closed = false;

  constructor({
    keepAtMost = 256,
    keepIdleFor = seconds(15),
    connectTimeout = seconds(10),
    mayReach,
  }: ConnectionsOptions) {
    this.#options = { connectTimeout, mayReach };
    this.#keepIdleFor = keepIdleFor;
    // One that is in use when it is forgotten is closed by its last user.
    this.#kept = new LRUCache({
      max: keepAtMost,
      disposeAfter(kept) {
        clearTimeout(kept.idleTimer);
        if (kept.users === 0) kept.connection.close();
      },
    });
  }

  async use<T>(target: Destination, call: CallContext, work: (connection: SshConnection) => Promise<T>): Promise<T> {
    const key = keyOfTarget(target);
    const kept = await this.#open(key, target, call);
    kept.users += 1;
    clearTimeout(kept.idleTimer);
    try {
      return await work(kept.connection);
    } finally {
      kept.users -= 1;
      if (kept.users === 0) this.#rest(key, kept);
    }
  }

  /** Nothing is kept of it: the key is wanted as it is now. The way to it may have been used before: many machines share one. */
  hostKey(target: SshTarget, call: CallContext): Promise<string> {
    const { credentials, jumpHosts } = target;
    const last = jumpHosts.at(-1);
    if (last === undefined) return lookAtHostKey(target, undefined, call, this.#options);
    const way: Destination = { ...last, isJump: true, credentials, jumpHosts: jumpHosts.slice(0, -1) };
    return this.use(way, call, (connection) => lookAtHostKey(target, connection, call, this.#options));
  }

  close(): void {
    this.#closed = true;
    for (const { connection } of this.#kept.values()) connection.close();
    this.#kept.clear();
  }

  /**
   * Those who come while somebody signs in wait for that: a host turns away most of those who come all at once, and may lock an
   * account that is tried too often.
   */
  async #open(key: string, target: Destination, call: CallContext): Promise<Kept> {
    for (;;) {
      const before = this.#kept.get(key);
      if (before?.connection.isOpen) return before;
      const others = this.#opening.get(key);
      const opened = others === undefined ? this.#signIn(key, target, call) : this.#awaitOthers(others, target, call);
      const kept = await opened;
      if (kept !== undefined) return kept;
    }
  }

  async #signIn(key: string, target: Destination, call: CallContext): Promise<Kept> {
    let wasCutShort = false;
    const mayTouchDevice = (wanted: Duration): Duration => {
      const given = call.mayTouchDevice(wanted);
      wasCutShort ||= given < wanted;
      return given;
    };
    const opening = this.#openAnew(key, target, { ...call, mayTouchDevice });
    const forOthers = opening.catch((error: unknown) => {
      if (holdsForOthers(error, wasCutShort)) throw error;
      return undefined;
    });
    forOthers.catch(() => undefined); // mostly there are no others
    this.#opening.set(key, forOthers);
    try {
      return await opening;
    } finally {
      this.#opening.delete(key);
    }
  }

  /** What the host answered them holds for us. Undefined when it was they who gave up. */
  #awaitOthers(others: Promise<Kept | undefined>, target: Destination, call: CallContext): Promise<Kept | undefined> {
    // They have the timeout for each host on the way, and once more for each way from one to the next.
    const mostWaits = 2 * target.jumpHosts.length + 1;
    const deadline = call.mayTouchDevice(milliseconds(mostWaits * this.#options.connectTimeout));
    const around = { host: target, what: "signing in", deadline, call };
    return settleWithin<Kept | undefined>(around, (resolve, reject) => {
      others.then(resolve, reject);
    });
  }

  async #openAnew(key: string, target: Destination, call: CallContext): Promise<Kept> {
    const connection = await connectTo(target, call, this.#options);
    const kept: Kept = { connection, users: 0, idleTimer: undefined };
    if (this.#closed) connection.close();
    else this.#kept.set(key, kept);
    return kept;
  }

  #rest(key: string, kept: Kept): void {
    if (this.#kept.get(key) !== kept) {
      kept.connection.close();
      return;
    }
    kept.idleTimer = setTimeout(() => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
    }, this.#keepIdleFor);
    kept.idleTimer.unref();
  }
}
