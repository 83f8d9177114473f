import type { HandlerOf, StateHandler } from "../../engine/pass.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { Outcome } from "../../kernel/outcome.ts";

/** The engine treats all kinds alike: here the kind's own types are put back on. */
export function withContext<T extends Thing, C>(
  handlers: { readonly [state: string]: ((thing: T, context: C) => Promise<Outcome>) | undefined },
  contextOf: (thing: T) => Omit<C, "call">,
  asSeenBy: (thing: T) => T = (thing) => thing,
): HandlerOf {
  return (state) => {
    const handler = handlers[state];
    if (!handler) return undefined;
    const wired: StateHandler = (thing, { call }) =>
      handler(asSeenBy(thing as T), { ...contextOf(thing as T), call } as C);
    return wired;
  };
}
