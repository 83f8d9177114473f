import { X509Certificate } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get as httpsGet } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";
import { describe, expect, test } from "vitest";
import { createCertificate } from "../../simulator/certificate/certificate.ts";
import { SAFE_HEADERS } from "../../src/api/transport/browsers/safe-headers.ts";
import { loadConfig } from "../../src/config.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { type Server, startServer } from "../../src/wiring/server.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

let database: TestDatabase;
let directory: string;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-listeners-"));
  mkdirSync(join(directory, "files"));
  writeFileSync(join(directory, "files", "vmlinuz"), "a kernel");
});
afterAll(async () => {
  await database.drop();
  rmSync(directory, { recursive: true });
});

const ANY = "127.0.0.1:0";

function start(settings: Readonly<Record<string, string>>): Promise<Server> {
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_INSTALL_FILES_DIR: join(directory, "files"),
    MILLWRIGHT_HTTP_LISTEN: ANY,
    MILLWRIGHT_GRPC_LISTEN: ANY,
    ...settings,
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  return startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
}

const MAC = "02:00:5e:10:00:77";
const JSON_BODY = { "content-type": "application/json" };

/** Each with what it answers where it is served: to a stranger who knows nothing. */
const BOOT = [
  ["GET", `/api/v1/boot?mac=${MAC}`, 200],
  ["GET", "/api/v1/boot.ipxe", 200],
  ["POST", "/api/v1/boot/steps", 422],
  ["POST", "/api/v1/report", 422],
  ["POST", "/api/v1/nodes/m-nobody/installation-status", 422],
  ["GET", "/files/vmlinuz", 200],
] as const;
const REST_OF_ALL = [
  ["GET", "/healthz", 200],
  ["GET", "/readyz", 200],
  ["GET", "/metrics", 401],
  ["GET", "/api/v1/nodes", 401],
  ["GET", "/api/v1/docs", 200],
  ["GET", "/api/v1/openapi.json", 200],
  ["POST", "/api/v1/nodes", 401],
  ["POST", "/internal/v1/nodes/n-1/enroll", 422],
  ["POST", "/millwright.v1.SystemService/GetSystem", 401],
  ["POST", "/grpc.health.v1.Health/Check", 200],
] as const;

async function statusOf(url: string, [method, path]: readonly [string, string, number]) {
  // No body of a boot route is a list: a route that is there says so.
  const body = BOOT.some((each) => each[1] === path) ? "[]" : "{}";
  const answer = await fetch(`${url}${path}`, { method, ...(method === "POST" && { headers: JSON_BODY, body }) });
  const lacking = Object.keys(SAFE_HEADERS).filter((name) => !answer.headers.has(name));
  await answer.body?.cancel();
  return [method, path, answer.status, ...lacking];
}
const statusesOf = (url: string, requests: readonly (readonly [string, string, number])[]) =>
  Promise.all(requests.map((request) => statusOf(url, request)));
const nowhere = (requests: readonly (readonly [string, string, number])[]) =>
  requests.map(([method, path]) => [method, path, 404]);

describe("without listeners of their own", () => {
  test("everything answers on http.listen, as it always did", async () => {
    const server = await start({});
    try {
      expect(server.bootUrl).toBeUndefined();
      expect(server.bmcUrl).toBeUndefined();
      const all = [...BOOT, ...REST_OF_ALL];
      expect(await statusesOf(server.httpUrl, all)).toEqual(all.map((each) => [...each]));
    } finally {
      await server.stop();
    }
  });
});

