import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { DatabaseHost } from "../../kernel/places/database-url.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";

export interface HostClientConfig extends pg.ClientConfig {
  /** Absent or empty: the one host of the configuration, whatever it is. */
  readonly hosts?: readonly DatabaseHost[];
}

/** A host that does not answer by then is not the one. */
const PATIENCE = seconds(3);
/** Connections that are made together ask once. */
const GOOD_FOR: Duration = seconds(1);

/** A connection to whichever of the hosts takes writes when it is made: after a failover, that is another one. */
export class HostClient extends pg.Client {
  readonly #config: HostClientConfig;

  constructor(config: HostClientConfig = {}) {
    super(config);
    this.#config = config;
    // The server may end a connection before its user listens, in the very packet that says it is ready; unheard, that would end the process.
    this.on("error", () => {});
  }

  override connect(): Promise<this>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<this> | undefined {
    const { hosts = [] } = this.#config;
    // Who is not there any more is not the one: whoever asks next looks again.
    const failed = (error: unknown) => {
      found.delete(hosts);
      return error as Error;
    };
    if (callback === undefined)
      return this.#aim(hosts)
        .then(() => super.connect() as Promise<this>)
        .catch((error: unknown) => Promise.reject(failed(error)));
    if (hosts.length === 0) super.connect(callback);
    else this.#aim(hosts).then(() => super.connect((error: Error) => callback(error && failed(error))), callback);
  }

  async #aim(hosts: readonly DatabaseHost[]): Promise<void> {
    if (hosts.length > 0) Object.assign(this, await findPrimary(hosts, this.#config));
  }
}

const found = new WeakMap<readonly DatabaseHost[], Promise<DatabaseHost>>();

function findPrimary(hosts: readonly DatabaseHost[], config: HostClientConfig): Promise<DatabaseHost> {
  const known = found.get(hosts);
  if (known) return known;
  const finding = Promise.any(hosts.map((host) => proveWritable(host, config))).catch(({ errors }: AggregateError) => {
    const why = hosts.map(({ host, port }, at) => `${host}:${port}: ${messageOf(errors[at])}`).join("; ");
    throw new AppError("unavailable", `no host of database.url takes writes: ${why}`, {}, { cause: errors[0] });
  });
  found.set(hosts, finding);
  const forget = () => void found.delete(hosts);
  finding.then(() => delay(GOOD_FOR, undefined, { ref: false })).then(forget, forget);
  return finding;
}

async function proveWritable(at: DatabaseHost, config: HostClientConfig): Promise<DatabaseHost> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: PATIENCE, query_timeout: PATIENCE });
  client.on("error", () => {}); // its statement fails as well
  Object.assign(client, at); // a URL would win over what is beside it
  try {
    await client.connect();
    await requireWritable(client);
    return at;
  } finally {
    await client.end().catch(() => {});
  }
}

/** @throws Error with PostgreSQL's own code for a server that takes no writes. */
export async function requireWritable(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ standby: boolean; readonly: boolean }>(
    "select pg_is_in_recovery() as standby, current_setting('transaction_read_only')::bool as readonly",
  );
  const { standby = false, readonly = false } = rows[0] ?? {};
  if (standby || readonly) throw Object.assign(new Error(standby ? "is a standby" : "is read-only"), { code: "25006" });
}
