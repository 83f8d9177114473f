import { readFileSync } from "node:fs";
import type { JSONWebKeySet } from "jose";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { Credential, SessionVerdict } from "../../services/system/sessions.ts";
import type { TokenVerdict } from "../../services/system/tokens.ts";
import type { Access } from "./access.ts";
import { type Authenticate, createAuthenticator, createIdentifier, type Identify } from "./authenticate.ts";
import { type BearerTokens, createBearerTokens, type KnownToken } from "./bearer-tokens.ts";
import { type CertificateRoles, rolesOfCertificate } from "./client-certificate.ts";
import { createJwtIdentifier, type OidcOptions, rolesOfClaim } from "./oidc.ts";
import { IssuerSignIn } from "./session/issuer-sign-in.ts";
import type { SignInThrottle } from "./sign-in-throttle.ts";

/** The `auth` section of the configuration. */
export interface AuthSettings {
  readonly mode: "required" | "off";
  readonly tokens: readonly KnownToken[];
  readonly tokenCache: Duration;
  readonly oidc: {
    readonly issuer: string | null;
    readonly audience: string | null;
    readonly jwksUrl: string | null;
    readonly jwksFile: string | null;
    readonly nameClaim: string;
    readonly rolesClaim: string;
    readonly roles: OidcOptions["roles"];
    readonly clientId: string | null;
    readonly clientSecretFile: string | null;
    readonly scopes: string;
  };
  readonly mtls: { readonly roles: CertificateRoles };
}

export interface AuthenticationOptions {
  readonly settings: AuthSettings;
  readonly access: Access;
  /** Of the token store. */
  verify(token: string): Promise<TokenVerdict>;
  /** Of the sessions. Absent: there are none. */
  readonly verifySession?: (secret: string) => Promise<SessionVerdict>;
  readonly clock: Clock;
  /** Absent: nobody is held back. */
  readonly throttle?: SignInThrottle;
  /** Told of each call with a token from the database. */
  readonly used?: (tokenId: string) => void;
}

/** Everything that signs callers in, as configured. `tokens.forget(id)` is to be called after a revocation. */
export function createAuthentication(options: AuthenticationOptions): {
  readonly authenticate: Authenticate;
  /** Whose credentials they are, without asking what they may do: for the sign-in. */
  readonly identify: Identify;
  readonly tokens: BearerTokens;
  readonly sessions: BearerTokens;
  /** Absent: nobody signs in at an issuer. */
  readonly issuer: IssuerSignIn | undefined;
} {
  const { settings, access, verify, clock, throttle, used } = options;
  const { mode, oidc, mtls } = settings;
  const { tokens: known, tokenCache: cacheFor } = settings;
  const tokens = createBearerTokens({ verify, known, cacheFor, clock, ...(used && { used }) });
  const { issuer, audience } = oidc;
  const identifyJwt =
    issuer === null || audience === null
      ? undefined
      : createJwtIdentifier({ ...oidc, issuer, audience, keys: keysOf(oidc), clock });
  const sessions = createBearerTokens({
    called: "session",
    verify: verifierOfSessions(options),
    known: [],
    ...{ cacheFor, clock },
  });
  const credentials = { tokens, sessions, identifyJwt, certificateRoles: mtls.roles, throttle };
  const authenticate = createAuthenticator({ ...credentials, mode, access });
  return {
    ...{ tokens, sessions, authenticate },
    identify: createIdentifier(credentials),
    issuer: issuerSignIn(oidc, clock),
  };
}

/** Who signs in shows an id token, which is for the client; callers show tokens that are for the API. */
function issuerSignIn(oidc: AuthSettings["oidc"], clock: Clock): IssuerSignIn | undefined {
  const { issuer, clientId, clientSecretFile, scopes } = oidc;
  if (issuer === null || clientId === null) return undefined;
  const identify = createJwtIdentifier({ ...oidc, issuer, audience: clientId, keys: keysOf(oidc), clock });
  return new IssuerSignIn({ issuer, clientId, clientSecretFile, scopes, identify });
}

/** Sessions give what the configuration of today gives their credential, and end where that would let nobody in. */
function verifierOfSessions({ settings, verifySession, clock }: AuthenticationOptions) {
  return async (secret: string): Promise<SessionVerdict> => {
    const verdict = (await verifySession?.(secret)) ?? { status: "unknown" };
    if (verdict.status !== "valid") return verdict;
    const roles = rolesOfToday(settings, verdict.credential, verdict.roles);
    return roles === undefined ? { status: "revoked", at: clock.now() } : { ...verdict, roles };
  };
}

/** Undefined: the credential is accepted no more. Those of a token of the database are its own. */
function rolesOfToday(
  { tokens, oidc, mtls }: AuthSettings,
  credential: Credential,
  roles: readonly string[],
): readonly string[] | undefined {
  switch (credential.kind) {
    case "token":
      return roles;
    case "configured":
      return tokens.find(({ sha256 }) => sha256 === credential.ref)?.roles;
    case "jwt":
      if (oidc.issuer === null || (credential.ref !== null && credential.ref !== oidc.issuer)) return undefined;
      return credential.grounds === null
        ? roles.filter((role) => isGiven(role, oidc.roles) || Object.keys(oidc.roles).length === 0)
        : rolesOfClaim(credential.grounds, oidc.roles);
    case "certificate":
      return credential.grounds === null
        ? roles.filter((role) => isGiven(role, mtls.roles))
        : rolesOfCertificate(credential.grounds, mtls.roles);
  }
}

const isGiven = (role: string, mapping: Readonly<Record<string, readonly string[]>>): boolean =>
  Object.values(mapping).some((roles) => roles.includes(role));

function keysOf({ jwksUrl, jwksFile }: AuthSettings["oidc"]): OidcOptions["keys"] {
  if (jwksUrl !== null) return { url: jwksUrl };
  const refuse = (why: string) =>
    new AppError("invalid_argument", `auth.oidc.jwks_file (${jwksFile}) ${why}`, { field: "auth.oidc.jwks_file" });
  if (jwksFile === null) throw refuse("is missing");
  let text: string;
  try {
    text = readFileSync(jwksFile, "utf8");
  } catch (error) {
    throw refuse(`cannot be read: ${messageOf(error)}`);
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw refuse("is not JSON"); // the parser's own words would quote what may be a private key
  }
  if (!isKeySet(parsed)) throw refuse('must be a JSON Web Key Set: {"keys": [...]} with at least one key');
  return { set: parsed };
}

const isKeySet = (value: unknown): value is JSONWebKeySet =>
  typeof value === "object" && value !== null && "keys" in value && Array.isArray(value.keys) && value.keys.length > 0;
