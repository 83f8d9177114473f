import { UsageError } from "../client/errors.ts";

/** A row by the names of its columns; `line` is where it begins in the file, for messages. */
export interface CsvRow {
  readonly line: number;
  readonly cells: Readonly<Record<string, string>>;
}

/**
 * Reads RFC 4180: the first row names the columns. Empty rows, and rows that begin with #, are left out. Columns that `known` lacks are
 * refused, so that a misspelt one is not left unread.
 */
export function readCsv(text: string, file: string, known: readonly string[]): readonly CsvRow[] {
  const rows = splitRows(text.replace(/^\uFEFF/, ""), file).filter(
    ({ fields: [first = "", ...rest] }) => !first.startsWith("#") && (first !== "" || rest.length > 0),
  );
  const [head, ...body] = rows;
  if (!head) throw new UsageError(`${file} is empty: the first line must name the columns, among ${known.join(", ")}`);
  const columns = head.fields.map((name) => name.trim());
  const odd = columns.find((name, at) => !known.includes(name) || columns.indexOf(name) !== at);
  if (odd !== undefined)
    throw new UsageError(
      `${file}, line ${head.line}: ${JSON.stringify(odd)} is no column, or comes twice; columns are ${known.join(", ")}`,
    );
  return body.map(({ line, fields }) => {
    if (fields.length !== columns.length)
      throw new UsageError(`${file}, line ${line}: has ${fields.length} fields, expected ${columns.length}`);
    return { line, cells: Object.fromEntries(columns.map((name, at) => [name, (fields[at] ?? "").trim()])) };
  });
}

interface RawRow {
  readonly line: number;
  readonly fields: readonly string[];
}

/** One character after the other: line breaks and commas within quotes are part of the field. */
function splitRows(text: string, file: string): RawRow[] {
  const rows: RawRow[] = [];
  let fields: string[] = [];
  let field = "";
  let isQuoted = false;
  let line = 1;
  let begins = 1;
  const endRow = () => {
    rows.push({ line: begins, fields: [...fields, field] });
    fields = [];
    field = "";
    begins = line + 1;
  };
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (isQuoted && char === '"' && text[at + 1] === '"') {
      field += '"';
      at++;
    } else if (char === '"' && (isQuoted || field.trim() === "")) {
      isQuoted = !isQuoted;
      if (isQuoted) field = "";
    } else if (!isQuoted && char === ",") {
      fields.push(field);
      field = "";
    } else if (!isQuoted && char === "\n") {
      endRow();
      line++;
    } else if (isQuoted || char !== "\r") {
      field += char;
      if (char === "\n") line++;
    }
  }
  if (isQuoted) throw new UsageError(`${file}, line ${begins}: a quote is not closed`);
  if (field !== "" || fields.length > 0) endRow();
  return rows;
}
