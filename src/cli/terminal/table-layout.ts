import { widthOf, wrapWords } from "./wrap-words.ts";

/** What a column is like, whatever is in it. */
export interface TableColumn {
  readonly title: string;
  /** Characters that it takes at least, for rows that are not known yet. */
  readonly least?: number;
  /** Left out where there is no room for it. */
  readonly minor?: boolean;
}

/** Which columns stand where. All numbers are positions among the given columns. */
export interface TableLayout {
  /** Side by side, on the first line of each row. */
  readonly beside: readonly number[];
  /** Below it, indented: there is no room for them beside the others. */
  readonly below: readonly number[];
  /** By position. */
  readonly widths: readonly number[];
  /** What the last one beside the others has; undefined when nothing needs to fit. */
  readonly lastRoom: number | undefined;
}

export const GAP = "  ";
export const INDENT = "    ";
/** A last column of long texts is read in this at least; with less it has its own lines. */
const LEAST_LAST_ROOM = 30;
/** With more than so many lines beside short cells a text is read better below them. */
const MOST_LINES_BESIDE = 3;

const isEmpty = (text: string) => text === "" || text === "-";

/**
 * Puts a table into the width of a terminal, without cutting anything. What does not fit: first the columns that say nothing in
 * any row go, then the minor ones, then those at the end move below the others.
 */
export function layTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number | undefined,
): TableLayout {
  const widths = columns.map(({ title, least = 0 }, at) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[at] ?? "")), Math.max(least, widthOf(title))),
  );
  let shown = columns.map((_, at) => at);
  if (width === undefined) return { beside: shown, below: [], widths, lastRoom: undefined };
  const fits = () => fitsBeside(shown, { rows, widths, width });
  // Without rows nothing is known to be empty.
  if (!fits() && rows.length > 0) shown = shown.filter((at) => at === 0 || rows.some((row) => !isEmpty(row[at] ?? "")));
  for (let at = columns.length - 1; at > 0 && !fits(); at--)
    if (columns[at]?.minor) shown = shown.filter((each) => each !== at);
  const count = fits() ? shown.length : countThatFits(shown, widths, width);
  const beside = shown.slice(0, count);
  return { beside, below: shown.slice(count), widths, lastRoom: roomOfLast(beside, widths, width) };
}

const roomOfLast = (shown: readonly number[], widths: readonly number[], width: number): number =>
  width - shown.slice(0, -1).reduce((sum, at) => sum + (widths[at] ?? 0) + GAP.length, 0);

/** As they are, or with the last column in a few lines. */
function fitsBeside(
  shown: readonly number[],
  { rows, widths, width }: { rows: readonly (readonly string[])[]; widths: readonly number[]; width: number },
): boolean {
  const last = shown.at(-1) ?? 0;
  const room = roomOfLast(shown, widths, width);
  if ((widths[last] ?? 0) <= room) return true;
  if (room < LEAST_LAST_ROOM || shown.length < 2) return false;
  return rows.every((row) => {
    const lines = wrapWords(row[last] ?? "", room);
    return lines.length <= MOST_LINES_BESIDE && lines.every((line) => widthOf(line) <= room);
  });
}

/** As many from the left as fit in full; the first one always stays. */
function countThatFits(shown: readonly number[], widths: readonly number[], width: number): number {
  let used = 0;
  const count = shown.findIndex((at) => {
    used += (used === 0 ? 0 : GAP.length) + (widths[at] ?? 0);
    return used > width;
  });
  return count === -1 ? shown.length : Math.max(1, count);
}
