import { AppError } from "../../../kernel/errors.ts";
import type { RequestHeaders } from "../authenticate.ts";

/**
 * Browsers add a cookie to requests by themselves, so that a call with one must show that our own page made it: by `Sec-Fetch-Site`, which
 * no page can forge, or, where the way to the server is not trusted enough for that header, by an `Origin`, which was compared with ours
 * before (`browser-guard.ts`). Credentials that a program sends need neither.
 */
export function requireOwnPage(headers: RequestHeaders): void {
  const site = headers.get("sec-fetch-site");
  if (site === "same-origin" || (site === null && headers.get("origin") !== null)) return;
  throw new AppError("permission_denied", "a session is good for calls of the console's own pages alone", {
    next: "send a bearer token instead: programs and other pages cannot use the session of a browser",
  });
}
