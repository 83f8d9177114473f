import type { Caller } from "../../services/call/caller.ts";
import { ROLES } from "../../services/call/roles.ts";
import type { Peer } from "../transport/peer.ts";
import type { Access } from "./access.ts";
import type { BearerTokens } from "./bearer-tokens.ts";
import { type CertificateRoles, identifyCertificate } from "./client-certificate.ts";
import { type Identity, unauthenticated } from "./identity.ts";
import { looksLikeJwt } from "./oidc.ts";
import { refusedTo } from "./refused-caller.ts";
import { requireOwnPage } from "./session/own-page.ts";
import { sessionIn } from "./session/session-cookie.ts";
import type { SignInThrottle } from "./sign-in-throttle.ts";

/** Also what the `Headers` of a Connect request are. */
export interface RequestHeaders {
  get(name: string): string | null;
}

export interface AuthenticatorOptions {
  readonly mode: "required" | "off";
  readonly tokens: BearerTokens;
  /** Absent: cookies count for nothing. */
  readonly sessions?: BearerTokens;
  /** Absent: JSON Web Tokens are not accepted. */
  readonly identifyJwt?: ((jwt: string) => Promise<Identity>) | undefined;
  readonly certificateRoles: CertificateRoles;
  /** Absent: nobody is held back. */
  readonly throttle?: SignInThrottle | undefined;
  /** Who may call what. */
  readonly access: Access;
}

/** A caller, and until when the credentials are good; absent: they do not run out. */
export interface SignedIn extends Caller {
  readonly validUntil?: Date;
}

/**
 * Says who calls, and throws unless that caller may call the method: `unauthenticated` or `permission_denied`.
 *
 * The two are one step so that no transport can do the first and forget the second.
 * `method` is `package.Service/Method` or, for REST, `GET /path`.
 */
export type Authenticate = (
  headers: RequestHeaders,
  peer: Pick<Peer, "address"> & Partial<Peer>,
  method: string,
) => Promise<SignedIn>;

/** Says whose the credentials of a request are: `unauthenticated` where they are nobody's. */
export type Identify = (headers: RequestHeaders, peer: Partial<Peer>) => Promise<Identity>;

type Credentials = Pick<AuthenticatorOptions, "tokens" | "sessions" | "identifyJwt" | "certificateRoles" | "throttle">;

/** The authorization header, else the session of a cookie, else the certificate of the connection. */
export function createIdentifier({ tokens, sessions, identifyJwt, certificateRoles, throttle }: Credentials): Identify {
  async function identifyBearer(token: string): Promise<Identity> {
    if (!looksLikeJwt(token)) return tokens.identify(token);
    if (identifyJwt === undefined)
      throw unauthenticated("JSON Web Tokens are not accepted here: auth.oidc is not configured");
    return identifyJwt(token);
  }
  /** Unless too many guesses have failed. */
  const heldBack = (bearer: string, { address = null }: Partial<Peer>, identify: () => Promise<Identity>) =>
    throttle ? throttle.guard({ address, bearer }, identify) : identify();

  return async (headers, peer) => {
    const authorization = headers.get("authorization");
    // Credentials that are given must be good; falling back to the certificate would hide a token that has run out.
    if (authorization !== null && authorization !== "") {
      const token = bearerOf(authorization);
      return heldBack(token, peer, () => identifyBearer(token));
    }
    const session = sessions && sessionIn(headers.get("cookie"));
    if (sessions && session !== undefined) {
      requireOwnPage(headers);
      return heldBack(session, peer, () => sessions.identify(session));
    }
    if (peer.certificate) return identifyCertificate(peer.certificate, certificateRoles);
    if (peer.certificateError)
      throw unauthenticated(`the client certificate is not accepted: ${peer.certificateError}`);
    throw unauthenticated("no credentials were given: a bearer token or a client certificate is needed");
  };
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  const { mode, access } = options;
  const identify = createIdentifier(options);

  return async (headers, peer, method) => {
    const { address } = peer;
    // An agent speaks for its node by its bearer alone: without it nobody knows whose call it is, whatever the mode.
    if (mode === "off" && !access.isForAgents(method)) {
      const caller: Caller = { name: null, roles: ROLES, address };
      access.authorize(caller, method);
      return caller;
    }
    // Without looking at credentials, so that probes get their answer also while the database is away.
    if (access.isPublic(method)) return { name: null, roles: [], address };
    const { credential: _, ...identity } = await identify(headers, peer);
    const caller: SignedIn = { ...identity, address };
    peer.signedIn?.();
    try {
      access.authorize(caller, method);
    } catch (error) {
      throw refusedTo(error, caller.name);
    }
    return caller;
  };
}

function bearerOf(authorization: string): string {
  const token = /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (token === undefined) throw unauthenticated('the authorization header must be "Bearer <token>"');
  return token;
}
