import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type AnyRoute, defineRoute } from "./route.ts";

const TEXT = "text/html; charset=utf-8";

/** `/api/v1/docs`: the OpenAPI document for people. One page without anything from elsewhere, which asks for the document itself. */
export function referenceRoute(): AnyRoute {
  const page = readFileSync(new URL("./reference.html", import.meta.url), "utf8");
  const policy = policyFor(page);
  return defineRoute({
    method: "GET",
    path: "/api/v1/docs",
    tag: "reference",
    summary: "The same to browse, for people.",
    answer: { text: TEXT },
    async handle({ reply }) {
      reply
        .type(TEXT)
        .header("content-security-policy", policy)
        .header("x-content-type-options", "nosniff")
        .header("referrer-policy", "no-referrer")
        .header("cache-control", "no-cache");
      return page;
    },
  });
}

/** Its own script and its own style, by their digests, and its own server: nothing else runs, loads, frames or is sent to. */
function policyFor(page: string): string {
  const digestOf = (tag: string): string => {
    const [, text] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(page) ?? [];
    if (text === undefined) throw new Error(`the reference page has no <${tag}>`);
    return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  };
  return [
    "default-src 'none'",
    `script-src ${digestOf("script")}`,
    `style-src ${digestOf("style")}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
