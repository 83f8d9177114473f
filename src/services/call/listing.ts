import type { Reach } from "../../kernel/access/scope.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import { parseOrderBy, type SortKey } from "../../kernel/filter/order-by.ts";
import { parseFilter } from "../../kernel/filter/parse-filter.ts";
import { reachSql } from "../../store/lifecycle/places.ts";
import { filterFieldsOf, sortFieldsOf } from "../../store/postgres/list-fields.ts";
import type { Listing, Within } from "../../store/postgres/listing.ts";
import type { SortValues } from "../../store/postgres/sort-sql.ts";
import { nowOf, type ServiceDeps } from "./deps.ts";
import { checkPageSize, cutPage, type Page, parsePlace } from "./paging.ts";

/** What callers ask of any list, in the same words everywhere. */
export interface ListRequest {
  readonly filter: string;
  readonly orderBy?: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly withTotal?: boolean;
  /** Only things within it are listed, and counted. Undefined: all. */
  readonly reach: Reach | undefined;
  /**
   * How many rows to leave out, for clients that page by counting: rows that come or go between two pages are then repeated or
   * missed. With a token it counts from there.
   */
  readonly offset?: number;
}

export interface ListPage<T> extends Page<T> {
  /** Of all pages; null unless it was asked for. */
  readonly totalSize: number | null;
}

interface ListOptions<F extends string, T, U> {
  /** What the request asks in fields of its own; it must hold besides the filter. */
  readonly clauses?: Filter<F>;
  /** What else must hold, where that depends on what the filter says. */
  readonly completed?: (filter: Filter<F>) => Filter<F>;
  /** The same as it was sent: the pages of a list are those of one request. */
  readonly query?: object;
  /** How many rows a page has unless the request says. */
  readonly defaultSize?: number;
  readonly show: (thing: T) => U;
}

/** The field has this value; nothing is asked where there is none. */
export const is = <F extends string>(field: F, value: string | undefined): Filter<F> =>
  value === undefined ? [] : [{ field, operator: "=", value }];

/** One page of a list: filtered, sorted and counted by the database. */
export async function pageList<F extends string, T, U>(
  deps: ServiceDeps,
  listing: Listing<F, T>,
  request: ListRequest,
  { clauses = [], completed = (filter) => filter, query: own = {}, defaultSize, show }: ListOptions<F, T, U>,
): Promise<ListPage<U>> {
  const { filter: text, orderBy = "", pageSize, pageToken, reach } = request;
  const within = reach && withinReach(deps, listing, reach);
  const size = pageSize === 0 && defaultSize !== undefined ? defaultSize : checkPageSize(pageSize);
  const order = listing.completeOrder(orderOf(listing, orderBy));
  const reading = readFilter(listing, text, nowOf(deps));
  const query = { ...own, of: listing.name, filter: text, ...(orderBy !== "" && { orderBy }) };
  const place = parsePlace(deps.secrets, pageToken, query, order.length + (reading.isRelative ? 1 : 0));
  const { after, now } = beginningOf(place, reading);
  const filter = [...clauses, ...completed(now ? readFilter(listing, text, now).filter : reading.filter)];
  const { offset } = request;
  const asked = { filter, order, after, within, limit: size + 1, ...(offset !== undefined && { offset }) };
  const { lists = deps.db } = deps;
  const rows = await listing.collect(lists, asked, (thing, values) => ({
    shown: show(thing),
    values,
  }));
  const moment = reading.isRelative ? [(now ?? reading.now).toISOString()] : [];
  const page = cutPage(deps.secrets, rows, size, query, ({ values }) => [...moment, ...values]);
  const totalSize = request.withTotal ? await listing.count(lists, filter, within) : null;
  return { items: page.items.map(({ shown }) => shown), nextPageToken: page.nextPageToken, totalSize };
}

/** A list that does not say of which things it is, or of things that are nowhere, is no list for who sees some things only. */
function withinReach(
  { stores }: ServiceDeps,
  { name, kind = "" }: Pick<Listing<never, never>, "name" | "kind">,
  reach: Reach,
): Within {
  const place = stores.get(kind)?.place;
  if (!place) throw new Error(`the list of ${name} was asked for within a reach, and its things have no place`);
  return (parameter) => reachSql(place, reach, parameter);
}

function orderOf<F extends string, T>(listing: Listing<F, T>, orderBy: string): readonly SortKey<F>[] {
  const order = parseOrderBy(orderBy, sortFieldsOf(listing.fields));
  return order.length === 0 ? listing.order : order;
}

interface FilterReading<F extends string> {
  readonly filter: Filter<F>;
  /** It has times such as "two hours ago". */
  readonly isRelative: boolean;
  readonly now: Date;
}

function readFilter<F extends string, T>(listing: Listing<F, T>, text: string, now: Date): FilterReading<F> {
  let isRelative = false;
  const filter = parseFilter(text, filterFieldsOf(listing.fields), () => {
    isRelative = true;
    return now;
  });
  return { filter, isRelative, now };
}

/** Two hours ago is the same moment on every page: the one of the first page. */
function beginningOf<F extends string>(
  place: SortValues | undefined,
  { isRelative }: FilterReading<F>,
): { readonly after: SortValues | undefined; readonly now?: Date } {
  if (place === undefined || !isRelative) return { after: place };
  const [moment, ...after] = place;
  return { after, now: new Date(moment ?? "") };
}
