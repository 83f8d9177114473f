import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { createCertificate } from "../../../simulator/certificate/certificate.ts";
import type { ArtifactOrder, Artifacts } from "../../../src/capabilities/rack/artifacts.ts";
import type { StreamCall } from "../../../src/capabilities/stream.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import { createArtifacts } from "../../../src/providers/artifacts/artifacts.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ArtifactServer, startArtifactServer } from "../../support/uploads/artifact-server.ts";

const LARGEST = 1_000_000;
const certificate = createCertificate({ addresses: ["127.0.0.1"], now: new Date() });
let plain: ArtifactServer;
let secure: ArtifactServer;
let directory = "";
let artifacts: Artifacts;

beforeAll(async () => {
  plain = await startArtifactServer();
  secure = await startArtifactServer({ tls: certificate });
});
afterAll(async () => {
  await Promise.all([plain.close(), secure.close()]);
  rmSync(directory, { recursive: true, force: true });
});
beforeEach(() => {
  rmSync(directory, { recursive: true, force: true });
  directory = mkdtempSync(join(tmpdir(), "millwright-artifacts-"));
  artifacts = createArtifacts({
    directory: join(directory, "files"),
    mayReach: (address) => address === "127.0.0.1",
    caCertificates: [certificate.cert],
    largest: LARGEST,
  });
  for (const server of [plain, secure]) {
    server.asked.length = 0;
    server.faults.clear();
    server.files.clear();
  }
});

const digestOf = (file: Buffer): string => `sha256:${createHash("sha256").update(file).digest("hex")}`;
const streamCall = (signal = new AbortController().signal): StreamCall => ({
  subject: "test",
  signal,
  mayTouchDevice: (wanted) => wanted,
  sendChunk: (send) => send(signal),
  report: () => undefined,
});
const file = randomBytes(300_000);
const order = (change: Partial<ArtifactOrder> = {}): ArtifactOrder => ({
  digest: digestOf(file),
  wantedBy: "fw-1",
  url: `${plain.url}/a.fwpkg`,
  bytes: null,
  secretHeaders: {},
  ...change,
});
const fetchIt = (change: Partial<ArtifactOrder> = {}, stream = streamCall()) => artifacts.fetch(order(change), stream);
const failureOf = async (work: Promise<unknown>): Promise<StepFailure> => {
  const error = await work.then(
    () => new Error("it succeeded"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof StepFailure) return error;
  throw error;
};
/** A download whose connection is cut once some of it is on the disk. */
const cutOff = async (): Promise<StepFailure> => {
  const reported = Promise.withResolvers<void>();
  plain.faults.set("/a.fwpkg", { pauseAfter: { bytes: 100_000, until: reported.promise, thenCut: true } });
  return failureOf(fetchIt({}, { ...streamCall(), report: () => reported.resolve() }));
};
const kept = async (digest: string) => {
  const found = await artifacts.find(digest);
  if (!found) return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of found.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks);
};

test("a file is found once it is whole, and is not asked for again", async () => {
  plain.files.set("/a.fwpkg", file);
  expect(await artifacts.find(digestOf(file))).toBeUndefined();
  expect(await fetchIt({ bytes: file.length })).toBe(file.length);
  expect(await kept(digestOf(file))).toEqual(file);
  await fetchIt();
  expect(plain.asked).toHaveLength(1);
});

test("a download that is cut goes on where it stopped", async () => {
  plain.files.set("/a.fwpkg", file);
  expect(await cutOff()).toMatchObject({ code: "unreachable", disposition: "retry" });
  expect(await artifacts.find(digestOf(file))).toBeUndefined();
  plain.faults.clear();
  expect(await fetchIt()).toBe(file.length);
  const [, range = ""] = /^bytes=(\d+)-$/.exec(plain.asked[1]?.headers.range ?? "") ?? [];
  expect(Number(range)).toBeGreaterThan(0);
  expect(await kept(digestOf(file))).toEqual(file);
});

test("where the server knows no ranges, the whole file is read again", async () => {
  plain.files.set("/a.fwpkg", file);
  await cutOff();
  plain.faults.set("/a.fwpkg", { noRanges: true });
  expect(await fetchIt()).toBe(file.length);
  expect(await kept(digestOf(file))).toEqual(file);
});

test("what is left of a file that was replaced since is not mixed with the new one", async () => {
  plain.files.set("/a.fwpkg", randomBytes(300_000));
  await cutOff();
  plain.faults.clear();
  plain.files.set("/a.fwpkg", file);
  expect(await fetchIt()).toBe(file.length);
  expect(await kept(digestOf(file))).toEqual(file);
});

test("a crash between the last byte and the name leads to no second download", async () => {
  plain.files.set("/a.fwpkg", file);
  await fetchIt();
  const whole = join(directory, "files", digestOf(file).slice(7));
  renameSync(whole, `${whole}-${createHash("sha256").update("fw-1").digest("hex").slice(0, 16)}.part`);
  expect(await fetchIt()).toBe(file.length);
  expect(await kept(digestOf(file))).toEqual(file);
});

