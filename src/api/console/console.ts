import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../kernel/errors.ts";
import { isDocumentPath } from "../transport/browsers/browser-guard.ts";
import type { Fallback } from "../transport/listener.ts";
import { documentWithNonce, NOT_BUILT } from "./console-document.ts";
import { type ConsoleFile, createConsoleFiles } from "./console-files.ts";

/** Each build gives its files other names: what has a name never changes. */
const IMMUTABLE = "public, max-age=31536000, immutable";

export interface Console {
  readonly routes: FastifyPluginAsync;
  /** Answers people who follow a link to a page of the console. What is no such request stays unanswered. */
  readonly fallback: Fallback;
}

/** The web console: one page at every path that is nobody else's, and the files that it loads. Nothing of it is secret, or anybody's. */
export function createConsole({ directory }: { readonly directory: string }): Console {
  const files = createConsoleFiles(directory);
  const sendDocument = (reply: FastifyReply): FastifyReply => {
    const page = files.readDocument();
    const { html, policy } = page === undefined ? NOT_BUILT : documentWithNonce(page);
    return reply
      .code(page === undefined ? 503 : 200)
      .type("text/html; charset=utf-8")
      .header("content-security-policy", policy)
      .send(html);
  };
  return {
    routes: async (app) => {
      app.get("/", async (_request, reply) => sendDocument(reply));
      app.get<{ Params: { name: string } }>("/assets/:name", async (request, reply) => {
        const file = files.readAsset(request.params.name);
        if (!file) throw new AppError("not_found", "the console has no such file; load the page again");
        return sendAsset(request, reply, file);
      });
    },
    fallback: (request, reply) => (asksForPage(request) ? sendDocument(reply) : undefined),
  };
}

/** Programs ask for anything or for JSON, browsers that open a page for HTML. */
function asksForPage({ method, url, headers }: FastifyRequest): boolean {
  const isRead = method === "GET" || method === "HEAD";
  return isRead && (headers.accept ?? "").includes("text/html") && isDocumentPath(url);
}

function sendAsset(request: FastifyRequest, reply: FastifyReply, file: ConsoleFile): FastifyReply {
  const accepted = String(request.headers["accept-encoding"] ?? "");
  const [encoding, body] = formFor(file, accepted);
  if (encoding !== undefined) reply.header("content-encoding", encoding);
  return reply.type(file.type).header("cache-control", IMMUTABLE).header("vary", "accept-encoding").send(body);
}

function formFor({ plain, br, gzip }: ConsoleFile, accepted: string): [string | undefined, Buffer] {
  if (br && accepts(accepted, "br")) return ["br", br];
  if (gzip && accepts(accepted, "gzip")) return ["gzip", gzip];
  return [undefined, plain];
}

/** `gzip;q=0` is a refusal. */
const accepts = (accepted: string, encoding: string): boolean =>
  accepted.split(",").some((each) => {
    const [name = "", weight = ""] = each.split(";").map((part) => part.trim().toLowerCase());
    return name === encoding && !/^q=0(\.0*)?$/.test(weight);
  });
