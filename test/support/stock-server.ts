import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../src/kernel/log.ts";
import { startEmbedded } from "../../src/store/embedded/embedded.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";

/** What PostgreSQL has unless somebody sets it: the table of locks is for 6,400 of them, and has room for about twice as many. */
const STOCK = { max_locks_per_transaction: "64", max_connections: "100" };

/** A PostgreSQL of its own, with stock settings. */
export interface StockServer {
  readonly db: Database;
  readonly url: string;
  readonly directory: string;
  stop(): Promise<void>;
}

export async function startStockServer(): Promise<StockServer> {
  const directory = await mkdtemp(join(tmpdir(), "millwright-locks-"));
  const server = await startEmbedded({ dataDir: directory, log: silentLog, settings: { ...STOCK, fsync: "off" } });
  await migrate(server.url, { log: silentLog });
  const db = openDatabase(server.url, { log: silentLog, applicationName: "millwright-test" });
  return {
    db,
    url: server.url,
    directory,
    async stop() {
      await db.close();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
