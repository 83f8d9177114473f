import { join } from "node:path";
import { expect } from "vitest";
import { LEASE_IN_DATABASE } from "../../src/engine/lease.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { eventually } from "./eventually.ts";
import { openProcessBench, type ProcessBench } from "./process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "./server-process.ts";

export interface Kill {
  /** A copy of the prepared database, for this server and its successor. */
  readonly database: TestDatabase;
  readonly failPoint: string;
  /** Tells the servers of one test from those of another. */
  readonly index: number;
  /** What the server dies of. */
  readonly ask: (victim: ServerProcess) => Promise<unknown>;
}

/** Whole servers that die by kill -9 in the middle of what they were asked, and those that carry on after them. */
export interface KilledServers {
  readonly bench: ProcessBench;
  /** What every test has a copy of. Whoever has filled it closes it. */
  readonly prepared: TestDatabase;
  readonly token: string;
  readonly keyFile: string;
  start(name: string, database: TestDatabase): Promise<ServerProcess>;
  /** Resolves once the server is dead. */
  kill(kill: Kill): Promise<void>;
  /** The next server on the database of a dead one. */
  succeed(kill: Pick<Kill, "database" | "index">): Promise<ServerProcess>;
  close(): Promise<void>;
}

/** `settings` are those of every server, beside that it looks at devices only when it is asked something. */
export async function openKilledServers(settings: Readonly<Record<string, string>> = {}): Promise<KilledServers> {
  const bench = openProcessBench();
  const keyFile = join(bench.directory, "secret-key");
  const prepared = await createTestDatabase();
  const env = { MILLWRIGHT_SECRET_KEY_FILE: keyFile, MILLWRIGHT_MONITOR_INTERVAL: "1h", ...settings };
  const serve = (name: string, { url }: TestDatabase, more: Readonly<Record<string, string>> = {}) =>
    startServerProcess(bench, { command: "serve", name, databaseUrl: url, env: { ...env, ...more } });
  return {
    bench,
    prepared,
    token: await adminToken(prepared),
    keyFile,
    start: (name, database) => serve(name, database),
    async kill({ database, failPoint, index, ask }) {
      const victim = await serve(`victim-${index}`, database, { MILLWRIGHT_FAILPOINT: failPoint });
      // The answer may or may not make it out before the end.
      await ask(victim).catch(() => undefined);
      await eventually(async () => victim.process.hasExited(), {
        what: `the server dies at ${failPoint}`,
        within: 60_000,
        seen: victim.process.transcript,
      });
      expect(await victim.process.exited).toEqual({ code: null, signal: "SIGKILL" });
    },
    succeed: ({ database, index }) => serve(`successor-${index}`, database),
    async close() {
      await bench.close();
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
    [LEASE_IN_DATABASE],
  );
}
