import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../kernel/errors.ts";
import type { Log } from "../../../kernel/log.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { revokeSession, type SessionRules } from "../../../services/system/sessions.ts";
import { noteAccess } from "../../transport/access/access-log.ts";
import type { CallQuotas } from "../../transport/limits/call-quotas.ts";
import { signInCounted } from "../../transport/limits/counted-sign-in.ts";
import type { Peer } from "../../transport/peer.ts";
import type { Identify, RequestHeaders } from "../authenticate.ts";
import { unauthenticated } from "../identity.ts";
import { addIssuerRoutes } from "./issuer-routes.ts";
import type { IssuerSignIn } from "./issuer-sign-in.ts";
import type { OneTimeCodes } from "./one-time-codes.ts";
import { openSessionFor } from "./open-session-for.ts";
import { requireOwnPage } from "./own-page.ts";
import { sessionCookie, sessionIn } from "./session-cookie.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";

export interface SessionRouteDeps {
  readonly services: ServiceDeps;
  readonly identify: Identify;
  readonly codes: OneTimeCodes;
  readonly clock: Clock;
  readonly rules: SessionRules;
  /** What signing in and out counts for, as every request. */
  readonly quotas: CallQuotas;
  readonly peerOf: (request: FastifyRequest) => Peer;
  /** Told once a session has ended. */
  readonly onRevoked: (id: string) => void;
  /** Absent: nobody signs in at an issuer. */
  readonly issuer?: IssuerSignIn | undefined;
  readonly log: Log;
}

/** A credential, or a code that stands for one. Neither: what the request itself carries, such as a client certificate. */
const signInSchema = z.strictObject({ token: z.string().max(16_384).optional(), code: z.string().max(256).optional() });

/** `POST /auth/session` makes a session of any credential, and puts it into a cookie; `DELETE` ends it. */
export const createSessionRoutes =
  (deps: SessionRouteDeps): FastifyPluginAsync =>
  async (app) => {
    const throttle = new SignInThrottle(deps.clock);
    addIssuerRoutes(app, deps, throttle);

    app.post("/auth/session", async (request, reply) => {
      const peer = deps.peerOf(request);
      throttle.admit(peer.address);
      const opened = await signIn(request, peer, deps).catch((error: unknown) => {
        if (error instanceof AppError && error.kind === "unauthenticated") throttle.failed(peer.address);
        throw error;
      });
      const { name, roles, expiresAt, secret } = opened;
      const maxAgeSeconds = (expiresAt.getTime() - deps.clock.now().getTime()) / 1_000;
      reply.header("set-cookie", sessionCookie(secret, { isSecure: request.protocol === "https", maxAgeSeconds }));
      return { name, roles, expires_at: expiresAt.toISOString() };
    });

    app.delete("/auth/session", async (request, reply) => {
      const headers = new Headers(request.headers as Record<string, string>);
      const secret = sessionIn(headers.get("cookie"));
      if (secret !== undefined) {
        requireOwnPage(headers);
        await endSession(secret, request, deps);
      }
      reply.header("set-cookie", sessionCookie("", { isSecure: request.protocol === "https", maxAgeSeconds: 0 }));
      return reply.code(204).send();
    });
  };

const signIn = (request: FastifyRequest, peer: Peer, deps: SessionRouteDeps) =>
  openSessionFor(request, peer, deps, async () => deps.identify(credentialsOf(request, deps.codes), peer));

/** What the body gives takes the place of what the request carries; a session makes no other. */
function credentialsOf(request: FastifyRequest, codes: OneTimeCodes): RequestHeaders {
  const parsed = signInSchema.safeParse(request.body ?? {});
  if (!parsed.success)
    throw new AppError("invalid_argument", 'the body must be {"token": "…"}, {"code": "…"} or {}', { field: "token" });
  const { token, code } = parsed.data;
  const headers = new Headers(request.headers as Record<string, string>);
  headers.delete("cookie");
  if (code !== undefined) {
    const found = codes.redeem(code);
    if (found === undefined) throw unauthenticated("the link was used already, or is too old");
    headers.set("authorization", `Bearer ${found}`);
  } else if (token !== undefined) {
    if (!/^[\x21-\x7e]+$/.test(token.trim())) throw unauthenticated("the token has characters that no token has");
    headers.set("authorization", `Bearer ${token.trim()}`);
  }
  return headers;
}

/** Whoever holds the cookie may end its session, and one that has ended already is as good. */
async function endSession(secret: string, request: FastifyRequest, deps: SessionRouteDeps): Promise<void> {
  const peer = deps.peerOf(request);
  const headers = new Headers({ cookie: request.headers.cookie ?? "", "sec-fetch-site": "same-origin" });
  try {
    const { name, roles } = await signInCounted(() => deps.identify(headers, peer), peer.address, deps.quotas);
    const id = secret.split(".", 1)[0] ?? "";
    await revokeSession(deps.services, { name, roles, address: peer.address }, id);
    noteAccess(request.raw, { caller: name });
    deps.onRevoked(id);
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== "unauthenticated") throw error;
  }
}
