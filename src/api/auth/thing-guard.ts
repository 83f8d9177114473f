import type { Interceptor } from "@connectrpc/connect";
import { reachOf } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { seconds } from "../../kernel/time/duration.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { outOfReach } from "../../services/call/reach.ts";
import { callerKey } from "../transport/interceptors.ts";
import type { Access } from "./access.ts";
import { thingsIn } from "./thing-rule.ts";

/** Throws unless everything that the request names is within the caller's scope. Roles and groups are checked before. */
export type GuardThings = (caller: Caller, method: string, request: unknown) => Promise<void>;

export const createThingGuard =
  (access: Pick<Access, "thingsOf">, deps: Pick<ServiceDeps, "db" | "stores">): GuardThings =>
  async (caller, method, request) => {
    const rule = access.thingsOf(method);
    if (reachOf(caller.scope) === undefined || rule === undefined || rule === "list") return;
    const things = thingsIn(request, rule);
    // To many methods no id means everything.
    if (things.length === 0)
      throw new AppError(
        "permission_denied",
        `'${caller.name}' must name the things of ${method}, because its scope is limited`,
      );
    const refused = await outOfReach(deps, caller, things);
    if (refused) throw refused;
  };

/** How often it is asked again of a stream, while there is something to send. */
const ASKED_AGAIN = seconds(10);

/** The same for RPCs. A stream ends when what it is about leaves the caller's scope. */
export const guardThingsOfCalls =
  (guard: GuardThings): Interceptor =>
  (next) =>
  async (request) => {
    const caller = request.contextValues.get(callerKey);
    if (reachOf(caller.scope) === undefined) return next(request);
    const method = `${request.service.typeName}/${request.method.name}`;
    if (!request.stream) {
      await guard(caller, method, request.message);
      return next(request);
    }
    let asked: unknown;
    const check = () => guard(caller, method, asked);
    async function* checked<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
      for await (const message of messages) {
        asked = message;
        await check();
        yield message;
      }
    }
    const response = await next({ ...request, message: checked(request.message) });
    return response.stream ? { ...response, message: checkedNowAndThen(response.message, check) } : response;
  };

async function* checkedNowAndThen<T>(messages: AsyncIterable<T>, check: () => Promise<void>): AsyncGenerator<T> {
  let next = performance.now() + ASKED_AGAIN;
  for await (const message of messages) {
    if (performance.now() >= next) {
      await check();
      next = performance.now() + ASKED_AGAIN;
    }
    yield message;
  }
}
