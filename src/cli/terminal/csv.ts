/** RFC 4180: fields with a comma, quote or line break are quoted, quotes doubled. Lines end with \n, as tools here expect. */
export const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(asText).map(csvField).join(",")}\n`).join("");

/**
 * Spreadsheets calculate what begins like a formula, also one that a BMC sent as its name: an apostrophe in front makes a text of it. Signed
 * numbers stay numbers.
 */
const IS_FORMULA = /^[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]/;
const IS_PLAIN = /^[+-]?(\d+(\.\d+)?)?$/;
const asText = (text: string): string => (IS_FORMULA.test(text) && !IS_PLAIN.test(text) ? `'${text}` : text);

/** A lone empty field is quoted too: an empty line would be read as no row at all. */
const csvField = (text: string, _at: number, row: readonly string[]): string =>
  /[",\r\n]/.test(text) || (text === "" && row.length === 1) ? `"${text.replaceAll('"', '""')}"` : text;
