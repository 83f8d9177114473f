import { setTimeout as pause } from "node:timers/promises";
import type { FirmwareRecord } from "../../simulator/site/firmware.ts";
import type { BenchDatabase, BenchServer } from "../bench-server.ts";
import { applySite, putFirmware } from "./put-on-record.ts";

/** The server that is measured. */
export interface ServerUnderTest {
  readonly grpcAddress: string;
  readonly httpUrl: string;
  /** Processor time that it has taken. */
  cpuSeconds(): number;
  /** The most memory that it ever had. */
  peakMb(): number;
}

/** What is put on record, and how many racks come of it. */
export interface SiteToApply {
  readonly racks: number;
  readonly file: object;
  readonly firmware: readonly FirmwareRecord[];
}

export interface BroughtUp {
  readonly seconds: number;
  /** Of those, until everything was on record. */
  readonly applySeconds: number;
  readonly serverCpu: number;
  readonly databaseCpu: number;
  readonly journal: number;
  readonly databaseMb: number;
}

/** From `site apply` on an empty server until all racks are Ready. */
export async function bringUp(
  server: BenchServer,
  { db }: BenchDatabase,
  serving: ServerUnderTest,
  { racks, file, firmware }: SiteToApply,
): Promise<BroughtUp> {
  await putFirmware(serving.grpcAddress, firmware);
  const cpu = () => ({ server: serving.cpuSeconds(), database: server.cpuSeconds() });
  const before = cpu();
  const startedAt = performance.now();
  const applied = await applySite(serving.httpUrl, file);
  await untilReady(db, racks);
  const took = performance.now() - startedAt;
  const after = cpu();
  const [row] = await db.query<{ journal: number; bytes: number }>(
    "select (select count(*)::int from journal) as journal, pg_database_size(current_database())::float8 as bytes",
  );
  return {
    seconds: took / 1_000,
    applySeconds: applied / 1_000,
    serverCpu: after.server - before.server,
    databaseCpu: after.database - before.database,
    journal: row?.journal ?? 0,
    databaseMb: (row?.bytes ?? 0) / 1_048_576,
  };
}

const PATIENCE_MS = 1_800_000;
const SHOW_EVERY_MS = 10_000;

async function untilReady(db: BenchDatabase["db"], racks: number): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  let shownAt = performance.now();
  for (;;) {
    const rows = await db.query<{ state: string; count: number }>(
      "select state, count(*)::int as count from racks group by state order by state",
    );
    const counts = new Map(rows.map(({ state, count }) => [state, count]));
    if (counts.get("ready") === racks) return;
    const said = rows.map(({ state, count }) => `${count} ${state}`).join(", ");
    if (counts.has("error")) throw new Error(`racks have failed: ${said}; ${await firstError(db)}`);
    if (performance.now() > deadline) throw new Error(`the racks do not become ready: ${said}`);
    if (performance.now() - shownAt > SHOW_EVERY_MS) {
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
