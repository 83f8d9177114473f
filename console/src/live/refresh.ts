import type { Query, QueryClient } from "@tanstack/react-query";
import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { EVERYTHING } from "../api/query-keys.ts";

/** How long events are gathered before the queries that they make old are asked again: at rest, and when there are very many. */
const SOON_MS = 80;
const BUSY_MS = 700;
const BUSY_EVENTS = 60;
/** What sums up the whole fleet is no older than this. */
const SUMMARY_EVERY_MS = 2_000;

/**
 * Has the queries read again that an event makes old: those about its thing, and the lists of its kind. However many events come, a query is
 * asked once at a time, and once more after the last of them.
 */
export class Refresh {
  readonly #client: QueryClient;
  readonly #things = new Set<string>();
  readonly #kinds = new Set<string>();
  #timer: number | undefined;

  constructor(client: QueryClient) {
    this.#client = client;
  }

  note({ kind, id }: Pick<Event, "kind" | "id">): void {
    this.#kinds.add(kind);
    this.#things.add(thingOf(kind, id));
    this.#schedule(this.#things.size > BUSY_EVENTS ? BUSY_MS : SOON_MS);
  }

  stop(): void {
    window.clearTimeout(this.#timer);
  }

  #schedule(ms: number): void {
    this.#timer ??= window.setTimeout(() => this.#flush(), ms);
  }

  #flush(): void {
    this.#timer = undefined;
    const old = this.#client.getQueryCache().findAll({ predicate: (query) => this.#isOld(query) });
    const [busy, free] = [true, false].map((isBusy) => old.filter((query) => hasToWait(query) === isBusy));
    const asked = new Set(free);
    const [kinds, things] = [[...this.#kinds], [...this.#things]];
    this.#kinds.clear();
    this.#things.clear();
    void this.#client.invalidateQueries({ predicate: (query) => asked.has(query) });
    if (busy === undefined || busy.length === 0) return;
    // What is being read now may have been read before the event.
    for (const kind of kinds) this.#kinds.add(kind);
    for (const thing of things) this.#things.add(thing);
    this.#schedule(busy.some(isSummary) ? BUSY_MS : SOON_MS);
  }

  #isOld({ queryKey, meta }: Query): boolean {
    const [kind, topic, id] = queryKey as readonly [unknown, unknown, unknown];
    if (meta?.isKeptFresh === true) return false;
    if (isSummary({ queryKey })) return this.#kinds.size > 0;
    if (topic === "list") return this.#kinds.has(String(kind));
    return typeof id === "string" && this.#things.has(thingOf(String(kind), id));
  }
}

const isSummary = ({ queryKey }: Pick<Query, "queryKey">): boolean => queryKey[0] === EVERYTHING;

function hasToWait(query: Query): boolean {
  const { fetchStatus, dataUpdatedAt } = query.state;
  return fetchStatus === "fetching" || (isSummary(query) && Date.now() - dataUpdatedAt < SUMMARY_EVERY_MS);
}

const thingOf = (kind: string, id: string): string => `${kind}\0${id}`;
