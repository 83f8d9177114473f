/**
 * Control characters, invisible and direction-changing ones, halves of surrogate pairs, line and paragraph separators: in
 * histories, logs and terminals they could forge lines, or make one name look like another.
 */
const NOT_PRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
/** The same but for line breaks and tabs, which messages of several lines have. */
const NOT_IN_MESSAGES = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Whether text from outside can be shown to people as it is. */
export const isPrintable = (text: string): boolean => !NOT_PRINTABLE.test(text);

/** A message from outside with U+FFFD for each character that cannot be shown. For text that nobody would send again in other words. */
export const printableMessage = (text: string): string =>
  text.replaceAll("\r\n", "\n").replace(NOT_IN_MESSAGES, "\ufffd");