describe("with listeners for machines that boot and for BMCs", () => {
  let server: Server;
  let bootUrl: string;
  let bmcUrl: string;
  beforeAll(async () => {
    server = await start({
      MILLWRIGHT_BOOT_LISTEN: ANY,
      MILLWRIGHT_BMC_LISTEN: ANY,
      MILLWRIGHT_BMC_PUBLIC_URL: "http://bmcs.example",
    });
    bootUrl = server.bootUrl ?? "";
    bmcUrl = server.bmcUrl ?? "";
  });
  afterAll(() => server.stop());

  test("boot routes answer on boot.listen, with safe headers, and nothing else does", async () => {
    expect(await statusesOf(bootUrl, BOOT)).toEqual(BOOT.map((each) => [...each]));
    expect(await statusesOf(bootUrl, REST_OF_ALL)).toEqual(nowhere(REST_OF_ALL));
  });

  test("boot routes answer nowhere else", async () => {
    for (const url of [server.httpUrl, bmcUrl]) expect(await statusesOf(url, BOOT)).toEqual(nowhere(BOOT));
    expect(await statusesOf(server.httpUrl, REST_OF_ALL)).toEqual(REST_OF_ALL.map((each) => [...each]));
    expect(await statusesOf(bmcUrl, REST_OF_ALL)).toEqual(nowhere(REST_OF_ALL));
  });

  test("a script names the listener that gave it out", async () => {
    const script = await (await fetch(`${bootUrl}/api/v1/boot.ipxe`)).text();
    expect(script).toContain(`${bootUrl}/api/v1/boot?`);
  });

  test("a web page reaches none of it, by whatever name", async () => {
    const foreign = { headers: { ...JSON_BODY, origin: "http://evil.example" }, method: "POST", body: "{}" };
    for (const url of [bootUrl, bmcUrl]) {
      expect((await fetch(`${url}/api/v1/report`, foreign)).status).toBe(403);
      const image = { headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" } };
      expect((await fetch(`${url}/api/v1/boot?mac=${MAC}`, image)).status).toBe(403);
    }
  });

  test("what is too large is refused there too", async () => {
    const body = JSON.stringify({ mac_address: MAC, hostname: "x".repeat(1_100_000) });
    expect((await fetch(`${bootUrl}/api/v1/report`, { method: "POST", headers: JSON_BODY, body })).status).toBe(413);
    expect((await fetch(`${bootUrl}/files/${"x".repeat(20_000)}`)).status).toBe(431);
  });

  test("nothing of them is left once the server has stopped", async () => {
    const other = await start({ MILLWRIGHT_BOOT_LISTEN: ANY });
    expect((await fetch(`${other.bootUrl}/api/v1/boot.ipxe`)).status).toBe(200);
    await other.stop();
    await expect(fetch(`${other.bootUrl}/api/v1/boot.ipxe`)).rejects.toThrow();
  });
});

test.each([
  ["boot.listen", "MILLWRIGHT_BOOT_LISTEN", "machines that boot"],
  ["bmc.listen", "MILLWRIGHT_BMC_LISTEN", "BMCs"],
])("a port in use for %s is named with its setting", async (setting, variable, what) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  await expect(start({ [variable]: `127.0.0.1:${port}` })).rejects.toMatchObject({
    message: `cannot listen on 127.0.0.1:${port} for ${what}: another process listens there already; choose another port`,
    detail: { next: expect.stringContaining(`set ${setting} `) },
  });
  await new Promise((resolve) => other.close(resolve));
});

