import { createSeededValues } from "../simulator/seeded-values.ts";
import { firmwareRecords } from "../simulator/site/firmware.ts";
import { siteFileOf } from "../simulator/site/site-file.ts";
import { loadSite, type Site } from "../simulator/site.ts";
import type { BenchServer } from "./bench-server.ts";
import { createFleet } from "./fleet.ts";
import { bareNotify } from "./limits/bare-notify.ts";
import { oneTransactionEach } from "./limits/one-transaction-each.ts";
import { type Measurement, percentile } from "./measurement.ts";
import { type BroughtUp, bringUp } from "./racks/bring-up.ts";
import { serveImages } from "./racks/put-on-record.ts";
import { startRackProcess } from "./racks/rack-process.ts";
import { requestLatencies } from "./racks/requests.ts";
import { type AtRest, measureRest } from "./racks/rest.ts";

const RACKS = 250;
const TARGET_SECONDS = 600;
const TARGET_MEMORY_MB = 1_024;

interface Measured extends BroughtUp {
  readonly site: Site;
  readonly peakMb: number;
  readonly statements: number;
  readonly rest: AtRest;
  readonly notified: { readonly p50: number; readonly p99: number };
  readonly requests: readonly number[];
}

/** A site of racks, from nothing to all of them Ready, with devices that answer at once; then at rest, and single requests. */
export async function measureRacks(
  server: BenchServer,
  { quick, racks = quick ? 10 : RACKS }: { quick: boolean; racks?: number | undefined },
): Promise<Measurement[]> {
  const measured = await measureSite(server, { racks, quick });
  return [...describeStart(measured, await bareRate(server)), ...describeRequests(measured), ...describeRest(measured)];
}

async function measureSite(
  server: BenchServer,
  { racks, quick }: { readonly racks: number; readonly quick: boolean },
): Promise<Measured> {
  const database = await server.freshDatabase();
  // The last tray of each rack has old firmware: one flash a rack.
  const words = `racks=${racks},spare=1`;
  const site = loadSite(words, createSeededValues(1));
  const images = await serveImages();
  const serving = await startRackProcess(database.config, { site: words });
  try {
    const before = await serving.statements();
    const firmware = firmwareRecords(site, images.url);
    const up = await bringUp(server, database, serving, { racks, file: siteFileOf(site, ACCESS), firmware });
    const statements = (await serving.statements()) - before;
    const rest = await measureRest(server, serving, quick ? 10 : 30);
    const notified = await bareNotify(database.db, quick ? 100 : 400);
    const asking = quick ? { most: 20, milliseconds: 20_000 } : { most: 200, milliseconds: 120_000 };
    const requests = await requestLatencies(database, serving, site, asking);
    return { ...up, site, peakMb: serving.peakMb(), statements, rest, notified, requests };
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

const informative = (what: string, unit: Measurement["unit"], value: number): Measurement => ({
  what,
  values: [value],
  unit,
  better: "lower",
});

function describeStart(measured: Measured, bare: number): Measurement[] {
  const { site, journal } = measured;
  const racks = site.racks.length;
  const devices = site.machines.length + site.switches.length + site.shelves.length;
  return [
    {
      what: `${racks} racks, ${devices.toLocaleString("en-US")} devices: site apply to all Ready`,
      values: [measured.seconds],
      unit: "s",
      limit: { what: `one transaction for each of ${journal.toLocaleString("en-US")} changes`, value: journal / bare },
      ...(racks >= RACKS && { target: TARGET_SECONDS }),
      better: "lower",
    },
    informative("  of which site apply", "s", measured.applySeconds),
    informative("  processor time of the server", "s", measured.serverCpu),
    informative("  processor time of the database", "s", measured.databaseCpu),
    { ...informative("  memory of the server at its peak", "MB", measured.peakMb), target: TARGET_MEMORY_MB },
    informative("  size of the database", "MB", measured.databaseMb),
    informative("  entries of the journal, for each rack", "", journal / racks),
    informative("  statements, for each rack", "", measured.statements / racks),
  ];
}

const describeRequests = ({ requests, notified }: Measured): Measurement[] => [
  {
    ...informative(
      `maintenance of a rack → first device commanded, others at rest, ${requests.length} requests, p50`,
      "ms",
      percentile(requests, 0.5),
    ),
    limit: { what: "commit → NOTIFY heard", value: notified.p50 },
  },
  {
    ...informative("  p99", "ms", percentile(requests, 0.99)),
    limit: { what: "commit → NOTIFY heard", value: notified.p99 },
  },
];

const describeRest = ({ rest, site }: Measured): Measurement[] => [
  informative(`${site.racks.length} racks at rest: processors taken by the server`, "", rest.server),
  informative("  processors taken by the database", "", rest.database),
  informative("  statements", "/s", rest.statements),
];

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
