import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { createArtifacts } from "../../../src/providers/artifacts/artifacts.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { fileAddress, readFirmwareFile } from "../../../src/services/rack-firmware/files.ts";
import { createMissingFiles, type Preparing } from "../../../src/services/rack-firmware/missing-files.ts";
import { createRackFirmware } from "../../../src/services/rack-firmware/rack-firmware.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ArtifactServer, startArtifactServer } from "../../support/uploads/artifact-server.ts";

/** Replicas that do not share their firmware directory: one has downloaded the files of a record, and the other one has not. */
let database: TestDatabase;
let server: ArtifactServer;
let deps: ServiceDeps;
const directory = mkdtempSync(join(tmpdir(), "millwright-missing-"));
beforeAll(async () => {
  database = await createTestDatabase();
  server = await startArtifactServer();
  const secrets = openSecretStore({ keyFile: join(directory, "secret-key") });
  deps = { db: database.db, stores: allStores, secrets, maxFindByIds: 100 };
});
afterAll(async () => {
  await server.close();
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
});

/** A record whose files another replica has downloaded. Returns the digest of its one file. */
async function addRecord(id: string): Promise<string> {
  const bytes = randomBytes(10_000);
  server.files.set(`/${id}.fwpkg`, bytes);
  const hex = createHash("sha256").update(bytes).digest("hex");
  const place = { Location: `${server.url}/${id}.fwpkg`, FileName: `${id}.fwpkg`, Type: "Firmware", Sha256: hex };
  const firmware = { Component: "BMC", Version: "2.0", Locations: [place] };
  const config = { Id: id, BoardSKUs: [{ Type: "Compute Node", Components: { Firmware: [firmware] } }] };
  await createRackFirmware(deps, tester, { configJson: JSON.stringify(config), token: "NOAUTH", hardwareType: id });
  await database.db.execute("update rack_firmware set state = 'available' where id = $1", [id]);
  return `sha256:${hex}`;
}

let replicas = 0;
/** One whose directory is empty. */
function anotherReplica() {
  const files = join(directory, `replica-${++replicas}`);
  const artifacts = createArtifacts({ directory: files, mayReach: () => true, largest: 1_000_000 });
  let ahead = 0;
  const clock = { ...systemClock, now: () => new Date(Date.now() + ahead) };
  const missingFiles = createMissingFiles({ ...deps, artifacts, clock });
  const pass = (time: number) => {
    ahead += time;
  };
  return { artifacts, missingFiles, pass, deps: { ...deps, artifacts, missingFiles, clock } };
}

test("a replica that lacks a file downloads it once, however many devices need it, and says so meanwhile", async () => {
  const digest = await addRecord("fw-shared");
  const { artifacts, missingFiles } = anotherReplica();
  const asked = server.asked.length;
  const all = await Promise.all([1, 2, 3].map(() => missingFiles.prepare(digest)));
  for (const prepared of all)
    expect(prepared).toMatchObject({ message: `the file ${digest} is not on this server; it is downloaded again` });
  await Promise.all(all.map((prepared) => (prepared as Preparing).ended));
  expect(await missingFiles.prepare(digest)).toBe("here");
  expect(await artifacts.find(digest)).toMatchObject({ bytes: 10_000 });
  expect(server.asked.length - asked).toBe(1);
});

test("a download that fails is told with its reason, and tried again after a minute", async () => {
  const digest = await addRecord("fw-gone");
  server.faults.set("/fw-gone.fwpkg", { status: 404 });
  const { missingFiles, pass } = anotherReplica();
  await ((await missingFiles.prepare(digest)) as Preparing).ended;
  const asked = server.asked.length;
  expect(await missingFiles.prepare(digest)).toMatchObject({
    message: expect.stringMatching(/cannot be downloaded again: the artifact server at .* answers 404/),
  });
  expect(server.asked.length).toBe(asked);
  server.faults.clear();
  pass(minutes(2));
  await ((await missingFiles.prepare(digest)) as Preparing).ended;
  expect(await missingFiles.prepare(digest)).toBe("here");
});

test("a file that no available record names is downloaded from nowhere", async () => {
  const digest = await addRecord("fw-withdrawn");
  await database.db.execute("update rack_firmware set state = 'failed' where id = 'fw-withdrawn'");
  const { missingFiles } = anotherReplica();
  const asked = server.asked.length;
  await ((await missingFiles.prepare(digest)) as Preparing).ended;
  expect(await missingFiles.prepare(digest)).toMatchObject({
    message: expect.stringContaining("no available firmware names it"),
  });
  expect(server.asked.length).toBe(asked);
});

test("a BMC that asks the replica without the file gets it; without a signature nobody has a file downloaded", async () => {
  const digest = await addRecord("fw-served");
  const { deps: replica } = anotherReplica();
  const address = fileAddress(replica.secrets, {
    ...{ server: "http://here", digest, name: "f", now: new Date(), validFor: minutes(5) },
  });
  const [hex = "", expires = "", signature = ""] = address.split("/").slice(-4);
  const asked = server.asked.length;
  const forged = { hex, expires, signature: signature.replace(/^./, (first) => (first === "A" ? "B" : "A")) };
  await expect(readFirmwareFile(replica, forged)).rejects.toMatchObject({ kind: "not_found" });
  expect(server.asked.length).toBe(asked);
  expect(await readFirmwareFile(replica, { hex, expires, signature })).toMatchObject({ bytes: 10_000 });
});
