import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError, messageOf } from "../../../kernel/errors.ts";
import { begunCookie, begunIn, ownPage } from "./begun-cookie.ts";
import { type BegunSignIn, FailedSignIn, type IssuerSignIn, type SignInFailure } from "./issuer-sign-in.ts";
import { openSessionFor } from "./open-session-for.ts";
import { sessionCookie } from "./session-cookie.ts";
import type { SessionRouteDeps } from "./session-routes.ts";
import type { SignInThrottle } from "./sign-in-throttle.ts";

/** Where the issuer sends people back to; it has to be registered there. */
const CALLBACK = "/auth/callback";

const isSecure = ({ protocol }: FastifyRequest): boolean => protocol === "https";
const originOf = ({ protocol, host }: FastifyRequest): string => `${protocol}://${host}`;
const failedPage = (why: SignInFailure | "expired", to = "/"): string => `/sign-in?${new URLSearchParams({ why, to })}`;

/** Signing in at the issuer: `GET /auth/login` leads there, `GET /auth/callback` back with a session, `GET /auth/methods` says whether one can. */
export function addIssuerRoutes(app: FastifyInstance, deps: SessionRouteDeps, throttle: SignInThrottle): void {
  const { issuer } = deps;

  app.get("/auth/methods", async () => ({ issuer: issuer === undefined ? null : new URL(issuer.issuer).host }));

  app.get("/auth/login", async (request, reply) => {
    const { to } = request.query as { readonly to?: unknown };
    throttle.admit(deps.peerOf(request).address);
    try {
      const { url, begun } = await need(issuer).begin(`${originOf(request)}${CALLBACK}`);
      reply.header("set-cookie", begunCookie({ ...begun, to: ownPage(to) }, isSecure(request)));
      return reply.redirect(url.href, 302);
    } catch (error) {
      return reply.redirect(failedPage(failureFrom(error, deps), ownPage(to)), 302);
    }
  });

  app.get(CALLBACK, async (request, reply) => {
    const peer = deps.peerOf(request);
    throttle.admit(peer.address);
    const begun = begunIn(request.headers.cookie, isSecure(request));
    // What was begun is finished once, however it ends.
    reply.header("set-cookie", begunCookie(undefined, isSecure(request)));
    if (begun === undefined) return reply.redirect(failedPage("expired"), 302);
    const to = ownPage(begun.to);
    const answered = new URL(request.url, originOf(request));
    try {
      const { expiresAt, secret } = await openSessionFor(request, peer, deps, () =>
        need(issuer).finish(answered, begun),
      );
      const maxAgeSeconds = (expiresAt.getTime() - deps.clock.now().getTime()) / 1_000;
      reply.header("set-cookie", sessionCookie(secret, { isSecure: isSecure(request), maxAgeSeconds }));
      return reply.redirect(to, 302);
    } catch (error) {
      if (isGuess(answered, begun)) throttle.failed(peer.address);
      return reply.redirect(failedPage(failureFrom(error, deps), to), 302);
    }
  });
}

/** What the issuer was asked about. Of everything else nobody learns anything, and it costs nothing. */
const isGuess = ({ searchParams }: URL, { state }: BegunSignIn): boolean =>
  searchParams.has("code") && searchParams.get("state") === state;

function need(issuer: IssuerSignIn | undefined): IssuerSignIn {
  if (issuer !== undefined) return issuer;
  throw new AppError("not_found", "nobody signs in at an issuer here: auth.oidc.client_id is not configured", {
    next: "sign in with a token: millwright token create",
  });
}

/** People are told which of a few things it was; why exactly, the log says. */
function failureFrom(error: unknown, { log }: SessionRouteDeps): SignInFailure {
  if (!(error instanceof FailedSignIn)) throw error;
  log.warn({ why: error.why, reason: messageOf(error) }, "a sign-in at the issuer failed");
  return error.why;
}
