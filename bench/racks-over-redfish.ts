import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchServer } from "./bench-server.ts";
import type { Measurement } from "./measurement.ts";
import { bringUp } from "./racks/bring-up.ts";
import { startSimulatedSite } from "./racks/simulated-site.ts";
import { startServeProcess } from "./serve-process.ts";

const RACKS = 25;
/** A boot of a minute takes a third of a second. */
const SPEED = 200;

/** The same as `racks`, with `millwright serve` and devices that speak Redfish and NVUE over TLS; the simulator shares the processors. */
export async function measureRacksOverRedfish(
  server: BenchServer,
  { quick, racks = quick ? 4 : RACKS }: { quick: boolean; racks?: number | undefined },
): Promise<Measurement[]> {
  const database = await server.freshDatabase();
  const site = await startSimulatedSite(`racks=${racks},spare=1`, SPEED);
  const keys = mkdtempSync(join(tmpdir(), "millwright-bench-keys-"));
  const serving = await startServeProcess(database.config, {
    keyFile: join(keys, "secret.key"),
    env: { MILLWRIGHT_FIRMWARE_ALLOWED_NETWORKS: "127.0.0.0/8" },
  });
  try {
    const before = site.cpuSeconds();
    const up = await bringUp(server, database, serving, { racks, ...site });
    return [
      {
        what: `${racks} racks, ${racks * 35} devices over Redfish: site apply to all Ready`,
        values: [up.seconds],
        unit: "s",
        better: "lower",
      },
      { what: "  of which site apply", values: [up.applySeconds], unit: "s", better: "lower" },
      { what: "  processor time of the server", values: [up.serverCpu], unit: "s", better: "lower" },
      { what: "  processor time of the database", values: [up.databaseCpu], unit: "s", better: "lower" },
      { what: "  processor time of the simulator", values: [site.cpuSeconds() - before], unit: "s", better: "lower" },
      { what: "  memory of the server at its peak", values: [serving.peakMb()], unit: "MB", better: "lower" },
    ];
  } finally {
    await serving.stop();
    await site.stop();
    rmSync(keys, { recursive: true, force: true });
    await database.drop();
  }
}
