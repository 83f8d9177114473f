import { describe, expect, test } from "vitest";
import { ROLES } from "../../services/call/roles.ts";
import { access } from "../../wiring/things/all-things.ts";
import { type AuthenticatorOptions, createAuthenticator } from "./authenticate.ts";
import type { BearerTokens } from "./bearer-tokens.ts";
import { unauthenticated } from "./identity.ts";

const READ = "millwright.v1.PowerShelfService/ListPowerShelves";
const WRITE = "forge.Forge/SetPowerShelfMaintenance";
const HEALTH = "grpc.health.v1.Health/Check";

const tokens: BearerTokens = {
  async identify(token) {
    if (token === "good") return { name: "pat", roles: ["viewer"] };
    throw unauthenticated("the bearer token is not known here");
  },
  forget() {},
};
const certificate = { subject: { CN: "kim" }, subjectaltname: "" } as never;
const peer = { address: "192.0.2.7" };
const headers = (authorization?: string) => new Headers(authorization === undefined ? {} : { authorization });

const make = (overrides: Partial<AuthenticatorOptions> = {}) =>
  createAuthenticator({ mode: "required", tokens, certificateRoles: { "CN=kim": ["operator"] }, access, ...overrides });

describe("with authentication required", () => {
  const authenticate = make();

  test("a good token gives a caller with name, roles and address", async () => {
    expect(await authenticate(headers("Bearer good"), peer, READ)).toEqual({
      name: "pat",
      roles: ["viewer"],
      address: "192.0.2.7",
    });
    expect(await authenticate(headers("bearer  good"), peer, READ)).toMatchObject({ name: "pat" });
  });

  test("a caller who may not call the method is denied", async () => {
    await expect(authenticate(headers("Bearer good"), peer, WRITE)).rejects.toMatchObject({
      kind: "permission_denied",
    });
    await expect(authenticate(headers("Bearer good"), peer, "no.Such/Method")).rejects.toMatchObject({
      kind: "permission_denied",
    });
  });

  test.each([[undefined], ["Bearer"], ["Bearer a b"], ["Basic cGF0OnB3"], ["Bearer bad"], ["Bearer a.b.c"], ["good"]])(
    "authorization %j does not sign in, and the error says how to",
    async (authorization) => {
      await expect(authenticate(headers(authorization), peer, READ)).rejects.toMatchObject({
        kind: "unauthenticated",
        detail: { next: expect.stringContaining("Bearer") },
      });
    },
  );

  test("a verified client certificate signs in", async () => {
    expect(await authenticate(headers(), { ...peer, certificate }, WRITE)).toEqual({
      name: "kim",
      roles: ["operator"],
      address: "192.0.2.7",
    });
  });

  test("a bad token is not made good by a certificate", async () => {
    await expect(authenticate(headers("Bearer bad"), { ...peer, certificate }, WRITE)).rejects.toMatchObject({
      kind: "unauthenticated",
    });
  });

  test("a certificate that failed verification is named as the reason", async () => {
    await expect(authenticate(headers(), { ...peer, certificateError: "CERT_HAS_EXPIRED" }, READ)).rejects.toThrow(
      "CERT_HAS_EXPIRED",
    );
  });

  test("a JSON Web Token goes to the issuer's keys once configured", async () => {
    const withOidc = make({ identifyJwt: async (jwt) => ({ name: `jwt ${jwt}`, roles: ["viewer"] }) });
    expect(await withOidc(headers("Bearer a.b.c"), peer, READ)).toMatchObject({ name: "jwt a.b.c" });
    await expect(authenticate(headers("Bearer a.b.c"), peer, READ)).rejects.toThrow("auth.oidc is not configured");
  });

  test("what is open to anyone is answered without asking the token store", async () => {
    const broken = make({
      tokens: {
        identify: async () => {
          throw new Error("the database is away");
        },
        forget() {},
      },
    });
    expect(await broken(headers("Bearer good"), peer, HEALTH)).toEqual({ name: null, roles: [], address: "192.0.2.7" });
  });
});

describe("with authentication off", () => {
  const authenticate = make({ mode: "off" });

  test("callers have every role and no name, whatever they send", async () => {
    expect(await authenticate(headers("Bearer bad"), peer, WRITE)).toEqual({
      name: null,
      roles: ROLES,
      address: "192.0.2.7",
    });
  });

  test("agents of fleet nodes are told apart by their bearers", async () => {
    const method = "POST /internal/v1/nodes/{id}/heartbeat";
    const agent = { nodeId: "fn-1", tokenId: "t-1" };
    const identify = async () => ({ name: "agent of fn-1", roles: ["agent"], agent });
    const off = make({ mode: "off", tokens: { ...tokens, identify } });
    expect(await off(headers("Bearer any"), peer, method)).toMatchObject({ agent, roles: ["agent"] });
    await expect(off(headers(), peer, method)).rejects.toMatchObject({ kind: "unauthenticated" });
  });

  test("methods without a row stay closed", async () => {
    await expect(authenticate(headers(), peer, "no.Such/Method")).rejects.toMatchObject({ kind: "permission_denied" });
  });
});