test("machines boot without TLS and BMCs fetch with it, unless the settings say otherwise", async () => {
  const { key, cert } = createCertificate({ addresses: ["127.0.0.1"], now: new Date() });
  const [keyFile, certFile] = [join(directory, "tls.key"), join(directory, "tls.crt")];
  writeFileSync(keyFile, key, { mode: 0o600 });
  writeFileSync(certFile, cert);
  const listening = { MILLWRIGHT_BOOT_LISTEN: ANY, MILLWRIGHT_BMC_LISTEN: ANY };
  const tls = { MILLWRIGHT_TLS_KEY_FILE: keyFile, MILLWRIGHT_TLS_CERT_FILE: certFile };
  const usual = await start({ ...listening, ...tls });
  const turned = await start({ ...listening, ...tls, MILLWRIGHT_BOOT_TLS: "true", MILLWRIGHT_BMC_TLS: "false" });
  try {
    const schemes = ({ httpUrl, bootUrl = "", bmcUrl = "" }: Server) =>
      [httpUrl, bootUrl, bmcUrl].map((url) => new URL(url).protocol);
    expect(schemes(usual)).toEqual(["https:", "http:", "https:"]);
    expect(schemes(turned)).toEqual(["https:", "https:", "http:"]);
    expect((await fetch(`${usual.bootUrl}/api/v1/boot.ipxe`)).status).toBe(200);
    expect(await overTls(`${turned.bootUrl}/api/v1/boot.ipxe`, cert)).toContain(`${turned.bootUrl}/api/v1/boot?`);
    expect((await fetch(`${turned.bmcUrl}/seeds/r-1/key/seed.iso`)).status).toBe(404);
  } finally {
    await Promise.all([usual.stop(), turned.stop()]);
  }
});

test("a new certificate is shown on every port once the server reads its files again", async () => {
  const [keyFile, certFile] = [join(directory, "renewed.key"), join(directory, "renewed.crt")];
  const write = ({ key, cert } = createCertificate({ addresses: ["127.0.0.1"], now: new Date() })) => {
    writeFileSync(keyFile, key, { mode: 0o600 });
    writeFileSync(certFile, cert);
    return new X509Certificate(cert).fingerprint256;
  };
  const first = write();
  const server = await start({
    ...{ MILLWRIGHT_TLS_KEY_FILE: keyFile, MILLWRIGHT_TLS_CERT_FILE: certFile },
    ...{ MILLWRIGHT_BOOT_LISTEN: ANY, MILLWRIGHT_BMC_LISTEN: ANY, MILLWRIGHT_BOOT_TLS: "true" },
  });
  try {
    const { httpUrl, grpcAddress, bootUrl = "", bmcUrl = "" } = server;
    const shown = () =>
      Promise.all([httpUrl, `https://${grpcAddress}`, bootUrl, bmcUrl].map((url) => fingerprintAt(new URL(url))));
    expect(await shown()).toEqual([first, first, first, first]);
    const next = write();
    server.reload();
    expect(await shown()).toEqual([next, next, next, next]);
    writeFileSync(keyFile, createCertificate({ addresses: [], now: new Date() }).key);
    server.reload();
    expect(await shown()).toEqual([next, next, next, next]);
    const readyz = await overTls(`${httpUrl}/readyz`, readFileSync(certFile, "utf8"));
    expect(JSON.parse(readyz)).toMatchObject({
      status: "ready",
      checks: {
        tls: expect.stringMatching(/^ok, but tls\.key_file: the key in .* is not that of the certificate in /),
      },
    });
  } finally {
    await server.stop();
  }
});

test("without a place to write to, a server with a database and a key elsewhere serves", async () => {
  const keyFile = join(directory, "key-of-a-secret-mount");
  copyFileSync(join(directory, "secret-key"), keyFile);
  const nowhere = "/sys/millwright"; // read-only to everybody, also to root
  const server = await start({ MILLWRIGHT_DATA_DIR: nowhere, MILLWRIGHT_SECRET_KEY_FILE: keyFile });
  try {
    const answer = await fetch(`${server.httpUrl}/readyz`);
    expect({ status: answer.status, isThere: existsSync(nowhere) }).toEqual({ status: 200, isThere: false });
  } finally {
    await server.stop();
  }
});

const fingerprintAt = ({ port }: URL): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({
      port: Number(port),
      host: "127.0.0.1",
      rejectUnauthorized: false,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    socket.on("error", reject).on("secureConnect", () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
  });

const overTls = (url: string, ca: string): Promise<string> =>
  new Promise((resolve, reject) => {
    httpsGet(url, { ca }, (answer) => resolve(text(answer))).on("error", reject);
  });
