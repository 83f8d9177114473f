import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import Fastify, { type FastifyInstance } from "fastify";
import { describe, expect, test } from "vitest";
import { RackFirmwareService } from "../../../contract/millwright/v1/rack_firmware_pb.js";
import { createFirmwareFiles } from "../../../src/api/rest/firmware/firmware-files.ts";
import { Controller } from "../../../src/engine/controller.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { hours, milliseconds } from "../../../src/kernel/time/duration.ts";
import { createArtifacts } from "../../../src/providers/artifacts/artifacts.ts";
import { explainRackFirmware } from "../../../src/services/explain/rack/rack-firmware.ts";
import { type FileListener, fileAddress, findMissingFiles } from "../../../src/services/rack-firmware/files.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { rackFirmware } from "../../../src/wiring/things/rack-firmware.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ArtifactServer, startArtifactServer } from "../../support/uploads/artifact-server.ts";
import { as, type ForgeUnderTest, refusal, type Surface, startForge, startSurface } from "../api/forge-under-test.ts";

let base: ForgeUnderTest;
let it: Surface;
let server: ArtifactServer;
let app: FastifyInstance;
const directory = mkdtempSync(join(tmpdir(), "millwright-catalogue-"));
const artifacts = createArtifacts({ directory, mayReach: (address) => address === "127.0.0.1", largest: 1_000_000 });
const stop = new AbortController();
let running: Promise<void>;

beforeAll(async () => {
  server = await startArtifactServer();
  base = await startForge();
  const deps = { ...base.deps, artifacts };
  it = await startSurface(deps);
  const { db, secrets } = base.deps;
  const controller = new Controller({
    db,
    stores: allStores,
    log: silentLog,
    handlers: new Map([
      ["rack_firmware", rackFirmware.handlers?.({ db, secrets, artifacts } as never) ?? (() => undefined)],
    ]),
    grace: milliseconds(200),
  });
  await db.listen("millwright", () => controller.nudge(), stop.signal);
  running = controller.run(stop.signal);
  app = Fastify();
  await app.register(createFirmwareFiles({ services: deps, reportUnexpected: () => "" }));
});
afterAll(async () => {
  stop.abort();
  await running;
  await app.close();
  await it.close();
  await base.close();
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

let count = 0;
/** A record of one file for one hardware type of its own; the file is what `bytes` says, or another one. */
function aRecord(change: { type?: string; id?: string; digest?: string; component?: string } = {}) {
  count += 1;
  const { type = `type-${count}`, id = `fw-${count}`, component = "BMC" } = change;
  const bytes = randomBytes(1_000);
  const path = `/${id}.fwpkg`;
  server.files.set(path, bytes);
  const Sha256 = change.digest ?? createHash("sha256").update(bytes).digest("hex");
  const Locations = [{ Location: `${server.url}${path}`, Type: "Firmware", Sha256 }];
  const Firmware = [{ Component: component, Version: "2.1", Locations }];
  const configJson = JSON.stringify({ Id: id, BoardSKUs: [{ Type: "Compute Node", Components: { Firmware } }] });
  return {
    id,
    type,
    bytes,
    digest: `sha256:${Sha256}`,
    path,
    request: { configJson, artifactoryToken: "NOAUTH", rackHardwareType: { value: type } },
  };
}
const create = (record: ReturnType<typeof aRecord>) => it.forge.createRackFirmware(record.request, as("ann"));
const ours = () => createClient(RackFirmwareService, it.api.grpc());
const untilState = (id: string, state: string) =>
  eventually(async () => (await ours().getRackFirmware({ id })).rackFirmware?.state === state, {
    what: `${id} is ${state}`,
    seen: async () => JSON.stringify((await ours().getRackFirmware({ id })).rackFirmware?.reason),
  });
const defaults = async (type: string) =>
  (await it.forge.listRackFirmware({ rackHardwareType: { value: type } })).configs
    .filter(({ isDefault }) => isDefault)
    .map(({ id }) => id);

describe("a record", () => {
  test("is available once its file is whole, and tells what was read from its document", async () => {
    const record = aRecord();
    const created = await create(record);
    expect(created).toMatchObject({ id: record.id, configJson: record.request.configJson, available: false });
    await untilState(record.id, "available");
    const read = await it.forge.getRackFirmware({ id: record.id });
    expect(read).toMatchObject({ available: true, isDefault: true, rackHardwareType: { value: record.type } });
    expect(JSON.parse(read.parsedComponents)).toEqual({
      devices: { "Compute Node": { BMC_prod: { filename: `${record.id}.fwpkg`, target: "", version: "2.1" } } },
    });
    const { rackFirmware: shown } = await ours().getRackFirmware({ id: record.id });
    expect(shown?.components).toMatchObject([{ component: "bmc", bytes: 1_000n, digest: record.digest }]);
  });

  test("whose file is another one is failed, says why, and what explain names first helps", async () => {
    const record = aRecord({ digest: "0".repeat(64) });
    await create(record);
    await untilState(record.id, "failed");
    const { headline, nextCommands } = await explainRackFirmware(base.deps, record.id);
    expect(headline).toContain("instead of sha256:000");
    expect(nextCommands[0]?.command).toBe(`millwright rack-firmware download ${record.id}`);
    expect((await it.forge.listRackFirmware({ onlyAvailable: true })).configs.map(({ id }) => id)).not.toContain(
      record.id,
    );
  });

  test("whose server is busy waits, and goes on by itself", async () => {
    const record = aRecord();
    server.faults.set(record.path, { status: 503 });
    await create(record);
    await eventually(
      async () => (await ours().getRackFirmware({ id: record.id })).rackFirmware?.reason.includes("answers 503"),
      { what: "the reason is shown" },
    );
    server.faults.delete(record.path);
    await untilState(record.id, "available");
  });

  test("can be downloaded again once what was wrong is mended", async () => {
    const record = aRecord();
    server.faults.set(record.path, { status: 404 });
    await create(record);
    await untilState(record.id, "failed");
    server.faults.delete(record.path);
    await ours().downloadRackFirmware({ id: record.id }, as("ann"));
    await untilState(record.id, "available");
  });

  test("is refused when there is one, and changes nothing then", async () => {
    const record = aRecord();
    await create(record);
    const before = await it.forge.getRackFirmware({ id: record.id });
    expect(await refusal(create(aRecord({ id: record.id })))).toMatchObject({ code: Code.AlreadyExists });
    expect((await it.forge.getRackFirmware({ id: record.id })).configJson).toBe(before.configJson);
  });

  test.each<[string, object, string]>([
    ["bad JSON", { configJson: "{" }, "config_json"],
    ["an empty token", { artifactoryToken: "" }, "artifactory_token"],
    ["a token with a line break", { artifactoryToken: "a\r\nb: c" }, "artifactory_token"],
    ["no hardware type", { rackHardwareType: undefined }, "rack_hardware_type"],
    ["an empty hardware type", { rackHardwareType: { value: "" } }, "rack_hardware_type"],
  ])("with %s is refused", async (_, change, field) => {
    const { request } = aRecord();
    const answer = await refusal(it.forge.createRackFirmware({ ...request, ...change }, as("ann")));
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field });
  });

  test("keeps its token where only the download finds it", async () => {
    const record = aRecord();
    await it.forge.createRackFirmware({ ...record.request, artifactoryToken: "very-secret" }, as("ann"));
    await untilState(record.id, "available");
    const read = await it.forge.getRackFirmware({ id: record.id });
    expect(JSON.stringify(read)).not.toContain("very-secret");
    expect(await base.deps.secrets.get(base.db, `rack-firmware/${record.id}`)).toBe("very-secret");
    // Over plain HTTP it is not sent.
    const asked = server.asked.find(({ path }) => path === record.path);
    expect(JSON.stringify(asked?.headers)).not.toContain("very-secret");
    await it.forge.deleteRackFirmware({ id: record.id }, as("ann"));
    expect(await base.deps.secrets.get(base.db, `rack-firmware/${record.id}`)).toBeUndefined();
  });
});

