import { cookieNamed } from "./cookie-named.ts";

/** Browsers keep a cookie with the prefix from being set by other hosts and over plain HTTP; they take the prefix over TLS alone. */
const SECURE_NAME = "__Host-millwright-session";
const PLAIN_NAME = "millwright-session";

/** The session of a request's cookies; undefined where there is none. */
export function sessionIn(cookies: string | null): string | undefined {
  return cookieNamed(cookies, SECURE_NAME) ?? cookieNamed(cookies, PLAIN_NAME);
}

export interface CookieOptions {
  /** Whether the browser came over TLS. */
  readonly isSecure: boolean;
  /** 0 removes the cookie. */
  readonly maxAgeSeconds: number;
}

/** No script reads it, and no page of another site has it sent. */
export function sessionCookie(secret: string, { isSecure, maxAgeSeconds }: CookieOptions): string {
  const name = isSecure ? SECURE_NAME : PLAIN_NAME;
  const secure = isSecure ? "; Secure" : "";
  return `${name}=${secret}; Path=/; HttpOnly; SameSite=Strict${secure}; Max-Age=${Math.floor(maxAgeSeconds)}`;
}
