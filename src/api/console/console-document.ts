import { randomBytes } from "node:crypto";

/** What the build leaves in the page for a nonce. */
const PLACEHOLDER = "__CSP_NONCE__";

export interface ConsoleDocument {
  readonly html: string;
  readonly policy: string;
}

/** The page with a nonce that nobody can foresee, and the policy that goes with it: its own scripts and styles, its own server, nothing else. */
export function documentWithNonce(page: string): ConsoleDocument {
  const nonce = randomBytes(18).toString("base64");
  return { html: page.replaceAll(PLACEHOLDER, nonce), policy: policyWith(`'self' 'nonce-${nonce}'`) };
}

/** What `/` says where nothing is built. */
export const NOT_BUILT: ConsoleDocument = {
  html: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Millwright</title>
<h1>The console is not built</h1>
<p>The API works without it. To build the console in a checkout, run:</p>
<pre>npm run console</pre>
<p>Then load this page again. <code>npm ci</code> and <code>npm start</code> build it too. A package that was installed has it built already.</p>
<p><a href="/api/v1/docs">REST reference</a></p>
</html>
`,
  policy: policyWith("'none'"),
};

function policyWith(styles: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${styles}`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