describe("the default of a hardware type", () => {
  test("is the first of 20 that are created at once, and one only", async () => {
    const type = "raced";
    await Promise.all(Array.from({ length: 20 }, () => create(aRecord({ type }))));
    expect(await defaults(type)).toHaveLength(1);
  });

  test("is another one when somebody says so, also when two do at once", async () => {
    const [first, second, third] = [
      aRecord({ type: "chosen" }),
      aRecord({ type: "chosen" }),
      aRecord({ type: "chosen" }),
    ];
    for (const record of [first, second, third]) await create(record);
    expect(await defaults("chosen")).toEqual([first.id]);
    await it.forge.rackFirmwareSetDefault({ firmwareId: second.id }, as("ann"));
    expect(await defaults("chosen")).toEqual([second.id]);
    const both = [first.id, third.id].map((firmwareId) => it.forge.rackFirmwareSetDefault({ firmwareId }, as("ann")));
    const settled = await Promise.allSettled(both);
    expect(settled.some(({ status }) => status === "fulfilled")).toBe(true);
    expect(await defaults("chosen")).toHaveLength(1);
  });

  test("of an unknown record, or of none, is refused", async () => {
    expect(await refusal(it.forge.rackFirmwareSetDefault({ firmwareId: "nope" }))).toMatchObject({
      code: Code.NotFound,
    });
    expect(await refusal(it.forge.rackFirmwareSetDefault({ firmwareId: "" }))).toMatchObject({
      code: Code.InvalidArgument,
    });
  });
});

