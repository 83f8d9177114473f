import { printable } from "./printable.ts";
import { GAP, INDENT, layTable, type TableColumn, type TableLayout } from "./table-layout.ts";
import { packLines, widthOf, wrapWords } from "./wrap-words.ts";

export type Tone = "good" | "bad" | "busy" | "dim" | "bold";

const CODES: { readonly [tone in Tone]: string } = { good: "32", bad: "31", busy: "33", dim: "2", bold: "1" };

export const paint = (text: string, tone: Tone | undefined, color: boolean): string =>
  color && tone && text !== "" ? `\u001b[${CODES[tone]}m${text}\u001b[0m` : text;

export interface Cell {
  readonly text: string;
  readonly tone: Tone | undefined;
  /** The same in fewer characters, for terminals that the table is too wide for. */
  readonly short?: string | undefined;
}

/** Columns padded to their widest cell. Nothing is cut: what a terminal has no room for beside the others stands below them. */
export function tableOf(
  heads: readonly (string | TableColumn)[],
  rows: readonly (readonly Cell[])[],
  style: { readonly color: boolean; readonly width: number | undefined },
): string {
  const columns = heads.map((head) => (typeof head === "string" ? { title: head } : head));
  const shown = (short: boolean) =>
    rows.map((row) => row.map(({ text, short: other, tone }) => shownCell(short ? (other ?? text) : text, tone)));
  const textsOf = (cells: readonly (readonly Cell[])[]) => cells.map((row) => row.map(({ text }) => text));
  let cells = shown(false);
  let layout = layTable(columns, textsOf(cells), style.width);
  if (layout.below.length > 0 || layout.beside.length < columns.length) {
    cells = shown(true);
    layout = layTable(columns, textsOf(cells), style.width);
  }
  return headOf(columns, layout, style) + cells.map((row) => rowOf(columns, layout, row, style)).join("");
}

const shownCell = (text: string, tone: Tone | undefined): Cell => ({ text: printable(text) || "-", tone });

/** The titles, laid out as the rows are. */
export function headOf(columns: readonly TableColumn[], layout: TableLayout, { color }: { readonly color: boolean }) {
  const bold = (at: number): Cell => ({ text: columns[at]?.title ?? "", tone: "bold" });
  const [only, ...more] = layout.below;
  // Of several, each brings its title along.
  const below = only === undefined || more.length > 0 ? "" : `${INDENT}${paint(bold(only).text, "bold", color)}\n`;
  return besideOf(layout, bold, color) + below;
}

/** One row, of one line or more. */
export function rowOf(
  columns: readonly TableColumn[],
  layout: TableLayout,
  row: readonly Cell[],
  { color, width }: { readonly color: boolean; readonly width: number | undefined },
): string {
  const cell = (at: number): Cell => row[at] ?? { text: "", tone: undefined };
  const below = layout.below.filter((at) => cell(at).text !== "-" && cell(at).text !== "");
  const room = Math.max(1, (width ?? Number.POSITIVE_INFINITY) - INDENT.length);
  const lines =
    layout.below.length === 1
      ? below.flatMap((at) => wrapWords(cell(at).text, room).map((line) => paint(line, cell(at).tone, color)))
      : packLines(
          below.map((at) => `${columns[at]?.title ?? ""} ${cell(at).text}`),
          room,
          GAP,
        ).filter((line) => line !== "");
  return besideOf(layout, cell, color) + lines.map((line) => `${INDENT}${line}\n`).join("");
}

/** The columns that stand side by side; the last one in as many lines as its text takes. */
function besideOf({ beside, widths, lastRoom }: TableLayout, cell: (at: number) => Cell, color: boolean): string {
  const last = beside.at(-1) ?? 0;
  const { text, tone } = cell(last);
  const others = beside.slice(0, -1);
  const padded = others.map((at) => {
    const { text: shown, tone: itsTone } = cell(at);
    return paint(shown, itsTone, color) + " ".repeat(Math.max(0, (widths[at] ?? 0) - widthOf(shown)));
  });
  // A first column has nothing to stand below of: it goes on as the terminal lets it.
  const lines = others.length === 0 || lastRoom === undefined ? [text] : wrapWords(text, lastRoom);
  const hanging = " ".repeat(others.reduce((sum, at) => sum + (widths[at] ?? 0) + GAP.length, 0));
  return lines
    .map((line, at) => {
      const painted = paint(line, tone, color);
      return `${(at === 0 ? [...padded, painted].join(GAP) : hanging + painted).trimEnd()}\n`;
    })
    .join("");
}
