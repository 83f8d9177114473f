import { z } from "zod";
import { cookieNamed } from "./cookie-named.ts";
import type { BegunSignIn } from "./issuer-sign-in.ts";

/** As long as people may take at the issuer. */
const SIGN_IN_SECONDS = 600;

const SECURE_NAME = "__Host-millwright-sign-in";
const PLAIN_NAME = "millwright-sign-in";

const kept = z.strictObject({
  state: z.string().min(1).max(256),
  nonce: z.string().min(1).max(256),
  verifier: z.string().min(43).max(128),
  to: z.string().max(2_048),
});

export interface KeptSignIn extends BegunSignIn {
  /** The page of our own that somebody wanted. */
  readonly to: string;
}

/**
 * What a sign-in needs in its second half, in the browser that began it: any replica can finish it. `Lax`, since the issuer's page leads
 * back; it lets nobody in by itself.
 */
export const begunCookie = (begun: KeptSignIn | undefined, isSecure: boolean): string => {
  const value = begun === undefined ? "" : Buffer.from(JSON.stringify(begun)).toString("base64url");
  const [name, secure] = isSecure ? [SECURE_NAME, "; Secure"] : [PLAIN_NAME, ""];
  const age = begun === undefined ? 0 : SIGN_IN_SECONDS;
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${age}`;
};

/** Undefined where there is none, or what is there is none of ours. */
export function begunIn(cookies: string | undefined, isSecure: boolean): KeptSignIn | undefined {
  const found = cookieNamed(cookies, isSecure ? SECURE_NAME : PLAIN_NAME);
  if (found === undefined) return undefined;
  try {
    return kept.safeParse(JSON.parse(Buffer.from(found, "base64url").toString("utf8"))).data;
  } catch {
    return undefined;
  }
}

/** Only pages of our own: an address given from outside must not lead away. */
export const ownPage = (to: unknown): string =>
  typeof to === "string" && to.length <= 2_048 && /^\/(?![/\\])[\x21-\x7e]*$/.test(to) ? to : "/";
