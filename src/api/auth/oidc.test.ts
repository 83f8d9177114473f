import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createJwtIdentifier, looksLikeJwt, type OidcOptions } from "./oidc.ts";

const now = new Date("2025-06-01T12:00:00Z");
const seconds = Math.floor(now.getTime() / 1000);
const clock = { now: () => now, monotonic: () => 0 };

const { privateKey, publicKey } = await generateKeyPair("ES256");
const stranger = await generateKeyPair("ES256");
const set = { keys: [{ ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" }] };

const options: OidcOptions = {
  issuer: "https://id.example",
  audience: "millwright",
  keys: { set },
  nameClaim: "sub",
  rolesClaim: "realm.groups",
  roles: { "dc-ops": ["operator", "Flow"] },
  clock,
};

function token(claims: JWTPayload = {}, key = privateKey): Promise<string> {
  return new SignJWT({
    iss: "https://id.example",
    aud: "millwright",
    sub: "pat",
    exp: seconds + 60,
    realm: { groups: ["viewer"] },
    ...claims,
  })
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .sign(key);
}

describe("JSON Web Tokens", () => {
  const identify = createJwtIdentifier(options);

  test("name the caller; roles come from the claim by the mapping, and no value of it stands for a role by its name", async () => {
    expect(await identify(await token({ realm: { groups: ["dc-ops"] } }))).toMatchObject({
      name: "pat",
      roles: ["operator", "Flow"],
      validUntil: new Date((seconds + 65) * 1_000), // with what clocks may differ by
    });
    const groups = ["dc-ops", "admin", "viewer", "strangers", "constructor"];
    expect(await identify(await token({ realm: { groups } }))).toMatchObject({ roles: ["operator", "Flow"] });
    expect(await identify(await token({ realm: { groups: "viewer admin" } }))).toMatchObject({ roles: [] });
    expect(await identify(await token({ realm: null }))).toMatchObject({ roles: [] });
  });

  test("without a mapping, give roles by their names", async () => {
    const unmapped = createJwtIdentifier({ ...options, roles: {} });
    expect(await unmapped(await token({ realm: { groups: "viewer admin strangers" } }))).toMatchObject({
      roles: ["viewer", "admin"],
    });
  });

  test("may have a claim whose very name holds dots", async () => {
    const identifyByUrl = createJwtIdentifier({ ...options, roles: {}, rolesClaim: "https://example.org/roles" });
    expect(await identifyByUrl(await token({ "https://example.org/roles": ["admin"] }))).toMatchObject({
      roles: ["admin"],
    });
  });

  test.each<[string, JWTPayload]>([
    ["another issuer", { iss: "https://evil.example" }],
    ["another audience", { aud: "other" }],
    ["the past", { exp: seconds - 60 }],
    ["no end", { exp: undefined } as unknown as JWTPayload],
    ["the future", { nbf: seconds + 600 }],
    ["no name", { sub: undefined } as unknown as JWTPayload],
    ["a name that would forge a log line", { sub: "pat\nroot" }],
    ["an empty name", { sub: " " }],
  ])("of %s are refused", async (_what, claims) => {
    await expect(identify(await token(claims))).rejects.toMatchObject({ kind: "unauthenticated" });
  });

  test("signed by a stranger, or not at all, are refused", async () => {
    await expect(identify(await token({}, stranger.privateKey))).rejects.toMatchObject({ kind: "unauthenticated" });
    const [, payload] = (await token()).split(".");
    const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.`;
    await expect(identify(unsigned)).rejects.toMatchObject({ kind: "unauthenticated" });
  });

  test("signed with the public key as if it were a shared secret are refused", async () => {
    const secret = new TextEncoder().encode(JSON.stringify(set.keys[0]));
    const forged = await new SignJWT({ iss: "https://id.example", aud: "millwright", sub: "pat", exp: seconds + 60 })
      .setProtectedHeader({ alg: "HS256", kid: "one" })
      .sign(secret);
    await expect(identify(forged)).rejects.toMatchObject({ kind: "unauthenticated" });
  });

  test("are told from opaque tokens by their form", async () => {
    expect(looksLikeJwt(await token())).toBe(true);
    expect(looksLikeJwt(`mw_${"a".repeat(16)}_${"b".repeat(64)}`)).toBe(false);
  });
});

describe("a key server", () => {
  let status = 200;
  const server = createServer((_request, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(set));
  });
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve)));
  afterAll(() => new Promise((resolve) => void server.close(resolve)));
  const identifier = () =>
    createJwtIdentifier({
      ...options,
      keys: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys` },
    });

  test("that answers is asked for the keys", async () => {
    status = 200;
    expect(await identifier()(await token())).toMatchObject({ name: "pat" });
  });

  test("that fails makes the call unavailable, not unauthenticated: the token may be good", async () => {
    status = 500;
    await expect(identifier()(await token())).rejects.toMatchObject({ kind: "unavailable" });
    const unreachable = createJwtIdentifier({ ...options, keys: { url: "http://127.0.0.1:1/keys" } });
    await expect(unreachable(await token())).rejects.toMatchObject({ kind: "unavailable" });
  });
});
