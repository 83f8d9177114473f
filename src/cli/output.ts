import { csvOf } from "./csv.ts";
import type { Json } from "./proto-json.ts";
import { paint, printable, type Tone, tableOf, widthOf } from "./table.ts";

/** How to print at this moment. */
export interface Style {
  readonly format: "table" | "json" | "yaml" | "csv";
  readonly color: boolean;
  /** Width of the terminal; undefined when the output goes elsewhere and nothing needs to fit. */
  readonly width: number | undefined;
  readonly now: Date;
}

/** One column of a table; `plain` is for programs (csv), where ages and marks would only be in the way. */
export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T, now: Date) => string;
  readonly plain?: (item: T) => string;
  readonly tone?: (item: T) => Tone | undefined;
  /** Characters that it takes at least: rows that come later then stand below those that came before. */
  readonly least?: number;
}

/** Things of one sort, and how to show them in every format. */
export interface Listing<T> {
  readonly items: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly json: (item: T) => Json;
}

export async function renderList<T>(listing: Listing<T>, style: Style): Promise<string> {
  const { items, columns, json } = listing;
  switch (style.format) {
    case "json":
      return `${JSON.stringify(items.map(json), null, 2)}\n`;
    case "yaml":
      return yamlOf(items.map(json));
    case "csv":
      return csvOf([
        columns.map((column) => column.title.toLowerCase().replaceAll(" ", "_")),
        ...items.map((item) => plainCells(item, columns)),
      ]);
    case "table":
      return tableOf(
        columns.map(({ title, least }) => ({ title, least: least ?? 0 })),
        items.map((item) =>
          columns.map((column) => ({ text: column.cell(item, style.now), tone: column.tone?.(item) })),
        ),
        style,
      );
  }
}

/** One line of detail; an empty text leaves the line out. */
export type Detail = readonly [label: string, text: string, tone?: Tone | undefined];

export interface Section {
  readonly title: string;
  /** Already a table. */
  readonly body: string;
}

export interface OneThing<T> {
  readonly item: T;
  readonly columns: readonly Column<T>[];
  readonly json: (item: T) => Json;
  readonly details: readonly Detail[];
  readonly sections?: readonly Section[];
}

export async function renderOne<T>(thing: OneThing<T>, style: Style): Promise<string> {
  switch (style.format) {
    case "json":
      return `${JSON.stringify(thing.json(thing.item), null, 2)}\n`;
    case "yaml":
      return yamlOf(thing.json(thing.item));
    case "csv":
      return renderList({ items: [thing.item], columns: thing.columns, json: thing.json }, style);
    case "table": {
      const sections = (thing.sections ?? []).map(
        ({ title, body }) => `\n${paint(title, "bold", style.color)}\n${body}`,
      );
      return detailsOf(thing.details, style) + sections.join("");
    }
  }
}

export function detailsOf(details: readonly Detail[], style: Pick<Style, "color">): string {
  const shown = details.filter(([, text]) => text !== "");
  const width = Math.max(0, ...shown.map(([label]) => widthOf(label)));
  return shown
    .map(
      ([label, text, tone]) =>
        `${paint(`${label}:`.padEnd(width + 2), "dim", style.color)}${paint(printable(text), tone, style.color)}\n`,
    )
    .join("");
}

/** One change of a watched thing: a line each, so that it can be piped. */
export async function renderChange<T>(listing: Omit<Listing<T>, "items">, item: T, style: Style): Promise<string> {
  switch (style.format) {
    case "json":
      return `${JSON.stringify(listing.json(item))}\n`;
    case "yaml":
      return `---\n${await yamlOf(listing.json(item))}`;
    case "csv":
      return csvOf([plainCells(item, listing.columns)]);
    case "table":
      return `${listing.columns
        .map((column) => {
          const text = printable(column.cell(item, style.now)) || "-";
          return (
            paint(text, column.tone?.(item), style.color) +
            " ".repeat(Math.max(0, Math.max(column.least ?? 0, widthOf(column.title)) - widthOf(text)))
          );
        })
        .join("  ")
        .trimEnd()}\n`;
  }
}

/** What stands above a stream of changes; JSON and YAML need nothing there. */
export async function renderHead<T>(columns: readonly Column<T>[], style: Style): Promise<string> {
  if (style.format !== "table" && style.format !== "csv") return "";
  return renderList({ items: [], columns, json: () => null }, style);
}

function plainCells<T>(item: T, columns: readonly Column<T>[]): string[] {
  return columns.map((column) => (column.plain ? column.plain(item) : column.cell(item, new Date(0))));
}

export async function yamlOf(value: Json): Promise<string> {
  const { stringify } = await import("yaml");
  // Most readers still take the words of YAML 1.1 for what they were there: `on` is true, `1:30` a number, `no` is false.
  return stringify(value, { lineWidth: 0, version: "1.2", compat: "yaml-1.1" });
}
