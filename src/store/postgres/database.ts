import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { parseDatabaseUrl } from "../../kernel/places/database-url.ts";
import { type Duration, minutes, seconds } from "../../kernel/time/duration.ts";
import { databaseError, isConnectionFailure, isConnectTimeout, takesNoWrites } from "./database-errors.ts";
import { type Listener, startListener } from "./database-listen.ts";
import { valueParsers } from "./database-values.ts";
import { HostClient, type HostClientConfig } from "./host-client.ts";

export { isConnectionFailure, isSerializationConflict, isUniqueViolation, retryOnConflict } from "./database-errors.ts";

/** A URL, of several hosts perhaps, or its parts; the host may be the directory of a Unix socket. */
export type DatabaseConfig =
  | string
  | {
      readonly host: string;
      readonly port?: number;
      readonly user: string;
      readonly database: string;
      readonly password?: string;
    };

export interface Statement {
  /** Parsed and planned once per connection, under this name, which stands for the text, always. */
  readonly name?: string;
  /**
   * The same under a name that is made from the text: for statements that are sent all the time, of which there are few. They name
   * their columns, since a statement that is known by a connection fails once `*` means others.
   */
  readonly hot?: true;
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** Names of channels are part of statements, so that they are known here. */
export type Channel = "millwright";

export interface Queryable {
  /** The rows, as the statement names their columns. */
  query<Row extends object = Record<string, unknown>>(
    statement: string | Statement,
    values?: readonly unknown[],
  ): Promise<Row[]>;
  /** For statements whose answer is how many rows they changed. */
  execute(statement: string | Statement, values?: readonly unknown[]): Promise<number>;
}

/** Marked, so that what must happen inside a transaction cannot be given the bare database. */
export interface Transaction extends Queryable {
  readonly insideTransaction: true;
  /** Tells the log once the transaction has committed: what was rolled back did not happen. At level info unless told. */
  logWhenCommitted(fields: object, message: string, level?: "info" | "warn"): void;
  /** Sends an empty NOTIFY on the channel, once however often it is called. It travels with the COMMIT: no round trip of its own. */
  notifyWhenCommitted(channel: Channel): void;
}

export interface Connections {
  readonly inUse: number;
  readonly idle: number;
  /** Callers that wait for one. */
  readonly waiting: number;
  readonly most: number;
}

/** One connection, or any of many. */
export interface Session extends Queryable {
  /** Commits what `work` did, or rolls all of it back when `work` throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
}

export interface Database extends Session {
  /**
   * Calls `onNotify` for each NOTIFY on the channel until the signal aborts, over a connection of its own that is made
   * again when it breaks. Each time it is made, `onNotify("")` says that messages may have been missed.
   */
  listen(channel: string, onNotify: (payload: string) => void, signal: AbortSignal): Promise<void>;
  /** How many connections there are to be had, and how many are. Asks nobody. */
  connections(): Connections;
  /** Waits for what is under way, then closes all connections. End the listeners by their signals first. */
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly log: Log;
  readonly applicationName: string;
  /** Connections at most, listeners not counted. */
  readonly max?: number;
  readonly connectTimeout?: Duration;
  readonly statementTimeout?: Duration;
  readonly transactionTimeout?: Duration;
  readonly idleInTransactionTimeout?: Duration;
  /** Asked of each new connection before anything else uses it; who refuses has the connection closed. */
  readonly check?: (session: Session) => Promise<void>;
}

const DEFAULTS = {
  max: 10,
  connectTimeout: seconds(10),
  statementTimeout: seconds(30),
  transactionTimeout: minutes(1),
  // Nothing of ours waits inside a transaction. A process that is paused there holds its locks for this long, so it must be
  // over before others take up the work that it had.
  idleInTransactionTimeout: seconds(10),
} as const;

/** A server that no longer answers does not close connections either. */
const CLOSING_PATIENCE = seconds(2);

/** Connects on first use: a server that is down is an "unavailable" for each call, not the end of the process. */
export function openDatabase(config: DatabaseConfig, options: DatabaseOptions): Database {
  const settings = { ...DEFAULTS, ...options };
  const { log } = settings;
  const connection = clientConfig(config, settings.applicationName);
  const pool = new pg.Pool({
    ...connection,
    Client: HostClient,
    max: settings.max,
    connectionTimeoutMillis: settings.connectTimeout,
    idleTimeoutMillis: minutes(5),
    // Statements that a connection knows keep their plans, which were made for tables as they were then.
    maxLifetimeSeconds: minutes(10) / seconds(1),
    keepAlive: true,
    // The server's own timeout comes first; this one is for a server that no longer answers at all.
    query_timeout: settings.statementTimeout + seconds(5),
    async onConnect(client) {
      await setUpSession(client, settings);
      await settings.check?.({ ...queryable(client), transaction: (work) => transactionOn(client, log, work) });
    },
  });
  // Without these a dying database takes the process with it: the first hears idle connections, the second those in use.
  pool.on("error", (error) => log.warn({ error: messageOf(error) }, "an idle database connection broke"));
  const connections = new Set<Promise<void>>();
  pool.on("connect", (client) => {
    client.on("error", (error) => log.debug({ error: messageOf(error) }, "a database connection broke"));
    const ended = new Promise<void>((resolve) => void client.once("end", resolve));
    connections.add(ended);
    void ended.then(() => connections.delete(ended));
  });

  const listeners = new Set<Promise<void>>();
  const track = ({ listening, ended }: Listener) => {
    listeners.add(ended);
    void ended.finally(() => listeners.delete(ended));
    return listening;
  };
  return {
    ...queryable(pool),
    transaction: (work) => inTransaction(pool, log, work),
    listen: (channel, onNotify, signal) => track(startListener(connection, { channel, onNotify, signal }, log)),
    connections: () => ({
      inUse: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      most: settings.max,
    }),
    async close() {
      await Promise.all(listeners);
      await pool.end();
      // The pool only asks its connections to end. Whoever stops the server next would break those that have not yet.
      await Promise.race([Promise.all(connections), delay(CLOSING_PATIENCE, undefined, { ref: false })]);
    },
  };
}

export function clientConfig(config: DatabaseConfig, applicationName: string): HostClientConfig {
  return { ...targetOf(config), application_name: applicationName, types: valueParsers };
}

function targetOf(config: DatabaseConfig): HostClientConfig {
  if (typeof config !== "string") return { ...config };
  const { url, hosts } = parseDatabaseUrl(config) ?? { url: config, hosts: [] };
  return { connectionString: url, hosts };
}

type Timeouts = Required<Pick<DatabaseOptions, "statementTimeout" | "transactionTimeout" | "idleInTransactionTimeout">>;

/**
 * Times are written in UTC, which is the form that is read fastest, whatever the server's own setting is.
 * A transaction that hangs would stall every reader of the journal; PostgreSQL can end it by itself from 17 on.
 * And a statement whose client is gone must not go on, or wait for a lock, on nobody's behalf.
 * Sent here and not as the connection begins, where pgbouncer refuses what it does not know.
 */
async function setUpSession(
  client: pg.ClientBase,
  { statementTimeout, transactionTimeout, idleInTransactionTimeout }: Timeouts,
): Promise<void> {
  await client.query(
    `SELECT set_config('client_connection_check_interval', '2s', false), set_config('TimeZone', 'UTC', false),
            set_config('statement_timeout', $2, false), set_config('idle_in_transaction_session_timeout', $3, false),
            CASE WHEN current_setting('server_version_num')::int >= 170000
                 THEN set_config('transaction_timeout', $1, false) END`,
    [transactionTimeout, statementTimeout, idleInTransactionTimeout].map(String),
  );
}

const queryable = (on: pg.Pool | pg.ClientBase): Queryable => ({
  query: async <Row extends object>(statement: string | Statement, values?: readonly unknown[]) =>
    (await run<Row & pg.QueryResultRow>(on, statement, values)).rows,
  execute: async (statement, values) => (await run(on, statement, values)).rowCount ?? 0,
});

async function run<Row extends pg.QueryResultRow>(
  on: pg.Pool | pg.ClientBase,
  statement: string | Statement,
  values?: readonly unknown[],
): Promise<pg.QueryResult<Row>> {
  const {
    hot,
    text,
    values: own,
    ...given
  }: Statement = typeof statement === "string" ? { text: statement } : statement;
  const name = hot ? nameOf(text) : given.name;
  const bound = values ?? own;
  try {
    return await on.query<Row>({ text, ...(name !== undefined && { name }), ...(bound && { values: [...bound] }) });
  } catch (error) {
    throw on instanceof pg.Pool ? connectError(on, error) : databaseError(error);
  }
}

/** A pool whose connections are all in use times out with the words of a server that does not answer. */
function connectError({ totalCount, idleCount, options }: pg.Pool, error: unknown): unknown {
  const isFull = isConnectTimeout(error) && totalCount >= options.max && idleCount === 0;
  if (!isFull) return databaseError(error);
  const message = `all ${options.max} connections to the database are in use (database.pool_size), and none became free in time`;
  return new AppError("unavailable", message, { next: "call again" }, { cause: error });
}

const names = new Map<string, string>();

function nameOf(text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  const name = `hot-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
  names.set(text, name);
  return name;
}

async function inTransaction<T>(pool: pg.Pool, log: Log, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => Promise.reject(connectError(pool, error)));
  let fit = true;
  try {
    return await transactionOn(client, log, work, (isFit) => {
      fit = isFit;
    });
  } finally {
    client.release(!fit);
  }
}

async function transactionOn<T>(
  client: pg.ClientBase,
  log: Log,
  work: (tx: Transaction) => Promise<T>,
  rolledBack: (isFit: boolean) => void = () => {},
): Promise<T> {
  const lines: (() => void)[] = [];
  const channels = new Set<Channel>();
  try {
    await run(client, "BEGIN");
    const result = await work({
      insideTransaction: true,
      ...queryable(client),
      logWhenCommitted: (fields, message, level = "info") => void lines.push(() => log[level](fields, message)),
      notifyWhenCommitted: (channel) => void channels.add(channel),
    });
    await run(client, [...[...channels].map((channel) => `NOTIFY ${channel}`), "COMMIT"].join("; "));
    for (const write of lines) write();
    return result;
  } catch (error) {
    rolledBack(await rollBack(client, error));
    throw error;
  }
}

/** True when the connection is fit for use again. */
async function rollBack(client: pg.ClientBase, error: unknown): Promise<boolean> {
  // A server that takes no writes any more may have been demoted: another connection finds the one that was promoted.
  if (isConnectionFailure(error) || takesNoWrites(error)) return false;
  try {
    await client.query("ROLLBACK");
    return true;
  } catch {
    return false;
  }
}
