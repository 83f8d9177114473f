import { join } from "node:path";
import { expect } from "vitest";
import { inDatabase, STOCK_LEASE } from "../../../src/engine/lease/lease.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { eventually } from "../eventually.ts";
import { openProcessBench, type ProcessBench } from "./process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "./server-process.ts";

/** What one test has to itself, also when it is tried again: a copy of the prepared database, and the servers on it. */
export interface KillSite {
  readonly database: TestDatabase;
  /** Has a server die at the fail point of what it is asked. Resolves once it is dead. */
  kill(failPoint: string, ask: (victim: ServerProcess) => Promise<unknown>): Promise<void>;
  /** The next server on the database of a dead one. */
  succeed(): Promise<ServerProcess>;
}

/** Whole servers that die by kill -9 in the middle of what they were asked, and those that carry on after them. */
export interface KilledServers {
  /** For what all tests share. */
  readonly bench: ProcessBench;
  /** What every test has a copy of. Whoever has filled it closes it. */
  readonly prepared: TestDatabase;
  readonly token: string;
  readonly keyFile: string;
  /** A server on the prepared database. */
  startOnPrepared(): Promise<ServerProcess>;
  /** Goes with the test, whatever is left of it. */
  openSite(onTestFinished: (close: () => Promise<void>) => void): Promise<KillSite>;
  close(): Promise<void>;
}

/** `settings` are those of every server, beside that it looks at devices only when it is asked something. */
export async function openKilledServers(settings: Readonly<Record<string, string>> = {}): Promise<KilledServers> {
  const shared = openProcessBench();
  const keyFile = join(shared.directory, "secret-key");
  const prepared = await createTestDatabase();
  const env = {
    MILLWRIGHT_SECRET_KEY_FILE: keyFile,
    MILLWRIGHT_MONITOR_INTERVAL: "1h",
    MILLWRIGHT_MONITOR_EVENTS: "false",
    ...settings,
  };
  const serve = (
    bench: ProcessBench,
    name: string,
    { url }: TestDatabase,
    more: Readonly<Record<string, string>> = {},
  ) => startServerProcess(bench, { command: "serve", name, databaseUrl: url, env: { ...env, ...more } });
  return {
    bench: shared,
    prepared,
    token: await adminToken(prepared),
    keyFile,
    startOnPrepared: () => serve(shared, "preparing", prepared),
    async openSite(onTestFinished) {
      const database = await createTestDatabase({ clone: prepared });
      const bench = openProcessBench();
      onTestFinished(async () => {
        await bench.close();
        await database.drop();
      });
      return {
        database,
        async kill(failPoint, ask) {
          const victim = await serve(bench, "victim", database, { MILLWRIGHT_FAILPOINT: failPoint });
          // The answer may or may not make it out before the end.
          await ask(victim).catch(() => undefined);
          await eventually(async () => victim.process.hasExited(), {
            what: `the server dies at ${failPoint}`,
            within: 60_000,
            seen: victim.process.transcript,
          });
          expect(await victim.process.exited).toEqual({ code: null, signal: "SIGKILL" });
        },
        succeed: () => serve(bench, "successor", database),
      };
    },
    async close() {
      await shared.close();
      await prepared.drop();
    },
  };
}

/** Stops it as its operator would; with it everything that it still has in hand comes to its end. */
export async function expectStop({ process }: ServerProcess): Promise<void> {
  process.signal("SIGTERM");
  expect(await process.exited).toEqual({ code: 0, signal: null });
}

/** As if the time had passed: their owner is dead, and makes no call any more. */
export async function letLeasesEnd({ db }: TestDatabase): Promise<void> {
  await db.execute(
    `update work set lease_until = lease_until - $1 * interval '1 ms', wake_at = wake_at - $1 * interval '1 ms'
      where lease_owner is not null`,
    [inDatabase(STOCK_LEASE)],
  );
}