test("two records that name the same file get it, both at once", async () => {
  plain.files.set("/a.fwpkg", file);
  const both = Promise.withResolvers<void>();
  plain.faults.set("/a.fwpkg", { pauseAfter: { bytes: 1_000, until: both.promise } });
  const fetching = ["fw-1", "fw-2"].map((wantedBy) => fetchIt({ wantedBy }));
  await eventually(async () => plain.asked.length === 2, { what: "both download" });
  both.resolve();
  expect(await Promise.all(fetching)).toEqual([file.length, file.length]);
  expect(await kept(digestOf(file))).toEqual(file);
  expect(readdirSync(join(directory, "files"))).toHaveLength(1);
});

test("another file than its digest says is refused, and never found", async () => {
  const other = randomBytes(1_000);
  plain.files.set("/a.fwpkg", other);
  expect(await failureOf(fetchIt())).toMatchObject({
    code: "artifact_wrong",
    disposition: "fail",
    facts: { expected: digestOf(file), shown: digestOf(other) },
  });
  expect(await artifacts.find(digestOf(file))).toBeUndefined();
  expect(await artifacts.find(digestOf(other))).toBeUndefined();
});

test("a file that was damaged on the disk is downloaded again", async () => {
  plain.files.set("/a.fwpkg", file);
  await fetchIt();
  writeFileSync(join(directory, "files", digestOf(file).slice(7)), "damaged");
  await fetchIt();
  expect(await kept(digestOf(file))).toEqual(file);
});

test.each([
  ["says so before", {}],
  ["does not say so", { noLength: true }],
])("a file that is too large is not read to its end, where the server %s", async (_, fault) => {
  plain.faults.set("/a.fwpkg", fault);
  plain.files.set("/a.fwpkg", Buffer.alloc(LARGEST + 1));
  expect(await failureOf(fetchIt())).toMatchObject({
    code: "artifact_wrong",
    message: expect.stringContaining("firmware.max_artifact_bytes"),
  });
});

test.each<[number, string, string]>([
  [404, "not_found_there", "fail"],
  [401, "credentials_rejected", "fail"],
  [403, "forbidden", "fail"],
  [503, "busy", "retry"],
  [429, "busy", "retry"],
])("a server that answers %i is %s, and leads to %s", async (status, code, disposition) => {
  plain.faults.set("/a.fwpkg", { status, headers: { "retry-after": "7" } });
  const failure = await failureOf(fetchIt());
  expect(failure).toMatchObject({ code, disposition, facts: { at: "artifact_server" } });
  if (code === "busy") expect(failure.retryAfterMs).toBe(7_000);
});

test("an address outside the networks is not connected to, whoever leads there", async () => {
  expect(await failureOf(fetchIt({ url: "http://127.0.0.2:1/a" }))).toMatchObject({
    code: "address_not_allowed",
    message: expect.stringContaining("firmware.allowed_networks"),
  });
  plain.faults.set("/a.fwpkg", { status: 302, headers: { location: "http://127.0.0.2:1/latest/meta-data" } });
  expect(await failureOf(fetchIt())).toMatchObject({ code: "address_not_allowed" });
  plain.faults.set("/a.fwpkg", { status: 302, headers: { location: "file:///etc/passwd" } });
  expect(await failureOf(fetchIt())).toMatchObject({ code: "protocol", disposition: "fail" });
  plain.faults.set("/a.fwpkg", { status: 302, headers: { location: "/a.fwpkg" } });
  expect(await failureOf(fetchIt())).toMatchObject({ code: "protocol", message: expect.stringContaining("leads on") });
});

test("a token goes to the host of its file, over TLS, and nowhere else", async () => {
  const secretHeaders = { authorization: "Bearer the-token" };
  secure.faults.set("/a.fwpkg", { status: 302, headers: { location: `${secure.url}/moved` } });
  secure.files.set("/moved", file);
  await fetchIt({ url: `${secure.url}/a.fwpkg`, secretHeaders });
  expect(secure.asked.map(({ headers }) => headers.authorization)).toEqual(["Bearer the-token", "Bearer the-token"]);

  plain.files.set("/a.fwpkg", randomBytes(10));
  await failureOf(fetchIt({ digest: digestOf(randomBytes(8)), secretHeaders }));
  expect(plain.asked[0]?.headers.authorization).toBeUndefined();

  const other = await startArtifactServer({ tls: certificate });
  try {
    secure.faults.set("/a.fwpkg", { status: 302, headers: { location: `${other.url}/a.fwpkg` } });
    other.faults.set("/a.fwpkg", { status: 401 });
    const failure = await failureOf(
      fetchIt({ digest: digestOf(Buffer.from("x")), url: `${secure.url}/a.fwpkg`, secretHeaders }),
    );
    expect(failure.message).toContain("not sent to other hosts");
    expect(failure.message).not.toContain("the-token");
    expect(other.asked[0]?.headers.authorization).toBeUndefined();
  } finally {
    await other.close();
  }
});

