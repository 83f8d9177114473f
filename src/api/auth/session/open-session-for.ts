import type { FastifyRequest } from "fastify";
import { AppError } from "../../../kernel/errors.ts";
import { openSession } from "../../../services/system/sessions.ts";
import { noteAccess } from "../../transport/access/access-log.ts";
import { signInCounted } from "../../transport/limits/counted-sign-in.ts";
import type { Peer } from "../../transport/peer.ts";
import type { Identity } from "../identity.ts";
import type { SessionRouteDeps } from "./session-routes.ts";

/** A session of whom `identify` names; the sign-in counts for the quotas of the caller. */
export async function openSessionFor(
  request: FastifyRequest,
  peer: Peer,
  deps: Pick<SessionRouteDeps, "services" | "quotas" | "rules" | "onRevoked">,
  identify: () => Promise<Identity>,
) {
  const { agent, credential, ...identity } = await signInCounted(identify, peer.address, deps.quotas);
  if (agent !== undefined || credential === undefined)
    throw new AppError("permission_denied", "an agent's credential, or none, cannot open a session in a browser", {
      next: "sign in with a token of your own: millwright token create",
    });
  peer.signedIn?.();
  noteAccess(request.raw, { caller: identity.name });
  const userAgent = request.headers["user-agent"] ?? "";
  const opened = await openSession(
    deps.services,
    { ...identity, credential, address: peer.address, userAgent },
    deps.rules,
  );
  for (const id of opened.ended) deps.onRevoked(id);
  return { ...opened, name: identity.name, roles: identity.roles };
}
