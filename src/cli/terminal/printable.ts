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

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\u{${hex}}`;
}
