/** RFC 4180: fields with a comma, quote or line break are quoted, quotes doubled. Lines end with \n, as tools here expect. */
export const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(csvField).join(",")}\n`).join("");

/** A lone empty field is quoted too: an empty line would be read as no row at all. */
const csvField = (text: string, _at: number, row: readonly string[]): string =>
  /[",\r\n]/.test(text) || (text === "" && row.length === 1) ? `"${text.replaceAll('"', '""')}"` : text;
