import { setTimeout as pause } from "node:timers/promises";
import { createSeededValues } from "../simulator/seeded-values.ts";
import { firmwareRecords } from "../simulator/site/firmware.ts";
import { siteFileOf } from "../simulator/site/site-file.ts";
import { loadSite, type Site } from "../simulator/site.ts";
import type { BenchDatabase, BenchServer } from "./bench-server.ts";
import { createFleet } from "./fleet.ts";
import { bareNotify } from "./limits/bare-notify.ts";
import { oneTransactionEach } from "./limits/one-transaction-each.ts";
import { type Measurement, percentile } from "./measurement.ts";
import { applySite, putFirmware, serveImages } from "./racks/put-on-record.ts";
import { type RackProcess, startRackProcess } from "./racks/rack-process.ts";
import { requestLatencies } from "./racks/requests.ts";

const RACKS = 250;
const TARGET_SECONDS = 600;
const TARGET_MEMORY_MB = 1_024;

/** A site of racks, from nothing to all of them Ready, with devices that answer at once; then the same site at rest. */
export async function measureRacks(
  server: BenchServer,
  { quick, racks = quick ? 10 : RACKS }: { quick: boolean; racks?: number | undefined },
): Promise<Measurement[]> {
  const database = await server.freshDatabase();
  // The last tray of each rack has old firmware: one flash a rack.
  const words = `racks=${racks},spare=1`;
  const site = loadSite(words, createSeededValues(1));
  const images = await serveImages();
  const serving = await startRackProcess(database.config, { site: words });
  try {
    await putFirmware(serving.grpcAddress, firmwareRecords(site, images.url));
    const before = { cpu: serving.cpuSeconds(), database: server.cpuSeconds(), statements: await serving.statements() };
    const startedAt = performance.now();
    const applied = await applySite(serving.httpUrl, siteFileOf(site, ACCESS));
    await untilReady(database, site);
    const took = (performance.now() - startedAt) / 1_000;
    const statements = (await serving.statements()) - before.statements;
    const written = await countWritten(database);
    const cpu = { server: serving.cpuSeconds() - before.cpu, database: server.cpuSeconds() - before.database };
    const rest = await measureRest(server, serving, quick ? 10 : 30);
    const notified = await bareNotify(database.db, quick ? 100 : 400);
    const requests = await requestLatencies(database, serving, site, {
      most: quick ? 20 : 200,
      milliseconds: quick ? 20_000 : 120_000,
    });
    const bare = await bareRate(server);
    const [rackCount, devices] = [racks.toLocaleString("en-US"), deviceCount(site).toLocaleString("en-US")];
    return [
      {
        what: `${rackCount} racks, ${devices} devices: site apply to all Ready`,
        values: [took],
        unit: "s",
        limit: { what: `one transaction for each of ${written.journal} changes`, value: written.journal / bare },
        ...(racks >= RACKS && { target: TARGET_SECONDS }),
        better: "lower",
      },
      { what: "  of which site apply", values: [applied / 1_000], unit: "s", better: "lower" },
      { what: "  processor time of the server", values: [cpu.server], unit: "s", better: "lower" },
      { what: "  processor time of the database", values: [cpu.database], unit: "s", better: "lower" },
      {
        what: "  memory of the server at its peak",
        values: [serving.peakMb()],
        unit: "MB",
        target: TARGET_MEMORY_MB,
        better: "lower",
      },
      { what: "  size of the database", values: [written.megabytes], unit: "MB", better: "lower" },
      { what: "  entries of the journal, for each rack", values: [written.journal / racks], unit: "", better: "lower" },
      { what: "  statements, for each rack", values: [statements / racks], unit: "", better: "lower" },
      {
        what: `maintenance of a rack → first device commanded, the others at rest, ${requests.length} requests, p50`,
        values: [percentile(requests, 0.5)],
        unit: "ms",
        limit: { what: "commit → NOTIFY heard", value: notified.p50 },
        better: "lower",
      },
      {
        what: "  p99",
        values: [percentile(requests, 0.99)],
        unit: "ms",
        limit: { what: "commit → NOTIFY heard", value: notified.p99 },
        better: "lower",
      },
      {
        what: `${rackCount} racks at rest: processors taken by the server`,
        values: [rest.server],
        unit: "",
        better: "lower",
      },
      { what: "  processors taken by the database", values: [rest.database], unit: "", better: "lower" },
      { what: "  statements", values: [rest.statements], unit: "/s", better: "lower" },
    ];
  } finally {
    await serving.stop();
    await images.stop();
    await database.drop();
  }
}

/** Nobody signs in to instant devices. */
const ACCESS = {
  redfishPort: 443,
  sshPort: 22,
  ssh: { username: "", privateKey: "" },
  jump: { endpoint: "", username: "", hostKey: "" },
};

const deviceCount = ({ machines, switches, shelves }: Site): number =>
  machines.length + switches.length + shelves.length;

const PATIENCE_MS = 1_800_000;

async function untilReady({ db }: BenchDatabase, { racks }: Site): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  let shownAt = performance.now();
  for (;;) {
    const rows = await db.query<{ state: string; count: number }>(
      "select state, count(*)::int as count from racks group by state",
    );
    const counts = new Map(rows.map(({ state, count }) => [state, count]));
    if (counts.get("ready") === racks.length) return;
    const said = rows.map(({ state, count }) => `${count} ${state}`).join(", ");
    if (counts.has("error")) throw new Error(`racks have failed: ${said}; ${await firstError(db)}`);
    if (performance.now() > deadline) throw new Error(`the racks do not become ready: ${said}`);
    if (performance.now() - shownAt > 10_000) {
      shownAt = performance.now();
      console.log(`  racks: ${said}`);
    }
    await pause(200);
  }
}

async function firstError(db: BenchDatabase["db"]): Promise<string> {
  const [row] = await db.query<{ id: string; cause: string }>(
    "select id, state_data ->> 'cause' as cause from racks where state = 'error' limit 1",
  );
  return `${row?.id}: ${row?.cause}`;
}

async function countWritten({ db }: BenchDatabase): Promise<{ readonly journal: number; readonly megabytes: number }> {
  const [row] = await db.query<{ journal: number; bytes: number }>(
    "select (select count(*)::int from journal) as journal, pg_database_size(current_database())::float8 as bytes",
  );
  return { journal: row?.journal ?? 0, megabytes: (row?.bytes ?? 0) / 1_048_576 };
}

interface AtRest {
  /** Processors, on average. */
  readonly server: number;
  readonly database: number;
  readonly statements: number;
}

async function measureRest(server: BenchServer, serving: RackProcess, seconds: number): Promise<AtRest> {
  await pause(5_000); // what became ready last is looked at once
  const figures = async () => ({
    at: performance.now(),
    server: serving.cpuSeconds(),
    database: server.cpuSeconds(),
    statements: await serving.statements(),
  });
  const before = await figures();
  await pause(seconds * 1_000);
  const after = await figures();
  const lasted = (after.at - before.at) / 1_000;
  return {
    server: (after.server - before.server) / lasted,
    database: (after.database - before.database) / lasted,
    statements: (after.statements - before.statements) / lasted,
  };
}

async function bareRate(server: BenchServer): Promise<number> {
  const database = await server.freshDatabase();
  const fleet = createFleet(database.db);
  try {
    await fleet.addShelves(2_000);
    return await oneTransactionEach(database, 1_000);
  } finally {
    fleet.close();
    await database.drop();
  }
}
