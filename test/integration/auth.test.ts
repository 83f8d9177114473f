import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer, type Server } from "node:tls";
import { describe, expect, test } from "vitest";
import { createAuthenticator } from "../../src/api/auth/authenticate.ts";
import { createBearerTokens } from "../../src/api/auth/bearer-tokens.ts";
import { ensureDevToken } from "../../src/api/auth/dev-token.ts";
import { type Peer, peerOf } from "../../src/api/transport/peer.ts";
import { TokenUses, warnOfAge } from "../../src/engine/token-upkeep.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { systemClock } from "../../src/kernel/time/clock.ts";
import { hours, seconds } from "../../src/kernel/time/duration.ts";
import { tokenListing, tokenListingFor } from "../../src/store/access/token-list.ts";
import { createToken, noteUses, revokeToken, tokensThatAge, verifyToken } from "../../src/store/access/tokens.ts";
import { access } from "../../src/wiring/things/all-things.ts";
import { needing } from "../support/counterparts/needing.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

const READ = "millwright.v1.PowerShelfService/ListPowerShelves";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const now = new Date("2025-06-01T12:00:00Z");
const listed = () =>
  tokenListing.collect(database.db, { filter: [], order: tokenListing.order, limit: 1000 }, (token) => token);
const later = (ms: number) => new Date(now.getTime() + ms);

