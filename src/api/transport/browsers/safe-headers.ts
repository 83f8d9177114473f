/**
 * On every answer of both ports. What is no document is never run, framed, sniffed or kept by a browser; a route that answers with a
 * document gives a policy of its own.
 */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/** Before anything else is answered: what a handler sets under the same name wins. */
export function setSafeHeaders(response: { setHeader(name: string, value: string): unknown }): void {
  for (const [name, value] of Object.entries(SAFE_HEADERS)) response.setHeader(name, value);
}

/** For answers that are written to a socket by hand. */
export const safeHeaderLines = (): string =>
  Object.entries(SAFE_HEADERS)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
