import type { Reach } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { withinOf } from "../../store/lifecycle/places.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { type FoundTerm, findNames, findStates, findTerms } from "../../store/search/search-terms.ts";
import { type OverviewDeps, rackSqlOf } from "../overview/listings.ts";

/** What is searched, in the order in which things that are found alike are shown. */
const SEARCHED = ["machine", "rack", "fleet_node", "power_shelf", "switch", "install", "run"] as const;

export interface SearchQuery {
  readonly query: string;
  readonly kinds: readonly string[];
  readonly limit: number;
  /** Only things within it are found. Undefined: all. */
  readonly reach: Reach | undefined;
}

export interface SearchHit {
  readonly kind: string;
  readonly id: string;
  readonly field: string;
  readonly value: string;
  readonly name: string;
  readonly state: string;
  readonly rackId: string;
}

export interface SearchResult {
  readonly hits: readonly SearchHit[];
  readonly isCut: boolean;
}

const LENGTHS = { least: 2, most: 100 } as const;
const MOST_HITS = 100;
const USUAL_HITS = 20;
/** A thing has few values, of which several may be found. */
const TERMS_A_KIND = 300;

/** Things by whatever of their values begins with the query, or has a word that does; the best first. */
export async function search(deps: OverviewDeps, request: SearchQuery): Promise<SearchResult> {
  const prefixes = prefixesOf(request.query);
  const limit = limitFrom(request.limit);
  const kinds = kindsFrom(request.kinds);
  const terms = await findAll(deps, { kinds, prefixes, reach: request.reach });
  const best = bestOfEach(terms, prefixes);
  const found = await addStates(deps, best.slice(0, MOST_HITS * 2));
  const ended = found.filter(({ hasEnded }) => hasEnded);
  const hits = [...found.filter(({ hasEnded }) => !hasEnded), ...ended].slice(0, limit).map(({ hit }) => hit);
  return { hits, isCut: found.length > limit || terms.length >= TERMS_A_KIND };
}

/** Of kinds that are cut to a reach each is searched by itself: where its things are is in its own table. */
async function findAll(
  deps: OverviewDeps,
  { kinds, prefixes, reach }: Pick<SearchQuery, "kinds" | "reach"> & { readonly prefixes: readonly string[] },
): Promise<readonly FoundTerm[]> {
  const { lists = deps.db } = deps;
  const limit = TERMS_A_KIND;
  if (!reach) return findTerms(lists, { kinds, prefixes, limit });
  const found = [];
  for (const kind of kinds) {
    const store = storeOf(deps.stores, kind);
    const within = withinOf(store, reach);
    found.push(
      await findTerms(lists, { kinds: [kind], prefixes, limit, ...(within && { of: { table: store.table, within } }) }),
    );
  }
  return found.flat();
}

function prefixesOf(query: string): string[] {
  const text = query.trim().toLowerCase();
  if (text.length < LENGTHS.least || text.length > LENGTHS.most)
    throw new AppError(
      "invalid_argument",
      `query: ${LENGTHS.least} to ${LENGTHS.most} characters, got ${text.length}`,
      {
        field: "query",
      },
    );
  const digits = text.replace(/[:.-]/g, "");
  const isMac = /^[0-9a-f]{4,12}$/.test(digits) && digits !== text;
  return isMac ? [text, digits] : [text];
}

function limitFrom(limit: number): number {
  if (limit === 0) return USUAL_HITS;
  if (limit > 0 && limit <= MOST_HITS) return limit;
  throw new AppError("invalid_argument", `limit: at most ${MOST_HITS}, and not below 0, got ${limit}`, {
    field: "limit",
  });
}

function kindsFrom(kinds: readonly string[]): readonly string[] {
  const odd = kinds.find((kind) => !SEARCHED.some((one) => one === kind));
  if (odd !== undefined)
    throw new AppError(
      "invalid_argument",
      `kinds: ${JSON.stringify(odd.slice(0, 80))} is none of ${SEARCHED.join(", ")}`,
      {
        field: "kinds",
      },
    );
  return SEARCHED.filter((kind) => kinds.length === 0 || kinds.includes(kind));
}

/** The very value, then values that begin with it, then values in which a word does. */
function rankOf({ term, isWhole }: FoundTerm, prefixes: readonly string[]): number {
  const isVery = prefixes.includes(term);
  return isVery ? (isWhole ? 0 : 1) : isWhole ? 2 : 3;
}

/** Each thing once, by the best of its values. */
function bestOfEach(terms: readonly FoundTerm[], prefixes: readonly string[]): FoundTerm[] {
  const order = (a: FoundTerm, b: FoundTerm): number =>
    rankOf(a, prefixes) - rankOf(b, prefixes) ||
    placeOf(a.kind) - placeOf(b.kind) ||
    a.value.length - b.value.length ||
    (a.id < b.id ? -1 : a.id > b.id ? 1 : 0) ||
    Number(b.field === "id") - Number(a.field === "id");
  const seen = new Map<string, FoundTerm>();
  for (const term of terms.toSorted(order)) {
    const key = `${term.kind}/${term.id}`;
    if (!seen.has(key)) seen.set(key, term);
  }
  return [...seen.values()];
}

const placeOf = (kind: string): number => (SEARCHED as readonly string[]).indexOf(kind);

/** One that went since it was found is left out. */
async function addStates(deps: OverviewDeps, terms: readonly FoundTerm[]) {
  const { lists = deps.db } = deps;
  const shown = new Map<FoundTerm, { hit: SearchHit; hasEnded: boolean }>();
  for (const [kind, ofKind] of Map.groupBy(terms, (term) => term.kind)) {
    const { table, lifecycle } = storeOf(deps.stores, kind);
    const ids = ofKind.map(({ id }) => id);
    const states = await findStates(lists, { table, rack: rackSqlOf(deps.listings.get(kind)), ids });
    const byId = new Map(states.map((state) => [state.id, state]));
    const names = await findNames(lists, { kind, ids });
    for (const term of ofKind) {
      const { id, field, value } = term;
      const thing = byId.get(id);
      if (thing === undefined) continue;
      const hit = { kind, id, field, value, name: names.get(id) ?? "", state: thing.state, rackId: thing.rack ?? "" };
      shown.set(term, { hit, hasEnded: lifecycle.states[thing.state]?.terminal === true });
    }
  }
  return terms.flatMap((term) => shown.get(term) ?? []);
}
