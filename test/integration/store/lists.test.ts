import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { operatorsOf, typeNameOf, wordsOf } from "../../../src/kernel/filter/fields.ts";
import { type FieldValue, type Filter, type FilterTerm, judgeFilter } from "../../../src/kernel/filter/filter.ts";
import type { SortKey } from "../../../src/kernel/filter/order-by.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { refusedCallListing } from "../../../src/store/access/refused-call-list.ts";
import { tokenListingFor } from "../../../src/store/access/token-list.ts";
import { cloudInitTable } from "../../../src/store/catalog/cloud-init.ts";
import { clusterTable } from "../../../src/store/catalog/clusters.ts";
import { imageTable } from "../../../src/store/catalog/images.ts";
import { expectedPowerShelfListing } from "../../../src/store/expected-power-shelf/expected-power-shelf-list.ts";
import { fleetSites } from "../../../src/store/fleet/sites.ts";
import { installListing } from "../../../src/store/install/install-list.ts";
import { machineListing } from "../../../src/store/machine/machine-list.ts";
import { type ListField, readField } from "../../../src/store/postgres/list-fields.ts";
import type { Listing } from "../../../src/store/postgres/listing.ts";
import type { SortValues } from "../../../src/store/postgres/sort-sql.ts";
import { powerShelfListing } from "../../../src/store/power-shelf/power-shelf-list.ts";
import { rackListing } from "../../../src/store/rack/rack-list.ts";
import { planListing } from "../../../src/store/run/plan-list.ts";
import { runListing } from "../../../src/store/run/run-list.ts";
import { switchListing } from "../../../src/store/switch/switch-list.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { LISTED_ROWS, type ListedKind } from "../../support/listed-rows.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/**
 * Every list against its own declaration: what the database finds is what the fields say in memory, and pages show each row once,
 * whatever the order and whatever comes in between.
 */
type AnyListing = Listing<string, unknown>;
const LISTINGS = [
  machineListing,
  runListing,
  powerShelfListing,
  switchListing,
  rackListing,
  expectedPowerShelfListing,
  installListing,
  clusterTable.listing,
  imageTable.listing,
  cloudInitTable.listing,
  planListing,
  fleetSites.listing,
  tokenListingFor(hours(5 * 24)),
  refusedCallListing,
].map((listing) => listing as unknown as AnyListing);
const nameOf = ({ name }: AnyListing) => name as ListedKind;

test("whatever stands in a rack is found by rack and by rack_id", () => {
  const named = LISTINGS.filter(({ fields }) => "rack" in fields || "rack_id" in fields);
  expect(named.map(({ name }) => name)).toEqual(["machines", "power shelves", "switches", "expected power shelves"]);
  for (const { name, fields } of named)
    expect(Object.keys(fields), name).toEqual(expect.arrayContaining(["rack", "rack_id"]));
});

const ROWS = 60;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const listing of LISTINGS) await LISTED_ROWS[nameOf(listing)](database.db, 1, ROWS);
});
afterAll(() => database.drop());

const all = (listing: AnyListing, filter: Filter = [], order = listing.completeOrder([])) =>
  listing.collect(database.db, { filter, order, limit: 10_000 }, (thing, place) => ({ thing, place }));
const keyOf = ({ place }: { readonly place: SortValues }) => place.at(-1);

/** Values that rows have, pieces of them in another case, and one that no row has. */
function valuesOf(values: readonly FieldValue[]): string[] {
  const texts = values.flat().flatMap((value) => {
    if (value === null) return [];
    if (value instanceof Date) return [value.toISOString()];
    const text = String(value);
    return [text, text.slice(0, 3).toUpperCase(), text.slice(-2).toLowerCase()];
  });
  return [...new Set([...texts, "nowhere"])].filter((text) => text !== "");
}

/** What values of a type look like, and one that no row has. */
const FORMS: Readonly<Record<string, { readonly form: RegExp; readonly other: string }>> = {
  number: { form: /^\d+$/, other: "17" },
  time: { form: /Z$/, other: "2026-01-01T12:00:00.000Z" },
};

