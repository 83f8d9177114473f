import type { JsonValue } from "@bufbuild/protobuf";
import type { Row } from "./sections.ts";

export type Change =
  | { readonly action: "add"; readonly wanted: Row }
  | { readonly action: "update"; readonly wanted: Row; readonly fields: readonly string[] }
  | { readonly action: "remove"; readonly known: Row };

interface Choices {
  readonly prune: boolean;
  /** Rows in which nothing differs are put, too. */
  readonly resend: boolean;
}

/** What has to happen for the server to have what the file says. */
export function differenceOf(wanted: readonly Row[], known: readonly Row[], { prune, resend }: Choices): Change[] {
  const byKey = new Map(known.map((row) => [row.key, row]));
  const named = new Set(wanted.map(({ key }) => key));
  return [
    ...wanted.flatMap((row): Change[] => {
      const there = byKey.get(row.key);
      if (!there) return [{ action: "add", wanted: row }];
      const fields = changedFields(row, there);
      return fields.length === 0 && !resend ? [] : [{ action: "update", wanted: row, fields }];
    }),
    ...(prune
      ? known.flatMap((row): Change[] => (named.has(row.key) || !row.remove ? [] : [{ action: "remove", known: row }]))
      : []),
  ];
}

/** Fields that the file gives another value; what it does not mention is left as it is. */
function changedFields(wanted: Row, known: Row): string[] {
  return Object.entries(wanted.says).flatMap(([field, value]) => (includes(known.says[field], value) ? [] : [field]));
}

/** Whether what is known says all that is wanted; objects may say more. Ports that are the usual ones need not be said. */
function includes(known: JsonValue | undefined, wanted: JsonValue): boolean {
  if (typeof wanted === "string" && typeof known === "string") return known === wanted || known === `${wanted}:443`;
  if (Array.isArray(wanted))
    return (
      Array.isArray(known) &&
      known.length === wanted.length &&
      wanted.every((each, at) => includes(known[at] as JsonValue, each as JsonValue))
    );
  if (typeof wanted === "object" && wanted !== null) {
    if (typeof known !== "object" || known === null || Array.isArray(known)) return Object.keys(wanted).length === 0;
    return Object.entries(wanted).every(([field, value]) =>
      includes((known as Record<string, JsonValue>)[field], value as JsonValue),
    );
  }
  return known === wanted;
}
