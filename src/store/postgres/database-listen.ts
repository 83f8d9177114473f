import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { HostClient, type HostClientConfig } from "./host-client.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
const HEARTBEAT_MS = 15_000;

export interface Subscription {
  readonly channel: string;
  /**
   * Called with each message, and with an empty one whenever the connection was just made: what was sent before that is
   * lost, so the listener must look for itself.
   */
  readonly onNotify: (payload: string) => void;
  readonly signal: AbortSignal;
}

export interface Listener {
  /** Resolves when the subscription stands for the first time, or was given up before. */
  readonly listening: Promise<void>;
  /** Resolves when the signal ended it and its connection is closed. */
  readonly ended: Promise<void>;
}

/** A connection for one channel, made again whenever it breaks, until the signal ends it. */
export function startListener(config: HostClientConfig, subscription: Subscription, log: Log): Listener {
  const first = Promise.withResolvers<void>();
  const ended = runListener(config, subscription, log, first.resolve).finally(first.resolve);
  return { listening: first.promise, ended };
}

async function runListener(
  config: HostClientConfig,
  { channel, onNotify, signal }: Subscription,
  log: Log,
  onListening: () => void,
) {
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      await listenOnce(config, { channel, onNotify, signal }, () => {
        log.info({ channel }, "listening to the database");
        pause = FIRST_PAUSE_MS;
        onListening();
      });
    } catch (error) {
      log.warn(
        { channel, error: messageOf(error), retryInMs: pause },
        "lost the connection that listens to the database",
      );
    }
    await delay(pause, undefined, { signal }).catch(() => {}); // aborted: the loop ends
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

/** Resolves when the signal aborts, rejects when the connection breaks. */
async function listenOnce(
  config: HostClientConfig,
  { channel, onNotify, signal }: Subscription,
  onListening: () => void,
): Promise<void> {
  const client = new HostClient({ ...config, query_timeout: HEARTBEAT_MS, keepAlive: true });
  const over = Promise.withResolvers<void>();
  over.promise.catch(() => {}); // it may fail while we still connect, and is looked at afterwards
  client.on("error", over.reject);
  client.on("end", () => over.reject(new Error("the connection was closed")));
  client.on("notification", ({ payload }) => onNotify(payload ?? ""));
  const stop = () => over.resolve();
  signal.addEventListener("abort", stop, { once: true });
  // A peer that vanished without a word is only noticed by asking.
  const heartbeat = setInterval(() => void client.query("SELECT").catch(over.reject), HEARTBEAT_MS);
  try {
    await client.connect();
    await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    if (!signal.aborted) {
      onListening();
      onNotify("");
      await over.promise;
    }
  } finally {
    clearInterval(heartbeat);
    signal.removeEventListener("abort", stop);
    await client.end().catch(() => {});
  }
}
