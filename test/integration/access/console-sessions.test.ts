import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createAuthentication } from "../../../src/api/auth/authentication.ts";
import type { KnownToken } from "../../../src/api/auth/bearer-tokens.ts";
import { loadConfig } from "../../../src/config.ts";
import { NO_LIMITS } from "../../../src/kernel/access/scope.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { type Duration, hours, seconds } from "../../../src/kernel/time/duration.ts";
import { type Credential, openSession, verifySession } from "../../../src/services/system/sessions.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { access } from "../../../src/wiring/things/all-things.ts";
import { CLIENT_ID, CLIENT_SECRET, FormBrowser, type Issuer, startIssuer } from "../../support/access/issuer.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
let directory: string;
let server: Server;
let issuer: Issuer;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-sessions-"));
  issuer = await startIssuer();
  writeFileSync(join(directory, "client-secret"), `${CLIENT_SECRET}\n`);
  const env = {
    MILLWRIGHT_AUTH_OIDC_ISSUER: issuer.url,
    MILLWRIGHT_AUTH_OIDC_AUDIENCE: "millwright-api",
    MILLWRIGHT_AUTH_OIDC_JWKS_URL: `${issuer.url}/jwks`,
    MILLWRIGHT_AUTH_OIDC_ROLES_CLAIM: "groups",
    MILLWRIGHT_AUTH_OIDC_ROLES: JSON.stringify({ sre: ["operator"] }),
    MILLWRIGHT_AUTH_OIDC_CLIENT_ID: CLIENT_ID,
    MILLWRIGHT_AUTH_OIDC_CLIENT_SECRET_FILE: join(directory, "client-secret"),
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_AUTH_SESSION_LIFETIME: "2h",
    MILLWRIGHT_AUTH_SESSIONS_PER_CREDENTIAL: "3",
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  server = await startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
  await issuer.serve(server.httpUrl);
});
afterAll(async () => {
  await server.stop();
  await issuer.close();
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

describe("a sign-in at the issuer", () => {
  const login = (to = "/") => `${server.httpUrl}/auth/login?${new URLSearchParams({ to })}`;
  const whyOf = (to: string | undefined) => new URL(to ?? "").searchParams.get("why");
  const NAME = "millwright-sign-in";

  test("gives a session with the roles that the mapped groups give, and leads to the page that was wanted", async () => {
    issuer.groups.set("kim", ["sre", "admin"]);
    const browser = new FormBrowser();
    const back = await browser.signIn(login("/machines?filter=rack%3Dr-1"), "kim", server.httpUrl);
    const { to, cookies } = await browser.ask(back);
    expect(to).toBe(`${server.httpUrl}/machines?filter=rack%3Dr-1`);
    expect(cookies).toEqual([
      `${NAME}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`,
      expect.stringMatching(
        /^millwright-session=[0-9a-f]{16}\.[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=/,
      ),
    ]);
    const cookie = `millwright-session=${browser.cookie(server.httpUrl, "millwright-session")}`;
    const me = await call("millwright.v1.AccessService/GetMyAccess", { cookie, ...OWN_PAGE });
    // A group that is called as a role gives nothing where groups are mapped.
    expect(await me.json()).toMatchObject({ name: "kim", roles: ["operator", "viewer"] });
    // Of the issuer, with the groups that were shown: what is mapped tomorrow counts tomorrow.
    const [row] = await database.db.query(
      "select credential_kind, credential_ref, expires_at > now() + interval '1 hour 58 minutes' as lasts from console_sessions where name = 'kim'",
    );
    expect(row).toEqual({ credential_kind: "jwt", credential_ref: issuer.url, lasts: true });
  });

  test("is finished once: neither its code nor its cookie is good again", async () => {
    const browser = new FormBrowser();
    const back = await browser.signIn(login(), "kim", server.httpUrl);
    const begun = browser.cookie(server.httpUrl, NAME) ?? "";
    await browser.ask(back);
    expect(whyOf((await browser.ask(back)).to)).toBe("expired");
    browser.setCookie(server.httpUrl, NAME, begun);
    expect(whyOf((await browser.ask(back)).to)).toBe("failed");
  });

  test("that another browser began is not finished: state and verifier are not there", async () => {
    const back = await new FormBrowser().signIn(login(), "kim", server.httpUrl);
    const victim = new FormBrowser();
    expect(whyOf((await victim.ask(back)).to)).toBe("expired");
    await victim.ask(login());
    expect(whyOf((await victim.ask(back)).to)).toBe("failed");
    expect(victim.cookie(server.httpUrl, "millwright-session")).toBeUndefined();
  });

  test.each([
    ["no code", "state=x"],
    ["a refusal", "error=access_denied&state=x"],
    ["nothing", ""],
    ["a flood", `code=${"x".repeat(4_000)}&state=x`],
  ])("with %s in the answer gives no session", async (_, query) => {
    const browser = new FormBrowser();
    await browser.ask(login());
    const { to } = await browser.ask(`${server.httpUrl}/auth/callback?${query}`);
    expect(whyOf(to)).toBe("failed");
    expect(browser.cookie(server.httpUrl, "millwright-session")).toBeUndefined();
  });

  test("that the issuer's user calls off says so", async () => {
    const browser = new FormBrowser();
    const { to } = await browser.ask(login());
    const state = new URL(to ?? "").searchParams.get("state");
    const iss = encodeURIComponent(issuer.url);
    const answered = await browser.ask(`${server.httpUrl}/auth/callback?error=access_denied&state=${state}&iss=${iss}`);
    expect(whyOf(answered.to)).toBe("denied");
  });

  test.each(["//other.example", "/\\other.example", "https://other.example", "/a b"])(
    "leads to no page of others: %s",
    async (to) => {
      const browser = new FormBrowser();
      const back = await browser.signIn(login(to), "kim", server.httpUrl);
      expect((await browser.ask(back)).to).toBe(`${server.httpUrl}/`);
    },
  );

  test("is announced by the name of the issuer alone", async () => {
    const answer = await fetch(`${server.httpUrl}/auth/methods`);
    expect(await answer.json()).toEqual({ issuer: new URL(issuer.url).host });
  });
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

  test("ends when its credential opens more of them than it may have; the oldest goes, and others stay", async () => {
    const { token } = await tokenOf("viewer");
    const others = await sessionOf("viewer");
    const cookies: string[] = [];
    for (let n = 0; n < 4; n += 1) cookies.push(cookieOf(await signIn({ token })));
    const statuses = await Promise.all(
      [others.cookie, ...cookies].map(async (cookie) => (await call(READ, { cookie, ...OWN_PAGE })).status),
    );
    expect(statuses).toEqual([200, 401, 200, 200, 200]);
    // At once, too.
    await Promise.all(Array.from({ length: 12 }, () => signIn({ token })));
    const [counted] = await database.db.query<{ working: number }>(
      `select count(*)::int as working from console_sessions where ended_at is null
        and credential_ref = (select credential_ref from console_sessions where id = $1)`,
      [/=([0-9a-f]{16})\./.exec(cookies[3] ?? "")?.[1]],
    );
    expect(counted?.working).toBe(3);
  });

  test("of a token ends with the greatest age of tokens, also where that has become shorter", async () => {
    const { cookie, tokenId } = await sessionOf("viewer");
    const secret = cookie.split("=", 2)[1] ?? "";
    const now = new Date();
    const standing = async (maxAge: number) =>
      (
        await verifySession(
          {
            ...server.deps,
            clock: { ...server.deps.clock, now: () => now } as Clock,
            tokenRules: { maxAge: maxAge as Duration, configured: [] },
          },
          secret,
        )
      ).status;
    expect(await standing(60_000)).toBe("valid");
    await database.db.execute("update tokens set aged_from = now() - interval '1 hour' where id = $1", [tokenId]);
    expect(await standing(60_000)).toBe("expired");
    expect(await standing(7_200_000)).toBe("valid");
  });

  test.each<[string, Credential, readonly string[]]>([
    ["a JSON Web Token", { kind: "jwt", ref: "https://id.example", grounds: ["ops", "staff"] }, ["viewer"]],
    ["a JSON Web Token, opened by an earlier version", { kind: "jwt", ref: null, grounds: null }, ["viewer"]],
    ["a certificate", { kind: "certificate", ref: null, grounds: ["spiffe://site/a", "spiffe://site/b"] }, ["viewer"]],
    ["a certificate, opened by an earlier version", { kind: "certificate", ref: null, grounds: null }, ["viewer"]],
  ])("of %s has the roles that the configuration gives today", async (_what, credential, today) => {
    const { secret } = await openSession(
      server.deps,
      { name: "pat", roles: ["admin", "viewer"], credential, address: null, userAgent: "" },
      { lifetime: hours(1), most: 100 },
    );
    const rolesUnder = async (roles: Readonly<Record<string, readonly string[]>>, issuer = "https://id.example") => {
      const { sessions } = createAuthentication({
        settings: {
          ...{ mode: "required", tokens: [], tokenCache: seconds(5), mtls: { roles } },
          oidc: {
            issuer,
            audience: "a",
            jwksUrl: "https://id.example/keys",
            jwksFile: null,
            nameClaim: "sub",
            ...{ rolesClaim: "r", clientId: null, clientSecretFile: null, scopes: "openid" },
            roles,
          },
        },
        ...{ access, clock: systemClock },
        verify: async () => ({ status: "unknown" }),
        verifySession: (shown) => verifySession(server.deps, shown),
      });
      return sessions.identify(secret).then(
        ({ roles: given }) => given.toSorted(),
        (error: Error) => error.message,
      );
    };
    const earlier = { ops: ["admin"], staff: ["viewer"], "spiffe://site/a": ["admin"], "spiffe://site/*": ["viewer"] };
    expect(await rolesUnder(earlier)).toEqual(["admin", "viewer"]);
    const { ops: _ops, "spiffe://site/a": _a, ...later } = earlier;
    expect(await rolesUnder(later)).toEqual(today);
    if (credential.kind === "jwt" && credential.ref !== null)
      expect(await rolesUnder(earlier, "https://other.example")).toContain("the session was revoked");
  });

  test("of a configured token has the roles that the configuration gives today, and ends with it", async () => {
    const sha256 = "ab".repeat(32);
    const { secret } = await openSession(
      server.deps,
      { name: "ci", roles: ["admin"], credential: { kind: "configured", ref: sha256 }, address: null, userAgent: "" },
      { lifetime: hours(1), most: 100 },
    );
    const rolesWith = (tokens: readonly KnownToken[]) =>
      createAuthentication({
        settings: {
          ...{ mode: "required", tokens, tokenCache: seconds(5), mtls: { roles: {} } },
          oidc: {
            issuer: null,
            audience: null,
            jwksUrl: null,
            jwksFile: null,
            nameClaim: "sub",
            ...{ rolesClaim: "r", clientId: null, clientSecretFile: null, scopes: "openid" },
            roles: {},
          },
        },
        ...{ access, clock: systemClock },
        verify: async () => ({ status: "unknown" }),
        verifySession: (shown) => verifySession(server.deps, shown),
      })
        .sessions.identify(secret)
        .then(
          ({ roles }) => roles,
          (error: Error) => error.message,
        );
    expect(await rolesWith([{ name: "ci", roles: ["viewer"], sha256 }])).toEqual(["viewer"]);
    expect(await rolesWith([])).toContain("the session was revoked");
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
