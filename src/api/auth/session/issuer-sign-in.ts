import { readFile } from "node:fs/promises";
import * as oidc from "openid-client";
import { AppError, messageOf } from "../../../kernel/errors.ts";
import type { Identity } from "../identity.ts";

export interface IssuerSignInOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Read at each sign-in that needs it first, so that a new secret takes no restart. Null: a public client, which PKCE alone protects. */
  readonly clientSecretFile: string | null;
  readonly scopes: string;
  /** As of any JSON Web Token of the issuer: signature, times, name and roles. Its audience is the client. */
  readonly identify: (idToken: string) => Promise<Identity>;
}

/** What the browser keeps between the two halves of a sign-in. */
export interface BegunSignIn {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE: the code that the issuer gives is worth nothing without it. */
  readonly verifier: string;
}

/** Why a sign-in at the issuer led nowhere, in words that the console has sentences for. */
export type SignInFailure = "denied" | "failed" | "refused" | "unavailable";

export class FailedSignIn extends Error {
  readonly why: SignInFailure;

  constructor(why: SignInFailure, cause: unknown) {
    super(messageOf(cause), { cause });
    this.why = why;
  }
}

/** The authorization code flow with PKCE (RFC 6749, RFC 7636): people sign in at the issuer, and the server fetches the proof of it. */
export class IssuerSignIn {
  readonly #options: IssuerSignInOptions;
  #discovered: Promise<oidc.Configuration> | undefined;

  constructor(options: IssuerSignInOptions) {
    this.#options = options;
  }

  /** Whom people are sent to. */
  get issuer(): string {
    return this.#options.issuer;
  }

  /** Where to send the browser, and what it has to bring back. */
  async begin(redirectUri: string): Promise<{ readonly url: URL; readonly begun: BegunSignIn }> {
    const config = await this.#config();
    const begun = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() };
    const url = oidc.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: this.#options.scopes,
      ...{ state: begun.state, nonce: begun.nonce },
      code_challenge: await oidc.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: "S256",
    });
    return { url, begun };
  }

  /** `answered` is the address that the issuer sent the browser back to, whole. */
  async finish(answered: URL, { state, nonce, verifier }: BegunSignIn): Promise<Identity> {
    const config = await this.#config();
    const checks = {
      pkceCodeVerifier: verifier,
      expectedState: state,
      expectedNonce: nonce,
      idTokenExpected: true,
    } as const;
    const { id_token: idToken } = await oidc
      .authorizationCodeGrant(config, answered, checks)
      .catch((error: unknown) => {
        throw new FailedSignIn(failureOf(error), error);
      });
    if (idToken === undefined) throw new FailedSignIn("failed", "the issuer gave no id token");
    const { validUntil: _, ...identity } = await this.#options.identify(idToken).catch((error: unknown) => {
      const isRefusal = error instanceof AppError && error.kind === "unauthenticated";
      throw new FailedSignIn(isRefusal ? "refused" : "unavailable", error);
    });
    return identity; // The token proves a sign-in, and runs out minutes later; the session has an end of its own.
  }

  /** Asked once; again after a failure. */
  #config(): Promise<oidc.Configuration> {
    const asked = this.#discovered ?? this.#discover();
    this.#discovered = asked;
    return asked.catch((error: unknown) => {
      if (this.#discovered === asked) this.#discovered = undefined;
      throw new FailedSignIn("unavailable", error);
    });
  }

  async #discover(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecretFile } = this.#options;
    const url = new URL(issuer);
    const secret = clientSecretFile === null ? undefined : (await readFile(clientSecretFile, "utf8")).trim();
    const proof = secret === undefined ? oidc.None() : oidc.ClientSecretBasic(secret);
    const execute = url.protocol === "http:" ? [oidc.allowInsecureRequests] : [];
    return oidc.discovery(url, clientId, undefined, proof, { execute, timeout: 10 });
  }
}

function failureOf(error: unknown): SignInFailure {
  if (error instanceof oidc.AuthorizationResponseError) return error.error === "access_denied" ? "denied" : "failed";
  if (error instanceof TypeError) return "unavailable"; // what fetch throws where nobody answers
  return "failed";
}
