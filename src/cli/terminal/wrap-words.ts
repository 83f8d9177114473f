import stringWidth from "string-width";

/** In columns of a terminal: some characters take two, and some none. */
export const widthOf = (text: string): number => stringWidth(text);

/**
 * Lines of at most `width`, broken between words. A word that is longer keeps a line of its own, whole: ids, paths and digests are
 * copied from the screen, and a terminal joins what it has broken itself.
 */
export function wrapWords(text: string, width: number): string[] {
  return packLines(
    text.split(" ").filter((word) => word !== ""),
    width,
    " ",
  );
}

/** Pieces one after the other, as many on a line as fit; a piece that is longer than a line goes on below, word by word. */
export function packLines(pieces: readonly string[], width: number, gap: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const piece of pieces) {
    const joined = line === "" ? piece : line + gap + piece;
    if (widthOf(joined) <= width) {
      line = joined;
      continue;
    }
    if (line !== "") lines.push(line);
    const rest = widthOf(piece) > width && piece.includes(" ") ? wrapWords(piece, width) : [piece];
    lines.push(...rest.slice(0, -1));
    line = rest.at(-1) ?? "";
  }
  return line === "" && lines.length > 0 ? lines : [...lines, line];
}
