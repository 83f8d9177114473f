import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { isRole } from "../../services/call/roles.ts";
import { type Identity, identityOf, unauthenticated } from "./identity.ts";

type RolesOfClaims = Readonly<Record<string, readonly string[]>>;

/** The roles that values of the claim stand for. Who makes groups at the issuer would else give out our roles, by naming a group "admin". */
export function rolesOfClaim(values: readonly string[], mapping: RolesOfClaims): string[] {
  const isMapped = Object.keys(mapping).length > 0;
  const granted = values.flatMap((value) =>
    isMapped ? (Object.hasOwn(mapping, value) && mapping[value]) || [] : isRole(value) ? [value] : [],
  );
  return [...new Set(granted)];
}

export interface OidcOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly keys: { readonly url: string } | { readonly set: JSONWebKeySet };
  readonly nameClaim: string;
  /** Dots reach into objects. */
  readonly rolesClaim: string;
  /** Value of the roles claim → roles. Only where it is empty do names of roles stand for themselves. */
  readonly roles: RolesOfClaims;
  readonly clock: Clock;
}

/** Signatures by private keys alone: with a shared-secret algorithm, who can verify can also forge. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
const CLOCK_TOLERANCE_SECONDS = 5;

export const looksLikeJwt = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token);

export function createJwtIdentifier(options: OidcOptions): (jwt: string) => Promise<Identity> {
  const { issuer, audience, keys, nameClaim, rolesClaim, roles, clock } = options;
  const getKey: JWTVerifyGetKey =
    "url" in keys ? createRemoteJWKSet(new URL(keys.url), { timeoutDuration: 5_000 }) : createLocalJWKSet(keys.set);
  return async (jwt) => {
    const payload = await verified(jwt, getKey, {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      requiredClaims: ["exp"],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: clock.now(),
    });
    const name = payload[nameClaim];
    if (typeof name !== "string")
      throw unauthenticated(`the JSON Web Token has no claim "${nameClaim}" that names the caller`);
    const grounds = claimedValues(payload, rolesClaim);
    const identity: Identity = {
      ...identityOf(name, rolesOfClaim(grounds, roles), `claim "${nameClaim}"`),
      credential: { kind: "jwt", ref: issuer, grounds },
    };
    const { exp } = payload;
    return exp === undefined
      ? identity
      : { ...identity, validUntil: new Date((exp + CLOCK_TOLERANCE_SECONDS) * 1_000) };
  };
}

async function verified(
  jwt: string,
  getKey: JWTVerifyGetKey,
  rules: Parameters<typeof jwtVerify>[2],
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(jwt, getKey, rules)).payload;
  } catch (error) {
    // Only what jose says of the token itself is the caller's doing; a key server that does not answer is not.
    if (error instanceof errors.JOSEError && !isKeyServerFailure(error)) {
      throw unauthenticated(`the JSON Web Token is not accepted: ${error.message}`);
    }
    throw new AppError(
      "unavailable",
      "the keys at auth.oidc.jwks_url cannot be fetched now, so no JSON Web Token can be checked; try again later",
      {},
      { cause: messageOf(error) },
    );
  }
}

const isKeyServerFailure = (error: errors.JOSEError): boolean =>
  error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === "ERR_JOSE_GENERIC";

function claimedValues(payload: JWTPayload, claim: string): string[] {
  // A claim whose very name has dots (`https://example.org/roles`) is found as it is.
  let value: unknown = Object.hasOwn(payload, claim) ? payload[claim] : payload;
  if (value === payload) {
    for (const part of claim.split("."))
      value = isRecord(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  }
  if (typeof value === "string") return value.split(" ");
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
