import type { Queryable } from "../postgres/database.ts";
import type { Within } from "../postgres/listing.ts";

/** A value that begins with what is searched for, or in which a word does. */
export interface FoundTerm {
  readonly kind: string;
  readonly id: string;
  readonly field: string;
  /** As the thing has it. */
  readonly value: string;
  /** From where it was found on, in small letters; MAC addresses without colons. */
  readonly term: string;
  /** That is the whole value. */
  readonly isWhole: boolean;
}

/** After every text that begins with the prefix, where bytes are compared. */
const LAST = "\u{10ffff}";

/** Terms that begin with one of the prefixes, of each kind the shortest ones first that are alike: the very term leads. */
export function findTerms(
  db: Queryable,
  {
    kinds,
    prefixes,
    limit,
    of,
  }: {
    readonly kinds: readonly string[];
    readonly prefixes: readonly string[];
    readonly limit: number;
    /** Only of these things of the table. Absent: of all. */
    readonly of?: { readonly table: string; readonly within: Within };
  },
): Promise<FoundTerm[]> {
  const values: unknown[] = [kinds, prefixes, LAST];
  const among = of
    ? ` and exists (select 1 from ${of.table} t where t.id = search_terms.id and ${of.within((value) => `$${values.push(value)}`)})`
    : "";
  return db.query<FoundTerm>(
    `select s.kind, s.id, s.field, s.value, s.term, s.is_whole as "isWhole"
       from unnest($1::text[]) as k(kind) cross join unnest($2::text[]) as p(prefix)
            cross join lateral (select * from search_terms where kind = k.kind and term >= p.prefix and term < p.prefix || $3${among}
                                 order by term, id limit ${Math.floor(limit)}) as s`,
    values,
  );
}

/** What people call things, by their ids. */
export async function findNames(
  db: Queryable,
  { kind, ids }: { readonly kind: string; readonly ids: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const rows = await db.query<{ id: string; value: string }>(
    `select id, value from search_terms where kind = $1 and id = any($2) and field in ('name', 'hostname') and is_whole`,
    [kind, ids],
  );
  return new Map(rows.map(({ id, value }) => [id, value]));
}

export interface PlacedState {
  readonly id: string;
  readonly state: string;
  readonly rack: string | null;
}

/** In which states things are, and in which racks. `rack` is where the rack is. */
export const findStates = (
  db: Queryable,
  {
    table,
    rack = "null::text",
    ids,
  }: { readonly table: string; readonly rack?: string | undefined; readonly ids: readonly string[] },
): Promise<PlacedState[]> =>
  db.query<PlacedState>(`select t.id, t.state, ${rack} as rack from ${table} t where t.id = any($1)`, [ids]);
