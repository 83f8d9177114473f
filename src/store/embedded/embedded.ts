import { accessSync, chmodSync, constants, mkdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import pg from "pg";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { type Account, accountForDatabase, unreachableDirectory } from "./account.ts";
import { type BinaryPackage, findBinaryPackage, prepareBinaries } from "./binaries.ts";
import { acquireOwnerLock } from "./owner-lock.ts";
import {
  DATABASE_USER,
  ensureCluster,
  findPostmaster,
  type Postmaster,
  startPostmaster,
  stopPostmaster,
  waitUntilReady,
} from "./postmaster.ts";
import { isRunning, waitForExit } from "./process.ts";
import { type Settings, serverSettings } from "./settings.ts";
import { chooseSocketDirectory, ensurePrivateDirectory, removeStaleSocket, SOCKET_PORT } from "./socket.ts";
import { supervise } from "./supervisor.ts";

const DATABASE = "millwright";
const DYING_PATIENCE_MS = 2_000;

export interface EmbeddedConnection {
  /** The directory of the Unix socket; there is no TCP. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

export interface Embedded {
  readonly pgConfig: EmbeddedConnection;
  readonly url: string;
  /** The server was running already: its last owner was killed and left it behind. */
  readonly adopted: boolean;
  /** Of the server, which is brought up again under another when it dies. */
  readonly pid: number;
  /** Fast shutdown; resolves when the server is gone and the data directory is free for another owner. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly log: Log;
  readonly signal?: AbortSignal;
  /** On top of our own, for a server that is started rather than adopted. */
  readonly settings?: Settings;
  /** Where the server's binaries are; by default in the installed package for this platform. */
  readonly binaryPackage?: BinaryPackage;
}

/**
 * Our own private PostgreSQL in the data directory.
 *
 * It belongs to one Millwright at a time, and survives its owner's death: the next owner takes over the running server
 * with its warm cache, and nothing has to be recovered.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { dataDir, account } = prepareDataDirectory(options.dataDir);
  const lock = await acquireOwnerLock(dataDir);
  try {
    const bringUp = async () => {
      const first = await adoptOrStart({ ...options, dataDir }, account);
      return handle({ ...options, dataDir }, account, { first, release: lock.release });
    };
    const running = findPostmaster(clusterOf(dataDir));
    return await bringUp().catch(async (error: unknown) => {
      // A server that was killed a moment ago may still look alive when it is taken over; once it is gone, ours begins.
      if (running === undefined || !(await waitForExit(running.process, DYING_PATIENCE_MS))) throw error;
      return bringUp();
    });
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface Started {
  readonly postmaster: Postmaster;
  readonly adopted: boolean;
}

async function handle(
  options: EmbeddedOptions,
  account: Account | undefined,
  held: { first: Started; release(): void },
): Promise<Embedded> {
  const { dataDir, log } = options;
  const { socketDir } = held.first.postmaster;
  let { process } = held.first.postmaster;
  const pgConfig = { host: socketDir, port: SOCKET_PORT, user: DATABASE_USER, database: DATABASE };
  await ensureDatabase(pgConfig).catch(async (error: unknown) => {
    if (!held.first.adopted) await stopPostmaster(process);
    throw error;
  });
  const bringUp = async (signal: AbortSignal) => {
    ({ process } = (await adoptOrStart({ ...options, signal }, account, socketDir)).postmaster);
  };
  const endSupervision = supervise({ isUp: () => isRunning(process), bringUp }, log);
  const stop = async () => {
    await endSupervision();
    await stopPostmaster(process);
    if (!socketDir.startsWith(`${dataDir}/`)) rmSync(socketDir, { recursive: true, force: true });
    held.release();
  };
  let stopping: Promise<void> | undefined;
  return {
    pgConfig,
    url: `postgresql://${DATABASE_USER}@/${DATABASE}?host=${encodeURIComponent(socketDir)}&port=${SOCKET_PORT}`,
    adopted: held.first.adopted,
    get pid() {
      return process.pid;
    },
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

async function adoptOrStart(
  options: EmbeddedOptions,
  account: Account | undefined,
  keptSocketDir?: string,
): Promise<Started> {
  const { dataDir, log, signal } = options;
  const cluster = clusterOf(dataDir);
  const outputFile = join(dataDir, "postgres-start.log");
  const running = findPostmaster(cluster);
  if (running !== undefined) {
    await waitUntilReady(running.process, { cluster, outputFile }, signal);
    log.info({ pid: running.process.pid, dataDir }, "took over the running database that the last owner left behind");
    return { postmaster: running, adopted: true };
  }
  const from = options.binaryPackage ?? findBinaryPackage();
  const binaries = await prepareBinaries({ from, dataDir, account, log });
  const socketDir = keptSocketDir ?? chooseSocketDirectory(dataDir, account);
  ensurePrivateDirectory(clusterHome(dataDir), account);
  ensurePrivateDirectory(socketDir, account);
  removeStaleSocket(socketDir);
  const created = await ensureCluster({ cluster, binaries, account, outputFile });
  const settings = { ...serverSettings(socketDir), ...options.settings };
  const postmaster = await startPostmaster({
    cluster,
    binaries,
    account,
    outputFile,
    socketDir,
    settings,
    log,
    ...(signal && { signal }),
  });
  log.info({ pid: postmaster.process.pid, dataDir, created }, "the embedded database is up");
  return { postmaster, adopted: false };
}

/** Owned by the database's user; the data directory around it stays ours. */
const clusterHome = (dataDir: string) => join(dataDir, "postgres");
const clusterOf = (dataDir: string) => join(clusterHome(dataDir), "data");

function prepareDataDirectory(wanted: string): { dataDir: string; account: Account | undefined } {
  const path = resolve(wanted);
  try {
    if (mkdirSync(path, { recursive: true, mode: 0o711 }) !== undefined && process.getuid?.() !== 0)
      chmodSync(path, 0o700);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new AppError(
      "failed_precondition",
      `the data directory ${path} cannot be made or written: ${messageOf(error)}`,
      {
        next: "set MILLWRIGHT_DATA_DIR to a directory that this user may write",
      },
    );
  }
  const dataDir = realpathSync(path);
  const account = accountForDatabase(clusterHome(dataDir));
  if (account !== undefined) letThrough(dataDir, account);
  return { dataDir, account };
}

/** The data directory is ours to open for passage, what is above it is not: a home stays as closed as its owner made it. */
function letThrough(dataDir: string, account: Account): void {
  chmodSync(dataDir, (statSync(dataDir).mode & 0o777) | 0o011);
  const closed = unreachableDirectory(dataDir, account);
  if (closed === undefined) return;
  throw new AppError(
    "failed_precondition",
    `the data directory ${dataDir} cannot be used as root: PostgreSQL runs as user ${account.name}, who may not pass through ${closed}`,
    { next: `set MILLWRIGHT_DATA_DIR to a directory such as /var/lib/millwright, or chmod o+x ${closed}` },
  );
}

async function ensureDatabase(connection: EmbeddedConnection): Promise<void> {
  const client = new pg.Client({ ...connection, database: "postgres", application_name: "millwright-start" });
  await client.connect();
  try {
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [connection.database]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${pg.escapeIdentifier(connection.database)}`);
  } finally {
    await client.end();
  }
}
