import type { BenchServer } from "./bench-server.ts";
import { type CallsMade, type GrpcLoad, startGrpcLoad } from "./clients/grpc-load.ts";
import { startEchoServer } from "./limits/echo-server.ts";
import { createMachineFleet, type MachineFleet } from "./machine-fleet.ts";
import { type Measurement, median, percentile } from "./measurement.ts";
import { startServeProcess } from "./serve-process.ts";

const TARGET_RATIO = 0.6;
const TARGET_LIST_P99 = 50;
const TARGET_MEMORY_MB = 400;
const CALLERS = 32;
const CHUNK = 10_000;

const MACHINES = 100_000;
/** Each finds 1,000 machines: all that there are of a label, the same with a phase, and the first page of a quarter of the fleet. */
const FILTERS = [
  'labels.pool = "p7"',
  'phase = "FACTORY_READY" AND labels.pool = "p7"',
  'location = "hall-3"',
] as const;

/** A server as it is started in production, with 100,000 machines on record; callers in a process of their own. */
export async function measureMachines(server: BenchServer, { quick }: { quick: boolean }): Promise<Measurement[]> {
  const database = await server.freshDatabase();
  const fleet = createMachineFleet(database.db);
  try {
    for (let first = 1; first <= MACHINES; first += CHUNK) await fleet.addMachines(first, CHUNK);
    await database.db.query("checkpoint");
    return await measureOn(database.config, fleet, { repetitions: quick ? 1 : 3, quick });
  } finally {
    fleet.close();
    await database.drop();
  }
}

async function measureOn(
  config: Parameters<typeof startServeProcess>[0],
  fleet: MachineFleet,
  { repetitions, quick }: { readonly repetitions: number; readonly quick: boolean },
): Promise<Measurement[]> {
  const echo = await startEchoServer();
  const serving = await startServeProcess(config, { keyFile: fleet.keyFile });
  const [onEcho, onServer] = [startGrpcLoad(echo.address), startGrpcLoad(serving.grpcAddress)];
  try {
    const ids = Array.from({ length: 1_000 }, (_, index) => `m-${1 + ((index * 97) % MACHINES)}`);
    const lasting = quick ? 1_500 : 4_000;
    const rates: { readonly echo: number; readonly get: number }[] = [];
    // Until Node has compiled what it needs.
    for (const load of [onEcho, onServer]) await getMachines(load, ids, lasting / 2);
    await listLatencies(onServer, 10);
    for (let repetition = 0; repetition < repetitions; repetition += 1) {
      rates.push({
        echo: rateOf(await getMachines(onEcho, ids, lasting)),
        get: rateOf(await getMachines(onServer, ids, lasting)),
      });
    }
    const lists: number[][] = [];
    for (let repetition = 0; repetition < repetitions; repetition += 1) {
      lists.push(await listLatencies(onServer, quick ? 30 : 100));
    }
    const echoRate = median(rates.map((one) => one.echo));
    const fleetSize = MACHINES.toLocaleString("en-US");
    return [
      {
        what: `GetMachine, ${fleetSize} machines, ${CALLERS} at once`,
        values: rates.map((one) => one.get),
        unit: "/s",
        limit: { what: "a bare Connect echo", value: echoRate },
        better: "higher",
      },
      {
        what: "  against a bare Connect echo",
        values: rates.map((one) => one.get / one.echo),
        unit: "×",
        target: TARGET_RATIO,
        better: "higher",
      },
      {
        what: `ListMachines, 1,000 of ${fleetSize} by a filter, p50`,
        values: lists.map((some) => percentile(some, 0.5)),
        unit: "ms",
        better: "lower",
      },
      {
        what: `ListMachines, 1,000 of ${fleetSize} by a filter, p99`,
        values: lists.map((some) => percentile(some, 0.99)),
        unit: "ms",
        target: TARGET_LIST_P99,
        better: "lower",
      },
      {
        what: `memory of the server after all that, ${fleetSize} machines`,
        values: [serving.residentMb()],
        unit: "MB",
        target: TARGET_MEMORY_MB,
        better: "lower",
      },
    ];
  } finally {
    await Promise.all([onEcho.stop(), onServer.stop()]);
    await serving.stop();
    await echo.stop();
  }
}

const getMachines = (load: GrpcLoad, ids: readonly string[], milliseconds: number): Promise<CallsMade> =>
  load.make({ method: "getMachine", ids, atOnce: CALLERS, milliseconds });

const rateOf = ({ latencies, took }: CallsMade): number => (latencies.length * 1_000) / took;

async function listLatencies(load: GrpcLoad, times: number): Promise<number[]> {
  const latencies: number[] = [];
  for (const filter of FILTERS) {
    const made = await load.make({ method: "listMachines", ids: [], filter, atOnce: 1, times });
    latencies.push(...made.latencies);
  }
  return latencies;
}