/** Comparisons that make sense for the field, with values from the rows. */
function termsOf(field: string, spec: ListField<unknown>, rows: readonly unknown[]): fc.Arbitrary<FilterTerm> {
  const keys = typeNameOf(spec.type) === "labels" ? ["env", "odd key", "tier", "spare", "none"] : [undefined];
  return fc.constantFrom(...keys).chain((key) => {
    const where = key === undefined ? { field } : { field, key };
    const held = rows.map((row) => spec.of(row, key ?? "", new Date()));
    const type = typeNameOf(spec.type);
    const { form, other } = FORMS[type] ?? { form: /./, other: "x" };
    const words = wordsOf(spec.type) ?? [...valuesOf(held).filter((text) => form.test(text)), other];
    // Of many words, those that rows have are tried most.
    const values = type === "words" && words.length > 12 ? [...new Set(held.map(String)), ...words.slice(0, 3)] : words;
    return fc.constantFrom(...operatorsOf(spec.type)).chain((operator): fc.Arbitrary<FilterTerm> => {
      const mayBeEmpty = type !== "words" && ["=", "!=", "in"].includes(operator);
      const given = type === "time" && (operator === "=" || operator === "!=") ? [""] : values;
      const value = fc.constantFrom(...(mayBeEmpty ? ["", ...given] : given));
      if (operator === "in")
        return fc.array(value, { minLength: 1, maxLength: 3 }).map((some) => ({ ...where, operator, values: some }));
      return value.map((one) => ({ ...where, operator, value: one }));
    });
  });
}

const anyTerm = (listing: AnyListing, rows: readonly unknown[]): fc.Arbitrary<FilterTerm> =>
  fc.constantFrom(...Object.entries(listing.fields)).chain(([name, spec]) => termsOf(name, spec, rows));

const anyFilter = (term: fc.Arbitrary<FilterTerm>): fc.Arbitrary<Filter> =>
  fc.letrec<{ filter: Filter }>((tie) => ({
    filter: fc.array(
      fc.oneof(
        { depthSize: "small" },
        term,
        fc
          .array(tie("filter"), { minLength: 2, maxLength: 3 })
          .map((any) => ({ any: any.filter(({ length }) => length > 0) })),
        tie("filter").map((not) => ({ not })),
      ),
      { maxLength: 3 },
    ),
  })).filter;

/** The empty choice and the empty negation are no filters that the parser makes. */
const isWhole = (filter: Filter): boolean =>
  filter.every((clause) => {
    if ("any" in clause) return clause.any.length > 0 && clause.any.every(isWhole);
    return !("not" in clause) || (clause.not.length > 0 && isWhole(clause.not));
  });

describe.each(LISTINGS.map((listing) => ({ name: listing.name, listing })))("the list of $name", ({ listing }) => {
  test("has rows of which each field, by each comparison, finds those that it says", async () => {
    const rows = await all(listing);
    expect(rows.length).toBeGreaterThanOrEqual(ROWS); // nodes are machines as well
    const things = rows.map(({ thing }) => thing);
    for (const [name, spec] of Object.entries(listing.fields))
      await fc.assert(
        fc.asyncProperty(termsOf(name, spec, things), (term) => agrees(listing, [term], rows)),
        { numRuns: 25 },
      );
  });

  test("finds by any filter what the filter admits", async () => {
    const rows = await all(listing);
    const term = anyTerm(
      listing,
      rows.map(({ thing }) => thing),
    );
    await fc.assert(
      fc.asyncProperty(anyFilter(term).filter(isWhole), (filter) => agrees(listing, filter, rows)),
      { numRuns: 120 },
    );
  });

  test("shows each row once, in any order, page by page, whatever comes in between", async () => {
    const sortable = Object.entries(listing.fields).filter(([, { sort }]) => sort !== undefined);
    const key: fc.Arbitrary<SortKey> = fc
      .record({ name: fc.constantFrom(...sortable.map(([name]) => name)), descending: fc.boolean() })
      .map(({ name, descending }) =>
        listing.fields[name]?.type === "labels" ? { field: name, key: "env", descending } : { field: name, descending },
      );
    const orders = fc.uniqueArray(key, { maxLength: 3, selector: ({ field }) => field });
    let next = ROWS + 1;
    await fc.assert(
      fc.asyncProperty(orders, fc.integer({ min: 1, max: 40 }), async (keys, size) => {
        const order = listing.completeOrder(keys);
        const before = (await all(listing, [], order)).map(keyOf);
        const seen: (string | null | undefined)[] = [];
        let after: SortValues | undefined;
        do {
          const page = await listing.collect(
            database.db,
            { filter: [], order, after, limit: size },
            (_, place) => place,
          );
          seen.push(...page.map((place) => place.at(-1)));
          after = page.length < size ? undefined : page.at(-1);
          if (next < ROWS + 60) await LISTED_ROWS[nameOf(listing)](database.db, next, 1);
          next += 1;
        } while (after !== undefined);
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen.filter((id) => before.includes(id))).toEqual(before);
      }),
      { numRuns: 30 },
    );
  });
});

async function agrees(
  listing: AnyListing,
  filter: Filter,
  rows: readonly { readonly thing: unknown; readonly place: SortValues }[],
): Promise<void> {
  const now = new Date();
  const admitted = rows.filter(({ thing }) => judgeFilter(filter, readField(listing.fields, thing, now)) === true);
  expect((await all(listing, filter)).map(keyOf)).toEqual(admitted.map(keyOf));
  expect(await listing.count(database.db, filter)).toBe(admitted.length);
}
