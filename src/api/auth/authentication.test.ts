import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../kernel/time/clock.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { access } from "../../wiring/things/all-things.ts";
import { type AuthSettings, createAuthentication } from "./authentication.ts";

const READ = "millwright.v1.PowerShelfService/ListPowerShelves";
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "millwright-authentication-"));
});
afterAll(() => rm(directory, { recursive: true }));

const settings = (oidc: Partial<AuthSettings["oidc"]> = {}): AuthSettings => ({
  mode: "required",
  tokens: [],
  tokenCache: seconds(5),
  oidc: {
    issuer: null,
    audience: null,
    jwksUrl: null,
    jwksFile: null,
    nameClaim: "sub",
    rolesClaim: "roles",
    roles: {},
    ...{ clientId: null, clientSecretFile: null, scopes: "openid" },
    ...oidc,
  },
  mtls: { roles: {} },
});
const create = (oidc?: Partial<AuthSettings["oidc"]>) =>
  createAuthentication({
    settings: settings(oidc),
    access,
    verify: async () => ({ status: "unknown" }),
    clock: systemClock,
  });

describe("authentication as configured", () => {
  test("accepts tokens signed with a key of the key file", async () => {
    const { privateKey, publicKey } = await generateKeyPair("EdDSA");
    const jwksFile = join(directory, "keys.json");
    await writeFile(jwksFile, JSON.stringify({ keys: [await exportJWK(publicKey)] }));
    const { authenticate } = create({ issuer: "https://id.example", audience: "millwright", jwksFile });
    const jwt = await new SignJWT({ roles: ["viewer"] })
      .setProtectedHeader({ alg: "EdDSA" })
      .setIssuer("https://id.example")
      .setAudience("millwright")
      .setSubject("pat")
      .setExpirationTime("1m")
      .sign(privateKey);
    const caller = await authenticate(new Headers({ authorization: `Bearer ${jwt}` }), { address: null }, READ);
    expect(caller).toMatchObject({ name: "pat", roles: ["viewer"], address: null });
  });

  test.each([
    ["none", undefined],
    ["no JSON", "keys"],
    ["no keys", '{"keys":[]}'],
  ])("names the key file that holds %s", async (what, content) => {
    const jwksFile = join(directory, `${what}.json`);
    if (content !== undefined) await writeFile(jwksFile, content);
    const configure = () => create({ issuer: "https://id.example", audience: "millwright", jwksFile });
    expect(configure).toThrow(`auth.oidc.jwks_file (${jwksFile})`);
    if (content !== undefined) expect(configure).not.toThrow(content);
  });

  test("takes no JSON Web Tokens without an issuer", async () => {
    const { authenticate } = create();
    await expect(authenticate(new Headers({ authorization: "Bearer a.b.c" }), { address: null }, READ)).rejects.toThrow(
      "not configured",
    );
  });
});
