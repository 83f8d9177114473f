import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, rootCertificates } from "node:tls";
import { afterEach, describe, expect, test, vi } from "vitest";
import { loadConfig } from "../../../src/config.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { addExpectedPowerShelf } from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { setPowerShelfMaintenance } from "../../../src/services/power-shelf/power-shelves.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { listPowerShelves, type PowerShelfRecord } from "../../../src/store/power-shelf/power-shelves.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { readCaCertificates } from "../../../src/wiring/ca-certificates.ts";
import { type Engine, startEngine } from "../../../src/wiring/engine.ts";
import { loadRunbooks } from "../../../src/wiring/runbook-files.ts";
import { allStores, allThings } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { tester } from "../../support/datacentre.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type SimulatedDevice, type SimulatedSite, startSite } from "./simulated-bench.ts";

/** Hardware as the server wires it: its settings, its ledger and its handing over, against simulated BMCs. */
let site: SimulatedSite;
let device: SimulatedDevice;
let database: TestDatabase;
let directory: string;
let deps: ServiceDeps;
const running: Engine[] = [];

const scratch = (name: string) => join(directory, name);

function startReplica(settings: Readonly<Record<string, string>> = {}): Engine {
  const env = { MILLWRIGHT_MONITOR_INTERVAL: "1s", MILLWRIGHT_EXPLORER_INTERVAL: "1s", ...settings };
  const { config } = loadConfig({ env: { ...env, MILLWRIGHT_DATA_DIR: directory }, argv: [] });
  const { db, secrets } = deps;
  const engine = startEngine({
    db,
    secrets,
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    replica: `replica-${running.length}`,
    config,
    runbooks: loadRunbooks(),
    mayReach: () => true,
    clock: systemClock,
    things: allThings,
  });
  running.push(engine);
  return engine;
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-wired-"));
  database = await createTestDatabase();
  const secrets = openSecretStore({ keyFile: scratch("secret.key") });
  deps = { db: database.db, stores: allStores, secrets, maxFindByIds: 100 };
  site = await startSite(20);
  const [first] = await site.devices("liteon");
  if (first === undefined) throw new Error("the site is empty");
  device = first;
  const { username, password, address, port } = await site.target(device);
  await addExpectedPowerShelf(deps, tester, {
    bmcMac: "02:00:5e:10:00:01",
    bmcUsername: username,
    bmcPassword: password,
    serial: device.serial,
    bmcEndpoint: `${address}:${port}`,
    rackId: "rack-1",
    metadata: { name: "shelf", description: "", labels: {} },
  });
  const engine = startReplica();
  await until(async () => expect((await shelf()).state.name).toBe("ready"));
  await engine.stop();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((engine) => engine.stop()));
  await site.clearFaults();
});
afterAll(async () => {
  await Promise.all(running.splice(0).map((engine) => engine.stop()));
  await site.stop();
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
});

const until = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 20_000, interval: 50 });
async function shelf(): Promise<PowerShelfRecord> {
  const [only] = await listPowerShelves(database.db);
  if (only === undefined) throw new Error("there is no shelf yet");
  return only;
}

/** It is looked at as soon as a replica runs. */
const lookSoon = () =>
  database.db.execute(
    "update work set wake_at = now(), failures = 0 where kind = 'power_shelf' and lease_owner is null",
  );

describe("bmc.ca_file", () => {
  /** With the credentials for it. */
  const trust = async (mode: "pin" | "ca") => {
    await database.db.execute("update power_shelves set bmc_trust = $1, version = version + 1", [mode]);
    await database.db.execute("update secrets set bound_to = regexp_replace(bound_to, '(pin|ca)$', $1)", [mode]);
  };
  afterEach(() => trust("pin"));

  const certificate = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ host: device.address, port: device.port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()?.toString() ?? "");
        socket.destroy();
      });
      socket.on("error", reject);
    });

  test("names the authorities that BMCs with trust ca are judged by", async () => {
    await trust("ca");
    await lookSoon();
    writeFileSync(scratch("other.pem"), rootCertificates[0] ?? "");
    const mistrusting = startReplica({ MILLWRIGHT_BMC_CA_FILE: scratch("other.pem") });
    await until(async () =>
      expect((await shelf()).outcome).toMatchObject({
        type: "failing",
        reason: expect.stringMatching(/certificate that is not trusted.*bmc\.ca_file/),
      }),
    );
    await mistrusting.stop();

    writeFileSync(scratch("ca.pem"), `# two of them\n${rootCertificates[0]}\n\n${await certificate()}`);
    const { observedAt } = (await shelf()).facts;
    await lookSoon();
    startReplica({ MILLWRIGHT_BMC_CA_FILE: scratch("ca.pem") });
    await until(async () => {
      const { facts, outcome } = await shelf();
      expect(outcome).toBeNull();
      expect(facts.observedAt).not.toBe(observedAt);
    });
  });

  test.each([
    ["is not there", undefined, /bmc\.ca_file: .*missing\.pem cannot be read: ENOENT/],
    ["holds no certificate", "-----BEGIN PRIVATE KEY-----", /holds no certificate in PEM/],
    [
      "holds half a certificate",
      "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
      /something else than a certificate as number 1/,
    ],
  ])("that %s is refused at the start", (_what, text, message) => {
    const file = scratch(text === undefined ? "missing.pem" : "bad.pem");
    if (text !== undefined) writeFileSync(file, text);
    expect(() => startReplica({ MILLWRIGHT_BMC_CA_FILE: file })).toThrow(message);
    expect(() => readCaCertificates(file, "bmc.ca_file")).toThrow(message);
  });
});

test("a replica that takes over does not repeat the command that the shelf has accepted", async () => {
  await site.addFault({ device: device.id, fault: { type: "lie_accept" } });
  const commands = async () => (await site.device(device.id)).effects.power_off_commands;
  const before = (await commands()) ?? 0;
  await setPowerShelfMaintenance(deps, tester, {
    powerShelfIds: [(await shelf()).id],
    operation: "power_off",
    reference: "HANDOVER-1",
  });
  const first = startReplica();
  await until(async () =>
    expect(await shelf()).toMatchObject({
      outcome: { reason: "shelf reports power on, wanted off" },
      facts: { commandedAt: { operation: "power_off" } },
    }),
  );
  expect(await commands()).toBe(before + 1);
  await first.stop();

  const asked = (await site.device(device.id)).requests;
  startReplica();
  // Signing in, who it is, its power: by then it would have been told.
  await until(async () => expect((await site.device(device.id)).requests).toBeGreaterThan(asked + 12));
  expect(await commands()).toBe(before + 1);
  await site.clearFaults();
  await site.switchAtRack(device.id, "off");
  await until(async () => expect((await shelf()).state.name).toBe("ready"));
});

test("what a BMC rejects is known to all replicas", async () => {
  await site.addFault({ device: device.id, fault: { type: "wrong_credentials" } });
  await lookSoon();
  const ledger = () =>
    database.db.query<{ endpoint: string; rejections: number }>("select endpoint, rejections from sign_in_ledger");
  for (let replica = 0; replica < 3; replica += 1) {
    const engine = startReplica();
    await until(async () =>
      expect((await shelf()).outcome).toMatchObject({
        reason: expect.stringContaining("wrong credentials"),
      }),
    );
    await engine.stop();
    await lookSoon();
  }
  const last = startReplica();
  await until(async () =>
    expect((await shelf()).outcome?.reason).toContain("tried only rarely, so that the account is not locked"),
  );
  await last.stop();
  expect(await ledger()).toEqual([{ endpoint: `${device.address}:${device.port}`, rejections: 2 }]);
});
