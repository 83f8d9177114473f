import { CAUSE_WORDS } from "../../src/kernel/causes.ts";
import { operatorsOf, typeNameOf, wordsOf } from "../../src/kernel/filter/fields.ts";
import { printOrderBy } from "../../src/kernel/filter/order-by.ts";
import { FILTER_LIMITS } from "../../src/kernel/filter/parse-filter.ts";
import { CATALOG_LISTINGS } from "../../src/wiring/surfaces/catalog-lists.ts";
import { allThings } from "../../src/wiring/things/all-things.ts";
import type { AnyListing } from "../../src/wiring/things/thing.ts";
import { code, page, pageHead, table } from "./markdown.ts";

type Field = AnyListing["fields"][string];

function valuesOf({ type }: Field): string {
  if (type === CAUSE_WORDS) return `[a cause](causes.md), ${code('""')}`;
  const words = wordsOf(type);
  return words ? words.map((word) => code(word === "" ? '""' : word)).join(", ") : typeNameOf(type);
}

const section = ({ name, fields, order }: AnyListing): string[] => [
  `## ${name[0]?.toUpperCase()}${name.slice(1)}`,
  `Without \`order_by\`: ${code(printOrderBy(order))}.`,
  table(
    ["Field", "Values", "Sorts", "Meaning"],
    Object.entries(fields).map(([field, spec]) => [
      code(spec.type === "labels" ? `${field}.<key>` : field),
      valuesOf(spec),
      spec.sort ? "yes" : "",
      spec.doc,
    ]),
  ),
];

const COMPARISONS = [
  ["text", "text", 'rack=rack-1, rack!="", serial~abc, name^=rack-'],
  ["words", ["READY"], "phase IN (READY, RMA)"],
  ["number", "number", "attempt>=2"],
  ["time", "time", 'created_at>-2h, finished_at<2026-01-31T12:00:00Z, last_seen_at=""'],
  ["labels", "labels", 'labels.env=prod, labels."odd key"^=x'],
  ["tags", "tags", "tag=gpu, tag IN (gpu, spare)"],
] as const;

/** What every list can be filtered and sorted by. */
export function filtersPage(): string {
  const listings = [...allThings.flatMap(({ listing }) => listing ?? []), ...CATALOG_LISTINGS];
  return page(
    pageHead("Filters and orders", "the field tables of `src/store/*/*-list.ts`"),
    "Every list takes the same words: `filter`, `order_by`, `page_size`, `page_token` and `with_total` in `millwright.v1`; `filter`, `order_by`, `limit` and `page_token` at `GET /api/v1/nodes`; `filter` in `baremetal.v1`.",
    "A filter joins comparisons with `AND`, `OR`, `NOT` and parentheses. `NOT` binds closest, then `AND`, then `OR`. Example: `phase=READY AND (rack^=rack-1 OR NOT labels.env=prod)`.",
    table(
      ["Values", "Comparisons", "Examples"],
      COMPARISONS.map(([name, type, examples]) => [
        name,
        operatorsOf(type)
          .map((operator) => code(operator === "in" ? "IN" : operator))
          .join(" "),
        code(examples),
      ]),
    ),
    [
      "- `~` means *contains*, `!~` *does not contain*, `^=` *begins with*. All three ignore the case of the letters A to Z; `=` does not.",
      '- `field=""` admits what has no value, `field!=""` what has one. A time is compared with `=` and `!=` in this way only.',
      "- A time is a day (`2026-01-31`), a moment with its zone, or relative: `-30m`, `-2h`, `-7d` before now. All pages of a list take the moment of the first page.",
      "- Put a value with blanks or marks into single or double quotes; `\\` takes the next quote or `\\` as it is. So does the key of a label.",
      `- A filter has at most ${FILTER_LIMITS.characters} characters, ${FILTER_LIMITS.terms} comparisons and ${FILTER_LIMITS.values} values in one \`IN\`.`,
      "- `order_by` names up to five fields, each with `desc` behind it if need be: `rack, created_at desc`. Rows without a value come last, with `desc` first. Equal rows stand in the order of their ids.",
      "- A `page_token` belongs to one filter and one order; with another it is refused. Rows that come between two pages are neither repeated nor do they push others out.",
      "- The total is counted only where it is asked for.",
      "- A wrong filter or order is `INVALID_ARGUMENT`: the message names the position, the word that was found there, and the fields that there are.",
    ].join("\n"),
    listings.flatMap(section),
  );
}
