import { setTimeout as delay } from "node:timers/promises";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { clientConfig, type DatabaseConfig } from "./database.ts";
import { databaseError, isConnectionFailure, isRefusedForGood, takesNoWrites } from "./database-errors.ts";
import { HostClient, requireWritable } from "./host-client.ts";

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A pooler need not give away the connection that was used last; by then it would have. */
const ROUNDS = 5;

/**
 * Waits until the database answers and takes writes: whatever starts both need not know which is first. Wrong credentials, a database that
 * is not there, and a pooler that Millwright cannot work through, end it.
 */
export async function awaitDatabase(
  config: DatabaseConfig,
  { log, signal }: { readonly log: Log; readonly signal?: AbortSignal },
): Promise<void> {
  let told = "";
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    signal?.throwIfAborted();
    try {
      await proveUsable(config);
      if (told !== "") log.info({}, "the database answers");
      return;
    } catch (error) {
      if (isRefusedForGood(error) || !(isConnectionFailure(error) || takesNoWrites(error))) throw databaseError(error);
      const why = messageOf(databaseError(error));
      if (why !== told) log.warn({ error: why }, "waiting for the database");
      told = why;
    }
    await delay(pause, undefined, signal && { signal }).catch(() => signal?.throwIfAborted());
  }
}

async function proveUsable(config: DatabaseConfig): Promise<void> {
  const clients = [1, 2].map(
    () =>
      new HostClient({
        ...clientConfig(config, "millwright-start"),
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        query_timeout: CONNECT_TIMEOUT_MS,
      }),
  ) as [HostClient, HostClient];
  for (const client of clients) client.on("error", () => {}); // its statement fails as well
  try {
    for (const client of clients) await client.connect();
    await requireWritable(clients[0]);
    await refuseTransactionPooling(...clients);
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  }
}

/** Each of our connections is one session, with locks, prepared statements, settings and LISTEN of its own. */
async function refuseTransactionPooling(one: HostClient, other: HostClient): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = await backendOf(one);
    await other.query("begin");
    const others = await backendOf(other);
    // First, since with a single connection behind the pooler the second question would wait for the transaction to end.
    const isShared = others === before || (await backendOf(one)) !== before;
    await other.query("commit");
    if (isShared)
      throw new AppError(
        "failed_precondition",
        "database.url leads to a pooler that gives a connection to others between transactions (pool_mode = transaction): Millwright keeps locks, prepared statements and settings in its connections",
        { next: "set pool_mode = session for this database in pgbouncer, or name PostgreSQL itself in database.url" },
      );
  }
}

async function backendOf(client: HostClient): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid;
}
