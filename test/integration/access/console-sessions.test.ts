import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadConfig } from "../../../src/config.ts";
import { NO_LIMITS } from "../../../src/kernel/access/scope.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
let directory: string;
let server: Server;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-sessions-"));
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_AUTH_SESSION_LIFETIME: "2h",
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  server = await startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
});
afterAll(async () => {
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

const OWN_PAGE = { "sec-fetch-site": "same-origin" };
const READ = "millwright.v1.MachineService/ListMachines";

let made = 0;
const tokenOf = (role: string, expiresAt: Date | null = null) => {
  made += 1;
  return createToken(database.db, { name: `${role}-${made}`, roles: [role], createdBy: "test", expiresAt });
};

const signIn = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${server.httpUrl}/auth/session`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

/** The cookie alone, as a browser sends it back. */
const cookieOf = (answer: Response): string => (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";

async function sessionOf(
  role: string,
): Promise<{ readonly cookie: string; readonly token: string; readonly tokenId: string }> {
  const { id: tokenId, token } = await tokenOf(role);
  const answer = await signIn({ token });
  expect(answer.status).toBe(200);
  return { cookie: cookieOf(answer), token, tokenId };
}

const call = (method: string, headers: Record<string, string>, body: unknown = {}) =>
  fetch(`${server.httpUrl}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

describe("a session", () => {
  test("is opened by a token, and lets its browser do what the token may, and no more", async () => {
    const { token } = await tokenOf("viewer");
    const answer = await signIn({ token });
    expect(await answer.json()).toMatchObject({ roles: ["viewer"], expires_at: expect.any(String) });
    expect(answer.headers.get("set-cookie")).toMatch(
      /^millwright-session=[0-9a-f]{16}\.[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=7(200|199)$/,
    );
    const cookie = cookieOf(answer);
    expect((await call(READ, { cookie, ...OWN_PAGE })).status).toBe(200);
    const refused = await call("millwright.v1.TokenService/CreateToken", { cookie, ...OWN_PAGE }, { name: "x" });
    expect(refused.status).toBe(403);
  });

  test("is kept to the scope of its token", async () => {
    const { token } = await createToken(database.db, {
      ...{ name: "scoped", roles: ["admin"], createdBy: "test" },
      scope: { ...NO_LIMITS, methods: ["runs"] },
    });
    const cookie = cookieOf(await signIn({ token }));
    expect((await call("millwright.v1.RunService/ListRuns", { cookie, ...OWN_PAGE })).status).toBe(200);
    expect((await call(READ, { cookie, ...OWN_PAGE })).status).toBe(403);
  });

  test("is kept as a hash alone, and what was done is in the journal", async () => {
    const { cookie } = await sessionOf("viewer");
    const [, secret = ""] = cookie.split("=", 2);
    const [id = "", rest = ""] = secret.split(".");
    const rows = await database.db.query("select c::text as row from console_sessions c where id = $1", [id]);
    expect(JSON.stringify(rows)).not.toContain(rest);
    const events = await database.db.query("select type, actor from journal where kind = 'session' and id = $1", [id]);
    expect(events).toEqual([{ type: "created", actor: expect.stringMatching(/^viewer-/) }]);
  });

  test("is good for calls of our own pages alone", async () => {
    const { cookie } = await sessionOf("viewer");
    const origin = server.httpUrl;
    const verdicts = await Promise.all(
      [{}, { "sec-fetch-site": "none" }, { "sec-fetch-site": "same-site" }, OWN_PAGE, { origin }].map(
        async (headers) => (await call(READ, { cookie, ...(headers as Record<string, string>) })).status,
      ),
    );
    expect(verdicts).toEqual([403, 403, 403, 200, 200]);
  });

  test("ends when its reader signs out, and the cookie goes", async () => {
    const { cookie } = await sessionOf("operator");
    const out = await fetch(`${server.httpUrl}/auth/session`, { method: "DELETE", headers: { cookie, ...OWN_PAGE } });
    expect(out.status).toBe(204);
    expect(out.headers.get("set-cookie")).toMatch(/^millwright-session=; .*Max-Age=0$/);
    const refused = await call(READ, { cookie, ...OWN_PAGE });
    expect(refused.status).toBe(401);
    expect(await refused.text()).toContain("the session was revoked at");
  });

  test("ends at once with the token that opened it", async () => {
    const { cookie, tokenId } = await sessionOf("viewer");
    expect((await call(READ, { cookie, ...OWN_PAGE })).status).toBe(200);
    const { token: admin } = await tokenOf("admin");
    await call("millwright.v1.TokenService/RevokeToken", { authorization: `Bearer ${admin}` }, { id: tokenId });
    expect((await call(READ, { cookie, ...OWN_PAGE })).status).toBe(401);
  });

  test("lasts no longer than its token", async () => {
    const end = new Date(Date.now() + 60_000);
    const { token } = await tokenOf("viewer", end);
    const answer = await signIn({ token });
    expect(Date.parse(((await answer.json()) as { expires_at: string }).expires_at)).toBe(end.getTime());
  });

  test("is listed for an administrator, who ends it", async () => {
    const { cookie } = await sessionOf("viewer");
    const id = /=([0-9a-f]{16})\./.exec(cookie)?.[1];
    const { token } = await tokenOf("admin");
    const authorization = `Bearer ${token}`;
    const list = async () => {
      const answer = await call("millwright.v1.SessionService/ListSessions", { authorization }, { filter: `id=${id}` });
      return ((await answer.json()) as { sessions: unknown[] }).sessions;
    };
    expect(await list()).toMatchObject([{ id, credential: "token", roles: ["viewer"], address: "127.0.0.1" }]);
    const ended = await call("millwright.v1.SessionService/RevokeSession", { authorization }, { id });
    expect(ended.status).toBe(200);
    expect(await list()).toMatchObject([{ id, endedAt: expect.any(String) }]);
    expect((await call(READ, { cookie, ...OWN_PAGE })).status).toBe(401);
  });
});

describe("a sign-in", () => {
  test("by the code of a link works once", async () => {
    const { token } = await tokenOf("admin");
    const [, code = ""] = server.signInLink(token).split("#code=");
    const first = await signIn({ code });
    expect(first.status).toBe(200);
    expect((await call(READ, { cookie: cookieOf(first), ...OWN_PAGE })).status).toBe(200);
    const second = await signIn({ code });
    expect(second.status).toBe(401);
    expect(await second.text()).toContain("used already");
  });

  test.each<[string, unknown, number]>([
    ["an unknown token", { token: "mw_0000000000000000_nothing" }, 401],
    ["a token that no header can hold", { token: "a\u0000b" }, 401],
    ["nothing", {}, 401],
    ["a field that is not known", { password: "x" }, 400],
    ["a token that is no text", { token: 5 }, 400],
    ["a list", [], 400],
  ])("with %s is refused, and says why", async (_what, body, status) => {
    const answer = await signIn(body);
    expect(answer.status).toBe(status);
    expect(((await answer.json()) as { error: { message: string } }).error.message).not.toBe("");
    expect(answer.headers.get("set-cookie")).toBeNull();
  });

  test("of another site's page is refused", async () => {
    const { token } = await tokenOf("viewer");
    expect((await signIn({ token }, { origin: "http://evil.example" })).status).toBe(403);
  });

  test("that fails too often has to wait, also with a good token", async () => {
    const { token } = await tokenOf("viewer");
    let last = 401;
    for (let n = 0; n < 20 && last === 401; n += 1) last = (await signIn({ token: "mw_wrong" })).status;
    expect(last).toBe(429);
    const refused = await signIn({ token });
    expect(refused.status).toBe(429);
    expect(await refused.text()).toContain("too many failed sign-ins");
    // What is signed in already goes on.
    expect((await call(READ, { authorization: `Bearer ${token}` })).status).toBe(200);
  });
});
