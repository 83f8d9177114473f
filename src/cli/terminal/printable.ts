import type { Json } from "../client/proto-json.ts";

/**
 * Control, invisible and direction-changing characters, halves of surrogate pairs, line and paragraph separators; but for the joiner
 * between two pictographs, which makes one of them.
 */
const UNPRINTABLE =
  /(?!(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d\p{Extended_Pictographic})[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Text of devices and callers must not steer the terminal, or make one name look like another: characters that could are shown as
 * escapes, not sent.
 */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => (character === "\n" || character === "\t" ? " " : escapeOf(character)));

/** The same for formats that keep line breaks and tabs. */
export const printableLines = (text: string): string =>
  text.replace(UNPRINTABLE, (character) =>
    character === "\n" || character === "\t" ? character : escapeOf(character),
  );

/** What a machine wrote, as lines: its colours are left out, and a line that it overwrote is a line. */
export const printableLog = (text: string): string => printableLines(text.replace(COLORS, "").replace(/\r\n?/g, "\n"));

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is to be found
const COLORS = /\u001b\[[0-9;]*m/g;

/** JSON, with escapes of its own for all that could steer the terminal: a reader of JSON gets what was there. */
export const jsonText = (value: Json, indent?: number): string => escapeQuoted(JSON.stringify(value, null, indent));

/** Of a text in which such characters stand within double quotes alone. */
export const escapeQuoted = (text: string): string =>
  text.replace(STEERING, (character) => (character === "\n" || character === "\t" ? character : unitsOf(character)));

const unitsOf = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Whether a text has what could steer the terminal. */
export const isSteering = (text: string): boolean => text.search(STEERING) >= 0;

/** The colours that we paint with, and what a live view moves the cursor with; a terminal alone is sent them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is to be found
const OURS = /\u001b\[(?:0|1|2|31|32|33)m|\u001b\[\d{1,4}A\r|\u001b\[0J|\u001b\[\?7[lh]/u;
const OURS_OR_UNPRINTABLE = new RegExp(`(${OURS.source})|${UNPRINTABLE.source}`, "gu");

/** The last line of defence below all printers: one that forgot to make its text printable sends no more than escapes. */
export const printableOutput = (text: string, isTTY: boolean): string =>
  text.replace(OURS_OR_UNPRINTABLE, (found, ours: string | undefined) => {
    if (ours !== undefined) return isTTY ? ours : printable(ours);
    return found === "\n" || found === "\t" ? found : escapeOf(found);
  });

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\u{${hex}}`;
}
