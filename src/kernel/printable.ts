/**
 * Control characters, invisible and direction-changing ones, halves of surrogate pairs, line and paragraph separators: in
 * histories, logs and terminals they could forge lines, or make one name look like another.
 */
const NOT_PRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Whether text from outside can be shown to people as it is. */
export const isPrintable = (text: string): boolean => !NOT_PRINTABLE.test(text);
