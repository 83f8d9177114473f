import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { type BenchServer, startBenchServer } from "./bench-server.ts";
import { measureConsole } from "./console/console.ts";
import { measureEvents } from "./events.ts";
import { measureJournalSeals } from "./journal/journal-seals.ts";
import { measureKill } from "./kill.ts";
import { measureMachines } from "./machines.ts";
import { type Measurement, median, printTable, verdictOf } from "./measurement.ts";
import { measureFleetNodes } from "./nodes/nodes-at-rest.ts";
import { measureFleetOnboardings } from "./nodes/onboardings-at-once.ts";
import { measureRacks } from "./racks.ts";
import { measureRacksOverRedfish } from "./racks-over-redfish.ts";
import { measureReports } from "./reports.ts";
import { measureRequests } from "./requests.ts";
import { measureRunLogs } from "./run-logs.ts";
import { measureRuns } from "./runs.ts";
import { measureTransitions } from "./transitions.ts";

type Measure = (
  server: BenchServer,
  options: { quick: boolean; seconds?: number | undefined; racks?: number | undefined },
) => Promise<Measurement[]>;

const MEASURES: Readonly<Record<string, Measure>> = {
  transitions: measureTransitions,
  requests: measureRequests,
  events: measureEvents,
  runs: measureRuns,
  machines: measureMachines,
  "run-logs": measureRunLogs,
  kill: measureKill,
  reports: measureReports,
  racks: measureRacks,
  "racks-over-redfish": measureRacksOverRedfish,
  "journal-seals": measureJournalSeals,
  console: measureConsole,
  "fleet-nodes": measureFleetNodes,
  "fleet-onboardings": measureFleetOnboardings,
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "string" },
    seconds: { type: "string" },
    racks: { type: "string" },
  },
});
const names = positionals.length > 0 ? positionals : Object.keys(MEASURES);
const unknown = names.filter((name) => MEASURES[name] === undefined);
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(", ")}; there are: ${Object.keys(MEASURES).join(", ")}`);
  process.exit(2);
}

/** For those that last a given time, and those that have a size; the others have repetitions. */
const [seconds, racks] = [amount("seconds"), amount("racks")];

const server = await startBenchServer();
const measurements: Measurement[] = [];
try {
  for (const name of names)
    measurements.push(...((await MEASURES[name]?.(server, { quick: options.quick, seconds, racks })) ?? []));
} finally {
  await server.stop();
}

console.log(`\n${availableParallelism()} cores, Node ${process.version}, embedded PostgreSQL with durable commits\n`);
printTable(measurements);
if (options.json !== undefined) {
  const results = measurements.map((one) => ({ ...one, median: median(one.values), verdict: verdictOf(one) }));
  writeFileSync(options.json, `${JSON.stringify({ cores: availableParallelism(), results }, null, 2)}\n`);
}
process.exitCode = measurements.some((one) => verdictOf(one) === "below half") ? 1 : 0;

function amount(flag: "seconds" | "racks"): number | undefined {
  const given = options[flag];
  if (given === undefined) return undefined;
  if (Number(given) > 0) return Number(given);
  console.error(`--${flag}: a number above 0 is wanted`);
  process.exit(2);
}
