import { createTestDatabase, type TestDatabase } from "./database.ts";
import { eventually } from "./eventually.ts";
import { openProcessBench, type ProcessBench } from "./processes/process-bench.ts";
import { devTokenOf, type ServerProcess, startServerProcess } from "./processes/server-process.ts";
import { controlSimulator, type SimulatorControl } from "./processes/simulator-process.ts";
import { untilShelves } from "./shelf-records.ts";

/** A whole `millwright dev` on a database of the test server, with one simulated rack and every shelf of it ready. */
export interface DevSite {
  readonly bench: ProcessBench;
  readonly database: TestDatabase;
  readonly server: ServerProcess;
  readonly simulator: SimulatorControl;
  readonly token: string;
  /** In the order of their ids. */
  readonly shelfIds: readonly string[];
  close(): Promise<void>;
}

async function racksAtWork({ db }: TestDatabase): Promise<number> {
  const states = await db.query<{ state: string }>("select state from racks");
  return states.filter(({ state }) => state !== "ready").length;
}

export async function startDevSite(env: Readonly<Record<string, string>> = {}): Promise<DevSite> {
  const bench = openProcessBench();
  const database = await createTestDatabase();
  const close = async () => {
    await bench.close();
    await database.drop();
  };
  try {
    const server = await startServerProcess(bench, {
      command: "dev",
      databaseUrl: database.url,
      env: { MILLWRIGHT_SIM_SITE: "racks=1", MILLWRIGHT_SIM_SPEED: "100", ...env },
    });
    const { transcript, stdout } = server.process;
    const simulator = controlSimulator(/simulator control\s+(\S+)/.exec(stdout())?.[1] ?? "");
    const { length } = await simulator.devices();
    const shelves = await untilShelves(
      database,
      (all) => all.length === length && all.every(({ state }) => state.name === "ready"),
      { what: `all ${length} shelves are ready`, transcript },
    );
    // A rack that comes up works on its devices: what a test asks of one would wait for that.
    await eventually(async () => (await racksAtWork(database)) === 0, {
      what: "all racks are ready",
      within: 60_000,
      seen: transcript,
    });
    const shelfIds = shelves.map(({ id }) => id);
    return { bench, database, server, simulator, token: devTokenOf(server), shelfIds, close };
  } catch (error) {
    await close();
    throw error;
  }
}
