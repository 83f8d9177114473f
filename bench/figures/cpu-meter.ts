import type { BenchServer } from "../bench-server.ts";
import type { Measurement } from "../measurement.ts";

/** Milliseconds of processor time that one operation took. */
export interface CpuEach {
  readonly server: number;
  readonly database: number;
}

export interface CpuMeter {
  each(operations: number): CpuEach;
}

/** From now on: of this process, in which the server is, and of the database. */
export function startCpuMeter(server: BenchServer): CpuMeter {
  const [own, database] = [process.cpuUsage(), server.cpuSeconds()];
  return {
    each(operations) {
      const { user, system } = process.cpuUsage(own);
      return {
        server: (user + system) / 1_000 / operations,
        database: ((server.cpuSeconds() - database) * 1_000) / operations,
      };
    },
  };
}

/** What other work on the machine changes less than the time that passes: a regression shows here first. */
export const processorTime = (each: readonly CpuEach[]): Measurement[] => [
  {
    what: "  processor time of the server, each",
    values: each.map(({ server }) => server),
    unit: "ms",
    better: "lower",
  },
  {
    what: "  processor time of the database, each",
    values: each.map(({ database }) => database),
    unit: "ms",
    better: "lower",
  },
];