describe("the token store", () => {
  test("verifies a token that it made, and knows no other", async () => {
    const { db } = database;
    const { id, token } = await createToken(db, { name: "pat", roles: ["operator"], createdBy: "dev" });
    expect(token).toMatch(new RegExp(`^mw_${id}_[0-9a-f]{64}$`));
    expect(await verifyToken(db, token, now)).toEqual({
      status: "valid",
      id,
      name: "pat",
      roles: ["operator"],
      scope: null,
      expiresAt: null,
      boundTo: null,
    });
    const lastDigit = token.endsWith("0") ? "1" : "0";
    const others = [
      `${token.slice(0, -1)}${lastDigit}`,
      `mw_${"0".repeat(16)}_${"0".repeat(64)}`,
      token.toUpperCase(),
      `${token}\n`,
      id,
      "' or true --",
    ];
    for (const other of others) expect(await verifyToken(db, other, now)).toEqual({ status: "unknown" });
  });

  test("keeps nothing that could be used to sign in", async () => {
    const { db } = database;
    const { token } = await createToken(db, { name: "kept", roles: ["viewer"], createdBy: "dev" });
    const [row] = await db.query<{ all: string }>(`select t::text as all from tokens t where name = 'kept'`);
    const secret = token.split("_")[2] ?? "";
    expect(row?.all).not.toContain(secret);
    expect(JSON.stringify(await listed())).not.toContain(secret);
  });

  test("refuses a token after its end", async () => {
    const { db } = database;
    const { token } = await createToken(db, {
      name: "short",
      roles: ["viewer"],
      createdBy: "dev",
      expiresAt: later(1000),
    });
    expect(await verifyToken(db, token, later(999))).toMatchObject({ status: "valid" });
    expect(await verifyToken(db, token, later(1000))).toEqual({ status: "expired", at: later(1000) });
  });

  test("refuses a revoked token; revoking again keeps the first time", async () => {
    const { db } = database;
    const { id, token } = await createToken(db, { name: "gone", roles: ["viewer"], createdBy: "dev" });
    expect(await revokeToken(db, id, now)).toMatchObject({ id, name: "gone", revokedAt: now });
    expect(await revokeToken(db, id, later(5000))).toMatchObject({ revokedAt: now });
    expect(await verifyToken(db, token, now)).toEqual({ status: "revoked", at: now });
    expect(await revokeToken(db, "0000000000000000", now)).toBeNull();
  });

  test("refuses a token of the greatest age, or at the end that it was given if that is earlier", async () => {
    const { db } = database;
    const { token, agedFrom } = await createToken(db, { name: "old", roles: ["viewer"], createdBy: "dev" });
    const end = new Date((agedFrom?.getTime() ?? 0) + hours(24));
    const just = new Date(end.getTime() - 1);
    expect(await verifyToken(db, token, just, hours(24))).toMatchObject({ status: "valid", expiresAt: end });
    expect(await verifyToken(db, token, end, hours(24))).toEqual({ status: "expired", at: end });
    expect(await verifyToken(db, token, end)).toMatchObject({ status: "valid", expiresAt: null });
    const given = { name: "shorter", roles: ["viewer"], createdBy: "dev", expiresAt: just };
    const short = await createToken(db, given);
    expect(await verifyToken(db, short.token, just, hours(24))).toEqual({ status: "expired", at: just });
    const ageless = await createToken(db, { name: "dev", roles: ["admin"], createdBy: "dev", ageless: true });
    expect(await verifyToken(db, ageless.token, end, hours(24))).toMatchObject({ status: "valid", expiresAt: null });
  });

  test("names the tokens that their age will end soon, and no others", async () => {
    const { db } = database;
    await db.execute("update tokens set revoked_at = now() where revoked_at is null");
    const made = (name: string, more: object) => createToken(db, { name, roles: ["viewer"], createdBy: "x", ...more });
    const { agedFrom } = await made("ages", {});
    const at = (days: number) => new Date((agedFrom?.getTime() ?? 0) + hours(24 * days));
    await made("ends before", { expiresAt: at(80) });
    await made("ageless", { ageless: true });
    const soon = (day: number) => tokensThatAge(db, { from: at(day), to: at(day + 14), maxAge: hours(24 * 90) });
    expect(await soon(75)).toEqual([]);
    expect(await soon(76.1)).toEqual(["ages"]);
    expect(await soon(90.1)).toEqual([]);
    const listing = tokenListingFor(hours(24 * 90));
    const ended = [{ field: "status", operator: "=", value: "expired" }] as const;
    const expired = () =>
      listing.collect(db, { filter: [...ended], order: listing.order, limit: 9 }, ({ name }) => name);
    expect(await expired()).toEqual([]);
    await db.execute("update tokens set aged_from = aged_from - interval '91 days' where name = 'ages'");
    expect(await expired()).toEqual(["ages"]);
    await db.execute("update tokens set aged_from = aged_from + interval '91 days' where name = 'ages'");
    const lines: string[] = [];
    const clock = { ...systemClock, now: () => at(80), monotonic: () => 0 };
    const log = { ...silentLog, warn: (_: object, text: string) => lines.push(text) };
    await warnOfAge({ db, log: log as never, clock, maxAge: hours(24 * 90) });
    expect(lines).toEqual([expect.stringContaining("end then: ages;")]);
  });

  test("gives two tokens that work two names, also when both are made at once", { tags: "race" }, async () => {
    const { db } = database;
    const made = () => createToken(db, { name: "one of a kind", roles: ["viewer"], createdBy: "dev" });
    const outcomes = await Promise.allSettled([made(), made(), made()]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
  });

  test("notes the last use, to about a minute, also when several replicas do", { tags: "race" }, async () => {
    const { db } = database;
    const { id } = await createToken(db, { name: "used", roles: ["viewer"], createdBy: "dev" });
    const row = async () => {
      const [found] = await db.query<{ at: Date | null; written: string }>(
        "select last_used_at as at, xmin::text as written from tokens where id = $1",
        [id],
      );
      return found;
    };
    expect((await row())?.at).toBeNull();
    await Promise.all([1, 2, 3].map((ms) => noteUses(db, new Map([[id, later(ms)]]))));
    const first = await row();
    expect(first?.at?.getTime()).toBeGreaterThan(now.getTime());
    await noteUses(db, new Map([[id, later(59_000)]]));
    expect(await row()).toEqual(first);
    await noteUses(db, new Map([[id, later(61_000)]]));
    expect((await row())?.at).toEqual(later(61_000));
  });

  test("keeps uses that could not be written, and lets no call wait for them", async () => {
    const { db } = database;
    const { id, token } = await createToken(db, { name: "busy", roles: ["viewer"], createdBy: "dev" });
    const uses = new TokenUses(systemClock);
    const verify = (text: string) => verifyToken(db, text, new Date());
    const options = { verify, known: [], cacheFor: seconds(5), clock: systemClock };
    const tokens = createBearerTokens({ ...options, used: (tokenId) => uses.note(tokenId) });
    await db.transaction(async (tx) => {
      await tx.query("select from tokens where id = $1 for update", [id]);
      await tokens.identify(token); // somebody else holds the row, and the call goes on
    });
    const away = { execute: () => Promise.reject(new Error("away")) } as unknown as typeof db;
    await expect(uses.write(away)).rejects.toThrow("away");
    await uses.write(db);
    const [row] = await db.query<{ at: Date | null }>("select last_used_at as at from tokens where id = $1", [id]);
    expect(row?.at).not.toBeNull();
  });
});

test("the dev token signs its holder in as an administrator named dev, and survives a restart", async () => {
  const { db } = database;
  const dataDir = await mkdtemp(join(tmpdir(), "millwright-auth-"));
  try {
    const store = {
      verify: (token: string) => verifyToken(db, token, new Date()),
      create: (token: Parameters<typeof createToken>[1]) => createToken(db, token),
    };
    const { token, path } = await ensureDevToken(dataDir, store);
    expect(await ensureDevToken(dataDir, store)).toEqual({ token, path });
    const tokens = createBearerTokens({ verify: store.verify, known: [], cacheFor: seconds(5), clock: systemClock });
    const authenticate = createAuthenticator({ mode: "required", tokens, certificateRoles: {}, access });
    const headers = new Headers({ authorization: `Bearer ${(await readFile(path, "utf8")).trim()}` });
    const caller = await authenticate(headers, { address: "127.0.0.1" }, "millwright.v1.TokenService/CreateToken");
    expect(caller).toEqual({ name: "dev", roles: ["admin"], address: "127.0.0.1" });
  } finally {
    await rm(dataDir, { recursive: true });
  }
});

function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasOpenssl())(needing("mutual TLS", hasOpenssl() ? "" : "openssl"), () => {
  let directory: string;
  let server: Server;
  const peers: Peer[] = [];
  const file = (name: string) => join(directory, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });

  /** A certificate of its own, by the authority that is named. */
  async function issue(name: string, authority: string, subject: string, altName: string): Promise<void> {
    await writeFile(file(`${name}.ext`), `subjectAltName=${altName}\n`);
    openssl(
      "req",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.csr`,
      "-subj",
      subject,
    );
    openssl(
      "x509",
      "-req",
      "-in",
      `${name}.csr`,
      "-CA",
      `${authority}.crt`,
      "-CAkey",
      `${authority}.key`,
      "-CAcreateserial",
      "-days",
      "2",
      "-out",
      `${name}.crt`,
      "-extfile",
      `${name}.ext`,
    );
  }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "millwright-mtls-"));
    for (const authority of ["trusted", "stranger"]) {
      openssl(
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        `${authority}.key`,
        "-out",
        `${authority}.crt`,
        "-subj",
        `/CN=${authority}`,
      );
    }
    await issue("server", "trusted", "/CN=localhost", "DNS:localhost");
    await issue("person", "trusted", "/OU=operators/CN=kim", "email:kim@example.org");
    await issue("workload", "trusted", "/CN=x", "DNS:flow.example,URI:spiffe://site.example/service/flow");
    await issue("sly", "trusted", "/CN=x", "@names\n[names]\nDNS.1=a.example, URI:spiffe://site.example/service/flow");
    await issue("forged", "stranger", "/OU=operators/CN=kim", "email:kim@example.org");
    const [key, cert, ca] = await Promise.all(
      ["server.key", "server.crt", "trusted.crt"].map((name) => readFile(file(name))),
    );
    server = createServer({ key, cert, ca, requestCert: true, rejectUnauthorized: false }, (socket) => {
      peers.push(peerOf(socket));
      socket.end("seen");
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    await new Promise((resolve) => void server.close(resolve));
    await rm(directory, { recursive: true });
  });

  async function peerShowing(name: string): Promise<Peer> {
    const [key, cert, ca] = await Promise.all(
      [`${name}.key`, `${name}.crt`, "trusted.crt"].map((part) => readFile(file(part))),
    );
    const { port } = server.address() as AddressInfo;
    const socket = connect({ host: "127.0.0.1", port, servername: "localhost", key, cert, ca });
    await new Promise<void>((resolve, reject) => {
      socket
        .on("error", reject)
        .on("close", () => resolve())
        .resume();
    });
    return peers.pop() ?? expect.unreachable();
  }

  const authenticate = createAuthenticator({
    mode: "required",
    access,
    tokens: createBearerTokens({
      verify: async () => ({ status: "unknown" }),
      known: [],
      cacheFor: seconds(1),
      clock: systemClock,
    }),
    certificateRoles: { "OU=operators": ["operator"], "spiffe://site.example/service/*": ["viewer"] },
  });

  test("a person is named by the common name", async () => {
    expect(await authenticate(new Headers(), await peerShowing("person"), READ)).toMatchObject({
      name: "kim",
      roles: ["operator"],
      address: "127.0.0.1",
    });
  });

  test("a workload is named by its SPIFFE id", async () => {
    expect(await authenticate(new Headers(), await peerShowing("workload"), READ)).toMatchObject({
      name: "spiffe://site.example/service/flow",
      roles: ["viewer"],
    });
  });

  test("a URI that is smuggled in another name gives nothing", async () => {
    await expect(authenticate(new Headers(), await peerShowing("sly"), READ)).rejects.toMatchObject({
      kind: "permission_denied",
    });
  });

  test("a certificate of a strange authority does not sign in", async () => {
    await expect(authenticate(new Headers(), await peerShowing("forged"), READ)).rejects.toMatchObject({
      kind: "unauthenticated",
      message: expect.stringContaining("client certificate is not accepted"),
    });
  });
});
