import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { silentLog } from "../../src/kernel/log.ts";
import { startEmbedded } from "../../src/store/embedded/embedded.ts";
import { refuseIfOwned } from "../../src/store/embedded/owner-lock.ts";
import { findPostmaster, stopPostmaster } from "../../src/store/embedded/postmaster.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { databaseUrl } from "./database-url.ts";

const DIRECTORY_PREFIX = "millwright-test-";

export interface TestServer {
  /** Of a database on the server from which others can be made. */
  readonly adminUrl: string;
  /** The database with all migrations, to be cloned. */
  readonly template: string;
}

declare module "vitest" {
  interface ProvidedContext {
    testServer: TestServer;
  }
}

interface Shared {
  users: number;
  readonly server: Promise<TestServer & { stop(): Promise<void> }>;
}

/** Each project of one run loads this file anew; what they share hangs on the process. */
const shared = globalThis as typeof globalThis & { millwrightTestServer?: Shared };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared.millwrightTestServer ??= { users: 0, server: startServer() };
  const ours = shared.millwrightTestServer;
  ours.users += 1;
  const { adminUrl, template, stop } = await ours.server;
  project.provide("testServer", { adminUrl, template });
  return async () => {
    ours.users -= 1;
    if (ours.users > 0) return;
    delete shared.millwrightTestServer;
    await stop();
  };
}

async function startServer() {
  const template = `millwright_test_${process.pid}_${Date.now().toString(36)}`;
  const { adminUrl, stop } = await openServer();
  try {
    await administrate(adminUrl, (admin) => admin.query(`CREATE DATABASE ${template}`));
    await migrate(databaseUrl(adminUrl, template), { log: silentLog });
  } catch (error) {
    await stop();
    throw error;
  }
  const cleanUp = async () => {
    await administrate(adminUrl, (admin) => dropAll(admin, template));
    await stop();
  };
  return { adminUrl, template, stop: cleanUp };
}

async function openServer(): Promise<{ adminUrl: string; stop(): Promise<void> }> {
  const given = process.env.MILLWRIGHT_TEST_DATABASE_URL;
  if (given !== undefined && given !== "") return { adminUrl: given, stop: async () => {} };
  await sweepDeadRuns();
  const dataDir = await mkdtemp(join(tmpdir(), DIRECTORY_PREFIX));
  const embedded = await startEmbedded({
    dataDir,
    log: silentLog,
    // Nothing here must survive a crash, so nothing waits for the disk.
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" },
  });
  const stop = async () => {
    await embedded.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  return { adminUrl: embedded.url, stop };
}

/** The clones are named after their template, and go with it. */
async function dropAll(admin: pg.Client, template: string): Promise<void> {
  const { rows } = await admin.query<{ datname: string }>(
    "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
    [template],
  );
  for (const { datname } of rows)
    await admin.query(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(datname)} WITH (FORCE)`);
}

async function administrate(url: string, work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.end();
  }
}

/** Whether the directory was owned once, and its owner is gone without having let go. */
function hasDeadOwner(dataDir: string): boolean {
  if (!existsSync(join(dataDir, "owner.lock"))) return false;
  try {
    refuseIfOwned(dataDir);
    return true;
  } catch {
    return false;
  }
}

/** A run that was killed left its server and its directory behind. */
async function sweepDeadRuns(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const dataDir = join(tmpdir(), name);
    if (!name.startsWith(DIRECTORY_PREFIX) || !hasDeadOwner(dataDir)) continue;
    const left = findPostmaster(join(dataDir, "postgres", "data"));
    if (left !== undefined) await stopPostmaster(left.process);
    await rm(dataDir, { recursive: true, force: true }).catch(() => {}); // another user's, or another run swept it first
  }
}
