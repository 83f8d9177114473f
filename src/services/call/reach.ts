import { printScope, type Reach, reachOf } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { namedList } from "../../kernel/named-list.ts";
import type { EventSource } from "../../store/lifecycle/event-source.ts";
import { findOutside } from "../../store/lifecycle/places.ts";
import { nameOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { Caller } from "./caller.ts";
import type { ServiceDeps } from "./deps.ts";
import { together } from "./together.ts";

export type { ThingKey } from "../../store/lifecycle/things.ts";

type Deps = Pick<ServiceDeps, "db" | "lists" | "stores">;

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
/** Of so many events that are there already it is asked at once. */
const MOST_TOGETHER = 200;

/** The events of things that are within the reach when they are told. A thing that has left it, or is gone, is not told of any more. */
export function eventsWithin(deps: Deps, events: EventSource, reach: Reach | undefined): EventSource {
  if (!reach) return events;
  return {
    async *follow(from, filter, signal) {
      const places = new RememberedPlaces(deps, reach);
      for await (const items of together(events, { from, filter, signal }, MOST_TOGETHER)) {
        await places.ask(items.flatMap((item) => (item.type === "event" ? [item.row] : [])));
        for (const item of items) if (item.type === "bookmark" || places.isWithin(item.row)) yield item;
      }
    },
  };
}

/** Which things are within a reach, as it was a moment ago. */
class RememberedPlaces {
  readonly #deps: Deps;
  readonly #reach: Reach;
  readonly #known = new Map<string, { readonly isWithin: boolean; readonly until: number }>();

  constructor(deps: Deps, reach: Reach) {
    this.#deps = deps;
    this.#reach = reach;
  }

  isWithin = (thing: ThingKey): boolean => this.#known.get(nameOf(thing))?.isWithin ?? false;

  /** Over the connections of lists: what callers watch keeps the engine from none of its own. */
  async ask(things: readonly ThingKey[]): Promise<void> {
    const now = performance.now();
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear();
    const unknown = things.filter((thing) => (this.#known.get(nameOf(thing))?.until ?? 0) <= now);
    if (unknown.length === 0) return;
    const { db, lists = db, stores } = this.#deps;
    const outside = new Set((await findOutside(lists, stores, this.#reach, unknown)).map(nameOf));
    const until = performance.now() + REMEMBERED_MS;
    for (const name of unknown.map(nameOf)) this.#known.set(name, { isWithin: !outside.has(name), until });
  }
}
