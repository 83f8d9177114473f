import { harmless } from "../../api/hostile-text.ts";

/** A part of a line that looks the same. Colours are numbers from 0 to 15, as terminals have them. */
export interface StyledText {
  readonly text: string;
  readonly colour?: number;
  readonly isBold?: boolean;
  readonly isDim?: boolean;
}

type Style = Omit<StyledText, "text">;

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what a colour begins with
const COLOUR = /\u001b\[([\d;]*)m/g;

/**
 * The parts of a line between its colour sequences. Foreground and weight alone are kept: a background, or text that is hidden or
 * turned round, could make a line say something else than it does. Other sequences are no colours, and `harmless` removes them.
 */
export function styledParts(line: string): readonly StyledText[] {
  const parts: StyledText[] = [];
  let style: Style = {};
  let from = 0;
  const take = (to: number) => {
    const text = harmless(line.slice(from, to));
    if (text !== "") parts.push({ text, ...style });
  };
  for (const found of line.matchAll(COLOUR)) {
    take(found.index);
    style = styleAfter(style, (found[1] ?? "").split(";").map(Number));
    from = found.index + found[0].length;
  }
  take(line.length);
  return parts;
}

function styleAfter(before: Style, codes: readonly number[]): Style {
  let style = before;
  for (let n = 0; n < codes.length; n += 1) {
    const code = codes[n] ?? 0;
    // A colour out of 256 or of millions, which a theme cannot answer for: its numbers are passed over.
    if (code === 38 || code === 48) n += codes[n + 1] === 5 ? 2 : codes[n + 1] === 2 ? 4 : 0;
    else style = withCode(style, code);
  }
  return style;
}

function withCode(style: Style, code: number): Style {
  const { colour: _, ...rest } = style;
  if (code === 0) return {};
  if (code === 1) return { ...style, isBold: true };
  if (code === 2) return { ...style, isDim: true };
  if (code === 22) return { ...style, isBold: false, isDim: false };
  if (code >= 30 && code <= 37) return { ...rest, colour: code - 30 };
  if (code >= 90 && code <= 97) return { ...rest, colour: code - 82 };
  return code === 39 ? rest : style;
}
