import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MaasTarget } from "../../../src/capabilities/fleet/maas.ts";
import { loadConfig } from "../../../src/config.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { wireMaasGate } from "../../../src/wiring/maas-gate.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const NODES = 200;
const AT_ONCE = 16;

let region: Server;
let database: TestDatabase;
let directory: string;
let target: MaasTarget;
let gate: ReturnType<typeof wireMaasGate>;
let most = 0;

/** A region that takes its time for each answer, so that whatever may be under way at once is. */
function slowRegion(): Server {
  let underWay = 0;
  return createServer((_, response) => {
    underWay += 1;
    most = Math.max(most, underWay);
    setTimeout(() => {
      underWay -= 1;
      response.end(JSON.stringify({ system_id: "abc123", status: 6 }));
    }, 20);
  });
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-maas-calls-"));
  database = await createTestDatabase();
  region = slowRegion();
  await new Promise<void>((resolve) => region.listen(0, "127.0.0.1", resolve));
  const { port } = region.address() as AddressInfo;
  const place = { address: "127.0.0.1", port, scheme: "http" as const, trust: { mode: "off" as const } };
  target = { ...place, path: "/MAAS", apiKey: "consumer:token:secret" };
  const { config } = loadConfig({
    env: { MILLWRIGHT_DATA_DIR: directory, MILLWRIGHT_BMC_ALLOWED_NETWORKS: "127.0.0.0/8" },
    argv: [],
  });
  const { db } = database;
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const metrics = createMetrics({ processMetrics: false });
  gate = wireMaasGate({ config, db, secrets, metrics, log: silentLog, clock: systemClock });
});
afterAll(async () => {
  gate.close();
  region.closeAllConnections();
  await new Promise((resolve) => region.close(resolve));
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
});

test("200 nodes that ask their MAAS at once are all answered, and never more than sixteen at a time", async () => {
  const asked = Array.from({ length: NODES }, () => gate.findMachine(target, "abc123", aCall()));
  const answers = await Promise.all(asked);
  expect(answers.filter((machine) => machine?.status === 6)).toHaveLength(NODES);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(AT_ONCE);
});
