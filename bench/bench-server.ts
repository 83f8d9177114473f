import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../src/kernel/log.ts";
import { type Embedded, startEmbedded } from "../src/store/embedded/embedded.ts";
import { type Database, type DatabaseConfig, openDatabase } from "../src/store/postgres/database.ts";
import { migrate } from "../src/store/postgres/migrate.ts";
import { cpuSecondsOfAll } from "./figures/process-figures.ts";

/** What is measured on: an embedded server as it runs in production, with its commits durable. */
export interface BenchServer {
  /** A migrated database that nothing has been written to, for one measurement. */
  freshDatabase(): Promise<BenchDatabase>;
  /** Processor time of the database server and of all its connections. */
  cpuSeconds(): number;
  stop(): Promise<void>;
}

export interface BenchDatabase {
  readonly db: Database;
  readonly config: Exclude<DatabaseConfig, string>;
  drop(): Promise<void>;
}

/** A measurement during which something went wrong is not one: warnings go to the terminal. */
export const benchLog: Log = {
  debug() {},
  info() {},
  warn: (fields, message) => console.warn("warn:", message, fields),
  error: (fields, message) => console.error("error:", message, fields),
};

export async function startBenchServer(): Promise<BenchServer> {
  const dataDir = mkdtempSync(join(tmpdir(), "millwright-bench-"));
  const server = await startEmbedded({ dataDir, log: benchLog }).catch((error: unknown) => {
    rmSync(dataDir, { recursive: true, force: true });
    throw error;
  });
  let count = 0;
  return {
    cpuSeconds: () => cpuSecondsOfAll(server.pid),
    freshDatabase() {
      count += 1;
      return makeDatabase(server, `bench_${count}`);
    },
    async stop() {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function makeDatabase(server: Embedded, name: string): Promise<BenchDatabase> {
  const admin = openDatabase(server.pgConfig, { log: benchLog, applicationName: "bench-admin", max: 1 });
  await admin.query(`create database ${name}`);
  const config = { ...server.pgConfig, database: name };
  await migrate(config, { log: benchLog });
  const db = openDatabase(config, { log: benchLog, applicationName: "bench" });
  // What was written to make the database must not be flushed during the measurement.
  await admin.query("checkpoint");
  return {
    db,
    config,
    async drop() {
      await db.close();
      while ((await admin.query("select from pg_stat_activity where datname = $1", [name])).length > 0) await pause(10);
      await admin.query(`drop database ${name}`);
      await admin.close();
    },
  };
}
