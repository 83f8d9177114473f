import { printScope, type Reach, reachOf } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { namedList } from "../../kernel/named-list.ts";
import type { EventSource } from "../../store/lifecycle/event-source.ts";
import { findOutside } from "../../store/lifecycle/places.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import type { Caller } from "./caller.ts";
import type { ServiceDeps } from "./deps.ts";

export type { ThingKey } from "../../store/lifecycle/things.ts";

type Deps = Pick<ServiceDeps, "db" | "stores">;

const MOST_SHOWN = 20;

/**
 * Why the caller may not see or act on these things: `permission_denied`, with all that are not within its scope. What does not exist is told
 * in the same words, so that nobody learns what there is elsewhere.
 */
export async function outOfReach(
  deps: Deps,
  { name, scope }: Caller,
  things: readonly ThingKey[],
): Promise<AppError | undefined> {
  const reach = reachOf(scope);
  if (!reach || !scope) return undefined;
  const outside = await findOutside(deps.db, deps.stores, reach, things);
  if (outside.length === 0) return undefined;
  const words = [...new Set(outside.map(({ kind, id }) => `${kind.slice(0, 40)} ${id.slice(0, 80)}`))];
  return new AppError(
    "permission_denied",
    `${namedList(words, MOST_SHOWN)}: not within the scope of '${name}' (${printScope(scope).join(" ")}), or does not exist`,
    { next: "ask an administrator for a token with a wider scope" },
  );
}

/** How long it is remembered where a thing is: of a thing that changes all the time it is not asked each time. */
const REMEMBERED_MS = 1_000;
const MOST_REMEMBERED = 10_000;

/** The events of things that are within the reach when they are told. A thing that has left it, or is gone, is not told of any more. */
export function eventsWithin(deps: Deps, events: EventSource, reach: Reach | undefined): EventSource {
  if (!reach) return events;
  return {
    async *follow(from, filter, signal) {
      const known = new Map<string, { readonly isWithin: boolean; readonly until: number }>();
      const isWithin = async ({ kind, id }: ThingKey): Promise<boolean> => {
        const key = `${kind}/${id}`;
        const remembered = known.get(key);
        if (remembered && performance.now() < remembered.until) return remembered.isWithin;
        const outside = await findOutside(deps.db, deps.stores, reach, [{ kind, id }]);
        if (known.size >= MOST_REMEMBERED) known.clear();
        known.set(key, { isWithin: outside.length === 0, until: performance.now() + REMEMBERED_MS });
        return outside.length === 0;
      };
      for await (const item of events.follow(from, filter, signal))
        if (item.type === "bookmark" || (await isWithin(item.row))) yield item;
    },
  };
}
