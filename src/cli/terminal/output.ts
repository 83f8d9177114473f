import type { Json } from "../client/proto-json.ts";
import { csvOf } from "./csv.ts";
import { escapeQuoted, isSteering, jsonText, printable, printableLines } from "./printable.ts";
import { type Cell, headOf, paint, rowOf, type Tone, tableOf } from "./table.ts";
import { layTable } from "./table-layout.ts";
import { widthOf, wrapWords } from "./wrap-words.ts";

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
  /** For people at a narrow terminal: the same in fewer characters, and how many those are. */
  readonly short?: { readonly cell: (item: T, now: Date) => string; readonly least: number };
  /** Characters that it takes at least, in a stream: rows that come later then stand below those that came before. */
  readonly least?: number;
  /** People at a narrow terminal do without it. */
  readonly minor?: boolean;
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
      return `${jsonText(items.map(json), 2)}\n`;
    case "yaml":
      return yamlOf(items.map(json));
    case "csv":
      return csvOf([
        columns.map((column) => column.title.toLowerCase().replaceAll(" ", "_")),
        ...items.map((item) => plainCells(item, columns)),
      ]);
    case "table":
      return tableOf(
        columns,
        items.map((item) =>
          columns.map(({ cell, short, tone }) => ({
            text: cell(item, style.now),
            short: short?.cell(item, style.now),
            tone: tone?.(item),
          })),
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
      return `${jsonText(thing.json(thing.item), 2)}\n`;
    case "yaml":
      return yamlOf(thing.json(thing.item));
    case "csv":
      return renderList({ items: [thing.item], columns: thing.columns, json: thing.json }, style);
    case "table": {
      const sections = (thing.sections ?? []).map(
        ({ title, body }) => `\n${paint(printable(title), "bold", style.color)}\n${body}`,
      );
      return detailsOf(thing.details, style) + sections.join("");
    }
  }
}

/** Below this a text is not wrapped beside its label: the terminal breaks it better. */
const LEAST_DETAIL_ROOM = 30;
/** A command is copied from the screen; in one line it is pasted as one. */
const IS_COMMAND = /^millwright /;

export function detailsOf(details: readonly Detail[], style: Pick<Style, "color" | "width">): string {
  const shown = details.filter(([, text]) => text !== "");
  const width = Math.max(0, ...shown.map(([label]) => widthOf(label))) + 2;
  const room = (style.width ?? Number.POSITIVE_INFINITY) - width;
  return shown
    .map(([label, text, tone]) => {
      const safe = printable(text);
      const lines = room < LEAST_DETAIL_ROOM || IS_COMMAND.test(safe) ? [safe] : wrapWords(safe, room);
      const painted = lines.map((line) => paint(line, tone, style.color)).join(`\n${" ".repeat(width)}`);
      return `${paint(`${label}:`.padEnd(width), "dim", style.color)}${painted}\n`;
    })
    .join("");
}

/** One change of a watched thing: a line each, so that it can be piped. */
export async function renderChange<T>(listing: Omit<Listing<T>, "items">, item: T, style: Style): Promise<string> {
  switch (style.format) {
    case "json":
      return `${jsonText(listing.json(item))}\n`;
    case "yaml":
      return `---\n${await yamlOf(listing.json(item))}`;
    case "csv":
      return csvOf([plainCells(item, listing.columns)]);
    case "table": {
      const { columns, layout, isShort } = streamLayout(listing.columns, style);
      const cells = columns.map(({ cell, short, tone }): Cell => {
        const text = ((isShort && short?.cell) || cell)(item, style.now);
        return { text: printable(text) || "-", tone: tone?.(item) };
      });
      return rowOf(columns, layout, cells, style);
    }
  }
}

/** Rows that are yet to come: as wide as their columns say. */
function streamLayout<T>(columns: readonly Column<T>[], { width }: Pick<Style, "width">) {
  const layout = layTable(columns, [], width);
  if (layout.below.length === 0 && layout.beside.length === columns.length) return { columns, layout, isShort: false };
  const short = columns.map((column) => (column.short ? { ...column, least: column.short.least } : column));
  return { columns: short, layout: layTable(short, [], width), isShort: true };
}

/** How many of a stream's columns have room beside each other. */
export const columnsBeside = <T>(columns: readonly Column<T>[], style: Pick<Style, "width">): number =>
  streamLayout(columns, style).layout.beside.length;

/** What stands above a stream of changes; JSON and YAML need nothing there. */
export async function renderHead<T>(columns: readonly Column<T>[], style: Style): Promise<string> {
  if (style.format === "csv") return renderList({ items: [], columns, json: () => null }, style);
  if (style.format !== "table") return "";
  const stream = streamLayout(columns, style);
  return headOf(stream.columns, stream.layout, style);
}

function plainCells<T>(item: T, columns: readonly Column<T>[]): string[] {
  return columns.map((column) => printableLines(column.plain ? column.plain(item) : column.cell(item, new Date(0))));
}

export async function yamlOf(value: Json): Promise<string> {
  const { Document, visit } = await import("yaml");
  // Most readers still take the words of YAML 1.1 for what they were there: `on` is true, `1:30` a number, `no` is false.
  const document = new Document(value, { version: "1.2", compat: "yaml-1.1", aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value === "string" && isSteering(scalar.value.replace(/[\n\t]/g, "")))
        scalar.type = "QUOTE_DOUBLE";
    },
  });
  return escapeQuoted(document.toString({ lineWidth: 0 }));
}