test("a certificate that nobody vouches for gets no token", async () => {
  const strict = createArtifacts({ directory, mayReach: () => true, largest: LARGEST });
  const asking = strict.fetch(
    order({ url: `${secure.url}/a`, secretHeaders: { authorization: "Bearer x" } }),
    streamCall(),
  );
  expect(await failureOf(asking)).toMatchObject({ code: "unreachable" });
  expect(secure.asked).toEqual([]);
});

test("a download ends when it is told to, and what it has stays", async () => {
  plain.files.set("/a.fwpkg", file);
  const stop = new AbortController();
  const never = Promise.withResolvers<void>();
  plain.faults.set("/a.fwpkg", { pauseAfter: { bytes: 100_000, until: never.promise } });
  const reported = Promise.withResolvers<void>();
  const stream = { ...streamCall(stop.signal), report: () => reported.resolve() };
  const downloading = fetchIt({}, stream);
  await reported.promise;
  stop.abort(new StepFailure("stopped", "the lease was lost"));
  expect(await failureOf(downloading)).toMatchObject({ code: "stopped" });
  never.resolve();
  plain.faults.clear();
  await fetchIt();
  expect(plain.asked[1]?.headers.range).toBeDefined();
});

test("no piece is written once the lease is lost", async () => {
  plain.files.set("/a.fwpkg", file);
  let pieces = 0;
  const stream: StreamCall = {
    ...streamCall(),
    async sendChunk(send) {
      if (pieces === 1) throw new StepFailure("stopped", "the lease was lost");
      pieces += 1;
      return send(new AbortController().signal);
    },
  };
  expect(await failureOf(fetchIt({}, stream))).toMatchObject({ code: "stopped" });
  expect(await artifacts.find(digestOf(file))).toBeUndefined();
});

test("a directory that cannot be written to is the server's own trouble", async () => {
  plain.files.set("/a.fwpkg", file);
  writeFileSync(join(directory, "files"), "no directory");
  expect(await failureOf(fetchIt())).toMatchObject({ code: "server_trouble", disposition: "retry" });
});

test.each([
  ["before anything is downloaded", [0]],
  ["in the middle of a download", [1e9, 0]],
])("a disk without room, %s, is refused with its numbers, and no part of the file stays", async (_, free) => {
  const large = randomBytes(3_000_000);
  plain.files.set("/large.fwpkg", large);
  const files = join(directory, "files");
  const left = [...free];
  const small = createArtifacts({
    ...{ directory: files, mayReach: () => true, largest: 10_000_000 },
    freeBytes: async () => left.shift() ?? 0,
  });
  const wanted = order({ digest: digestOf(large), url: `${plain.url}/large.fwpkg` });
  expect(await failureOf(small.fetch(wanted, streamCall()))).toMatchObject({
    ...{ code: "no_room", disposition: "retry", facts: { name: files } },
    message: expect.stringMatching(/^the firmware directory \S+ has 0 MB free, \d MB more are to come/),
  });
  expect(readdirSync(files)).toEqual([]);
  await createArtifacts({ directory: files, mayReach: () => true, largest: 10_000_000 }).fetch(wanted, streamCall());
});

test("a part that nothing was written to for days goes, also of a file that a record names", async () => {
  plain.files.set("/a.fwpkg", file);
  await cutOff();
  const [part = ""] = readdirSync(join(directory, "files"));
  await artifacts.sweep(new Set([digestOf(file)]));
  expect(readdirSync(join(directory, "files"))).toEqual([part]);
  utimesSync(join(directory, "files", part), new Date(0), new Date(0));
  await artifacts.sweep(new Set([digestOf(file)]));
  expect(readdirSync(join(directory, "files"))).toEqual([]);
});

test("sweeping removes what no record names, unless it changed lately", async () => {
  plain.files.set("/a.fwpkg", file);
  await fetchIt();
  const path = join(directory, "files", digestOf(file).slice(7));
  await artifacts.sweep(new Set());
  expect(readdirSync(join(directory, "files"))).toHaveLength(1);
  utimesSync(path, new Date(0), new Date(0));
  await artifacts.sweep(new Set([digestOf(file)]));
  expect(readdirSync(join(directory, "files"))).toHaveLength(1);
  await artifacts.sweep(new Set());
  expect(readdirSync(join(directory, "files"))).toEqual([]);
});

test("what is no digest is never part of a path", async () => {
  expect(await artifacts.find("sha256:../../etc/passwd")).toBeUndefined();
  expect(await artifacts.find("../x")).toBeUndefined();
});
