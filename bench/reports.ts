import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { registerInstall } from "../src/services/install/installs.ts";
import { openSecretStore } from "../src/store/access/secrets.ts";
import type { Database } from "../src/store/postgres/database.ts";
import { allStores } from "../src/wiring/things/all-things.ts";
import type { BenchDatabase, BenchServer } from "./bench-server.ts";
import { type ReportLoad, type ReportsSent, startBareFastify, startReportLoad } from "./clients/report-load.ts";
import { type Measurement, percentile } from "./measurement.ts";
import { startServeProcess } from "./serve-process.ts";

const NODES = 2_000;
const PER_SECOND = 1_000;
const AT_ONCE = 64;
const REGISTERED_AT_ONCE = 20;

/**
 * A thousand reports a second over HTTP, each with a report_id, for a minute: every one that was sent must be answered, and be in
 * the journal exactly once. Fastify alone, with the same reports in the same run, is what no server built on it can beat.
 */
export async function measureReports(
  server: BenchServer,
  { quick, seconds = quick ? 5 : 60 }: { quick: boolean; seconds?: number | undefined },
): Promise<Measurement[]> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-bench-reports-"));
  const database = await server.freshDatabase();
  const keyFile = join(directory, "secret-key");
  try {
    const macs = await addInstallingNodes(database.db, keyFile);
    await database.db.query("checkpoint");
    return await measureOn(database, keyFile, macs, seconds);
  } finally {
    await database.drop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function addInstallingNodes(db: Database, keyFile: string): Promise<readonly string[]> {
  const deps = { db, stores: allStores, secrets: openSecretStore({ keyFile }), maxFindByIds: 100 };
  const caller = { name: "bench", roles: ["admin"], address: null };
  const macs = Array.from({ length: NODES }, (_, index) => {
    const digits = (index + 1).toString(16).padStart(6, "0");
    return `02:00:5e:${digits.replace(/(..)(?=.)/g, "$1:")}`;
  });
  const left = [...macs];
  const register = async () => {
    for (let mac = left.pop(); mac !== undefined; mac = left.pop())
      await registerInstall(deps, caller, { mac, arch: "x86_64", bootMode: "uefi", groupId: null, facts: {} });
  };
  await Promise.all(Array.from({ length: REGISTERED_AT_ONCE }, register));
  await db.execute("update installs set state = 'installing', basis = basis + 1");
  return macs;
}

async function measureOn(
  { db, config }: BenchDatabase,
  keyFile: string,
  macs: readonly string[],
  seconds: number,
): Promise<Measurement[]> {
  const serving = await startServeProcess(config, {
    keyFile,
    env: { MILLWRIGHT_INSTALL_REQUIRE_REPORT_TOKENS: "false" },
  });
  const bare = await startBareFastify();
  const load = startReportLoad();
  try {
    const send = (url: string, milliseconds: number, perSecond?: number) =>
      load.send({ url, macs, milliseconds, atOnce: AT_ONCE, ...(perSecond !== undefined && { perSecond }) });
    const short = Math.min(seconds, 5) * 1_000;
    for (const { url } of [bare, { url: serving.httpUrl }]) await send(url, short / 2); // until Node has compiled what it needs
    const most = { bare: await send(bare.url, short), ours: await kept(db, () => send(serving.httpUrl, short)) };
    const paced = await send(bare.url, short, PER_SECOND);
    const ours = await kept(db, () => send(serving.httpUrl, seconds * 1_000, PER_SECOND));
    return measurementsOf({ most, paced, ours, seconds });
  } finally {
    await load.stop();
    await bare.stop();
    await serving.stop();
  }
}

/** A run in which a report was lost, or counted twice, is no measurement but a fault. */
async function kept(db: Database, send: () => ReturnType<ReportLoad["send"]>): Promise<ReportsSent> {
  const before = await countProgress(db);
  const sent = await send();
  const inJournal = (await countProgress(db)) - before;
  if (sent.answered !== sent.sent || inJournal !== sent.sent) {
    const why = sent.failures.length > 0 ? `: ${sent.failures.join("; ")}` : "";
    throw new Error(`${sent.sent} reports were sent, ${sent.answered} answered, and ${inJournal} kept${why}`);
  }
  return sent;
}

async function countProgress(db: Database): Promise<number> {
  const [counted] = await db.query<{ count: number }>(
    `select count(*) as count from journal where kind = 'install' and type = 'transition' and data ->> 'trigger' = 'progress'`,
  );
  return counted?.count ?? 0;
}

interface Runs {
  readonly most: { readonly bare: ReportsSent; readonly ours: ReportsSent };
  readonly paced: ReportsSent;
  readonly ours: ReportsSent;
  readonly seconds: number;
}

function measurementsOf({ most, paced, ours, seconds }: Runs): Measurement[] {
  const rate = ({ answered, took }: ReportsSent) => (answered * 1_000) / took;
  const latency = (share: number): Measurement => ({
    what: `report → answer at ${PER_SECOND.toLocaleString("en-US")}/s, p${share * 100}`,
    values: [percentile(ours.latencies, share)],
    unit: "ms",
    limit: { what: "Fastify alone", value: percentile(paced.latencies, share) },
    better: "lower",
  });
  return [
    {
      what: `reports kept of ${ours.sent.toLocaleString("en-US")} in ${seconds} s, none lost`,
      values: [rate(ours)],
      unit: "/s",
      target: PER_SECOND * 0.99, // the last answers come after the last report
      better: "higher",
    },
    latency(0.5),
    latency(0.99),
    {
      what: `reports, as many as can be, ${AT_ONCE} at once`,
      values: [rate(most.ours)],
      unit: "/s",
      limit: { what: "Fastify alone", value: rate(most.bare) },
      better: "higher",
    },
  ];
}
