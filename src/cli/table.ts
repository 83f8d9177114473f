export type Tone = "good" | "bad" | "busy" | "dim" | "bold";

const CODES: { readonly [tone in Tone]: string } = { good: "32", bad: "31", busy: "33", dim: "2", bold: "1" };

export const paint = (text: string, tone: Tone | undefined, color: boolean): string =>
  color && tone && text !== "" ? `\u001b[${CODES[tone]}m${text}\u001b[0m` : text;

/** Text of devices and callers must not steer the terminal: control characters are shown, not sent. */
export const printable = (text: string): string =>
  text.replace(/\p{Cc}/gu, (character) =>
    character === "\n" || character === "\t" ? " " : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );

export const widthOf = (text: string): number => [...text].length;

interface Cell {
  readonly text: string;
  readonly tone: Tone | undefined;
}

const GAP = "  ";
/** The last column is cut to what the terminal has left, but never below this. */
const LEAST_LAST_WIDTH = 12;

/** Columns padded to their widest cell; the last one is cut at the terminal's edge. */
export function tableOf(
  heads: readonly (string | { readonly title: string; readonly least: number })[],
  rows: readonly (readonly Cell[])[],
  style: { readonly color: boolean; readonly width: number | undefined },
): string {
  const columns = heads.map((head) => (typeof head === "string" ? { title: head, least: 0 } : head));
  const texts = rows.map((row) => row.map((cell) => ({ ...cell, text: printable(cell.text) || "-" })));
  const widths = columns.map(({ title, least }, at) =>
    texts.reduce((widest, row) => Math.max(widest, widthOf(row[at]?.text ?? "")), Math.max(least, widthOf(title))),
  );
  const last = columns.length - 1;
  const before = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0);
  const room = style.width === undefined ? Number.POSITIVE_INFINITY : Math.max(LEAST_LAST_WIDTH, style.width - before);
  const line = (cells: readonly Cell[]) =>
    cells
      .map(({ text, tone }, at) => {
        const fitted = at === last ? shorten(text, room) : text;
        const padding = at === last ? "" : " ".repeat(Math.max(0, (widths[at] ?? 0) - widthOf(fitted)));
        return paint(fitted, tone, style.color) + padding;
      })
      .join(GAP);
  const head = line(columns.map(({ title }) => ({ text: title, tone: "bold" as const })));
  return [head, ...texts.map(line)].map((text) => `${text.trimEnd()}\n`).join("");
}

export function shorten(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return `${[...text].slice(0, Math.max(0, width - 1)).join("")}…`;
}
