import type { Log } from "../../../kernel/log.ts";
import type { Authenticate } from "../../auth/authenticate.ts";
import { refusedCallerOf } from "../../auth/refused-caller.ts";
import type { RouteDeps } from "../../rest/route.ts";
import type { ApiLimits } from "../limits/api-limits.ts";
import { signInCounted } from "../limits/counted-sign-in.ts";
import { isHungUp, noteAccess, onceOver } from "./access-log.ts";

/** What every route passes through: its caller signs in, and what is a bug gets a reference. Both are in the log. */
export const createRestFrame = (
  authenticate: Authenticate,
  log: Log,
  limits: ApiLimits,
): Omit<RouteDeps, "guardThings"> => ({
  async authenticate({ headers, raw }, route) {
    try {
      const peer = limits.peerOf(raw);
      const signIn = () => authenticate(new Headers(headers as Record<string, string>), peer, route);
      const caller = await signInCounted(signIn, peer.address, limits.quotas);
      noteAccess(raw, { caller: caller.name });
      onceOver(raw, limits.quotas.call(caller));
      return caller;
    } catch (error) {
      noteAccess(raw, { caller: refusedCallerOf(error) });
      throw error;
    }
  },
  reportUnexpected(err, { id, raw }) {
    if (isHungUp(raw, err)) log.debug({ err, requestId: id }, "the caller hung up");
    else log.error({ err, requestId: id }, "request failed unexpectedly");
    return id;
  },
});
