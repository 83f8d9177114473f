import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCertificate } from "../../simulator/certificate/certificate.ts";
import { seedWriter } from "../../src/providers/seeds/seed.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { freeLeases } from "../../src/store/lifecycle/work.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench } from "../support/processes/process-bench.ts";
import { startServerProcess } from "../support/processes/server-process.ts";
import { CONFIGURE, managedRacks, WANTED } from "../support/racks/managed-racks.ts";
import { StandInRackManager } from "../support/racks/stand-in-rack-manager.ts";

/**
 * A server that is killed while a rack manager works for it: before the answer to a batch, while jobs are followed, before the answer to
 * the configuration of a fabric, and while that is validated. One kill meets all four, each in a rack of its own.
 */
test("kill -9 between the order to a rack manager and its answer: nothing is sent twice, and each rack is ready", async ({
  onTestFinished,
}) => {
  const processes = openProcessBench();
  onTestFinished(() => processes.close());
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { db } = database;
  const certificate = createCertificate({ addresses: ["127.0.0.1"], now: new Date() });
  const standIn = await StandInRackManager.start("h", certificate);
  onTestFinished(() => standIn.close());
  const caFile = join(processes.directory, "rms-ca.pem");
  writeFileSync(caFile, certificate.cert);
  const start = () =>
    startServerProcess(processes, {
      command: "serve",
      databaseUrl: database.url,
      env: {
        MILLWRIGHT_RACK_MANAGER_URL: standIn.url,
        MILLWRIGHT_RACK_MANAGER_API: "h",
        MILLWRIGHT_RACK_MANAGER_CA_FILE: caFile,
      },
    });

  const victim = await start();
  const secrets = openSecretStore({ keyFile: join(victim.dataDir, "secret-key") });
  const site = await managedRacks({ db, stores: allStores, secrets, seedWriter, maxFindByIds: 100 }, standIn);
  onTestFinished(() => site.close());
  await site.addRack("r-batch", { compute: 1 });
  await site.addRack("r-follow", { compute: 1 });
  await site.addRack("r-configure", { switch: 1 }, "gb200_nvl72r1_c2g4");
  await site.addRack("r-validate", { switch: 1 }, "gb200_nvl72r1_c2g4");

  const held = new Set<string>();
  const forEver = (rack: string) => {
    held.add(rack);
    return new Promise<void>(() => {});
  };
  standIn.isConfigured = (node) => !node.startsWith("r-configure");
  standIn.holds = async (call, rack) => {
    if (call === "update" && rack === "r-batch") return forEver(rack);
    if (call === "configure" && rack === "r-configure") return forEver(rack);
    const isValidating =
      call === "fabric" && rack === "r-validate" && (await site.racks.rack(rack)).state.name === "validating";
    return isValidating ? forEver(rack) : undefined;
  };
  const followed = async (rack: string) =>
    (await site.children(rack)).filter(
      ({ kinds, state }) => kinds.includes("follow_firmware_job") && state === "RUNNING",
    );
  await site.request("r-follow");
  await site.request("r-batch");
  await site.request("r-configure", CONFIGURE);
  await site.request("r-validate", CONFIGURE);
  await eventually(async () => held.size === 3 && (await followed("r-follow")).length === 1, {
    what: "each rack is where it is to be",
    seen: () => `${[...held].join(", ")}\n${victim.process.transcript()}`,
  });
  victim.process.signal("SIGKILL");
  await victim.process.exited;
  await freeLeases(db); // as they would end by themselves: their owner is dead

  standIn.holds = () => undefined;
  const heir = await start();
  await eventually(async () => (await followed("r-batch")).length === 1, {
    what: "the tray whose answer was lost is followed",
    seen: heir.process.transcript,
  });
  for (const tray of ["r-batch-m1", "r-follow-m1"]) site.finish(tray);
  standIn.isConfigured = () => true;
  for (const rack of ["r-batch", "r-follow", "r-configure", "r-validate"]) await site.racks.until(rack, "ready");
  // In whichever order the racks came to it, each tray was sent its order once.
  expect(standIn.batches.map(({ nodes }) => nodes.map(({ id }) => id).join()).sort()).toEqual([
    "r-batch-m1",
    "r-follow-m1",
  ]);
  expect(standIn.configured.map(({ node }) => node)).toEqual(["r-configure-s1"]);
  expect(site.shows("r-batch-m1")).toBe(WANTED);
}, 180_000);