describe("deleting", () => {
  test("removes the record at once, also while its file is being downloaded", async () => {
    const record = aRecord();
    const never = Promise.withResolvers<void>();
    server.faults.set(record.path, { pauseAfter: { bytes: 100, until: never.promise } });
    await create(record);
    await eventually(async () => server.asked.some(({ path }) => path === record.path), { what: "it downloads" });
    await it.forge.deleteRackFirmware({ id: record.id }, as("ann"));
    expect(await refusal(it.forge.getRackFirmware({ id: record.id }))).toMatchObject({ code: Code.NotFound });
    never.resolve();
  });

  test("is refused while a run works with the record", async () => {
    const record = aRecord();
    await create(record);
    await untilState(record.id, "available");
    const steps = [{ name: "a", kind: "update_firmware", payload: { firmware_id: record.id } }];
    await base.db.execute(
      `insert into runs (id, target_kind, target_id, request_id, fingerprint, type, plan_id, plan, params, job_id, attempt, action, initiator, state)
       values ('run-x', 'rack', 'r1', 'x', '', '', 'p', $1, '{}', 'job-x', 1, 'start', 'ann', 'RUNNING')`,
      [JSON.stringify({ planId: "p", steps })],
    );
    const answer = await refusal(it.forge.deleteRackFirmware({ id: record.id }));
    expect(answer).toMatchObject({ kind: "failed_precondition", next: "millwright run show run-x" });
    expect(await refusal(ours().downloadRackFirmware({ id: record.id }))).toMatchObject({
      kind: "failed_precondition",
    });
    await base.db.execute("delete from runs where id = 'run-x'");
    await it.forge.deleteRackFirmware({ id: record.id });
  });

  test("of an unknown record says so", async () => {
    expect(await refusal(it.forge.deleteRackFirmware({ id: "nope" }))).toMatchObject({ code: Code.NotFound });
  });
});

describe("the address of a file", () => {
  const addressOf = (digest: string, now = new Date()) =>
    fileAddress(base.deps.secrets, { server: "", digest, name: "a b.fwpkg", now, validFor: hours(1) });

  test("gives the file, whole and in ranges, until it expires", async () => {
    const record = aRecord();
    await create(record);
    await untilState(record.id, "available");
    const url = addressOf(record.digest);
    const whole = await app.inject({ url });
    expect(whole.statusCode).toBe(200);
    expect(whole.rawPayload).toEqual(record.bytes);
    expect(whole.headers).toMatchObject({ "cache-control": "no-store", "content-length": "1000" });
    const part = await app.inject({ url, headers: { range: "bytes=10-19" } });
    expect([part.statusCode, part.rawPayload]).toEqual([206, record.bytes.subarray(10, 20)]);
    expect((await app.inject({ method: "HEAD", url })).headers["content-length"]).toBe("1000");
  });

  test("is good at the listener that it was made for, and one from before there was another goes on", async () => {
    const record = aRecord();
    await create(record);
    await untilState(record.id, "available");
    const deps = { ...base.deps, artifacts };
    const of = { server: "", digest: record.digest, name: "a.fwpkg", now: new Date(), validFor: hours(1) };
    const urls = (["shared", "own"] as const).map((listener) => fileAddress(base.deps.secrets, { ...of, listener }));
    const seen = async (...listeners: FileListener[]) => {
      const listener = Fastify();
      await listener.register(createFirmwareFiles({ services: deps, listeners, reportUnexpected: () => "" }));
      const answers = await Promise.all(urls.map((url) => listener.inject({ method: "HEAD", url })));
      await listener.close();
      return answers.map(({ statusCode }) => statusCode);
    };
    expect(await seen("shared")).toEqual([200, 404]);
    expect(await seen("own")).toEqual([404, 200]);
    expect(await seen("shared", "own")).toEqual([200, 200]);
  });

  test("is the same nothing to who guesses, changes or keeps one", async () => {
    const [record, other] = [aRecord(), aRecord()];
    for (const each of [record, other]) {
      await create(each);
      await untilState(each.id, "available");
    }
    const url = addressOf(record.digest);
    const [, , , hex = "", expires = "", signature = ""] = url.split("/");
    const later = (Number.parseInt(expires, 36) + 3_600).toString(36);
    const wrong = [
      addressOf(record.digest, new Date(Date.now() - hours(2))),
      url.replace(hex, other.digest.slice(7)),
      url.replace(expires, later),
      url.replace(signature, "AAAAAAAAAAAAAAAAAAAAAA"),
      url.replace(signature, ""),
      addressOf(`sha256:${"9".repeat(64)}`),
      `/firmware/files/..%2f..%2fetc/${expires}/${signature}/passwd`,
    ];
    const answers = await Promise.all(wrong.map(async (each) => (await app.inject({ url: each })).statusCode));
    expect(answers).toEqual(wrong.map(() => 404));
    const bodies = await Promise.all(wrong.slice(0, 4).map(async (each) => (await app.inject({ url: each })).body));
    expect(new Set(bodies).size).toBe(1);
  });
});

test("a replica without the files says so", async () => {
  const record = aRecord();
  await create(record);
  await untilState(record.id, "available");
  expect(await findMissingFiles({ ...base.deps, artifacts })).toEqual([]);
  const elsewhere = createArtifacts({ directory: join(directory, "elsewhere"), mayReach: () => true, largest: 1 });
  expect(await findMissingFiles({ ...base.deps, artifacts: elsewhere })).toContain(record.id);
});
