import { OneTimeCodes } from "../../api/auth/session/one-time-codes.ts";
import { createSessionRoutes, type SessionRouteDeps } from "../../api/auth/session/session-routes.ts";
import type { ApiLimits } from "../../api/transport/limits/api-limits.ts";
import { hours } from "../../kernel/time/duration.ts";

/** Long enough to be followed after a pause, short enough to be worth nothing in an old terminal. */
const LINK_LASTS = hours(1);

/** Signing in to the console, and the links that do so once. */
export function wireConsoleSessions(
  deps: Omit<SessionRouteDeps, "codes" | "peerOf" | "quotas">,
  limits: ApiLimits,
): { readonly routes: ReturnType<typeof createSessionRoutes>; linkFor(token: string, httpUrl: string): string } {
  const codes = new OneTimeCodes(deps.clock);
  return {
    routes: createSessionRoutes({ ...deps, codes, quotas: limits.quotas, peerOf: ({ raw }) => limits.peerOf(raw) }),
    linkFor: (token, httpUrl) => `${httpUrl}/sign-in#code=${codes.issue(token, LINK_LASTS)}`,
  };
}
