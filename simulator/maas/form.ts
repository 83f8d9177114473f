import { ApiFailure } from "./api-failure.ts";

/** The fields of a request, each with all of its values. */
export class Form {
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(pairs: Iterable<readonly [string, string]>) {
    const values = new Map<string, string[]>();
    for (const [name, value] of pairs) values.set(name, [...(values.get(name) ?? []), value]);
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The last one counts, as in Django. */
  get(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  isTrue(name: string, otherwise = false): boolean {
    const value = this.get(name);
    return value === undefined ? otherwise : /^(true|on|1|yes)$/i.test(value);
  }

  /** What is left of names that begin so, with their values. */
  startingWith(prefix: string): Readonly<Record<string, string>> {
    const found = [...this.#values].filter(([name]) => name.startsWith(prefix));
    return Object.fromEntries(found.map(([name, values]) => [name.slice(prefix.length), values.at(-1) ?? ""]));
  }
}

/** MAAS takes both forms, and clients use both. */
export function parseForm(contentType: string, body: string): Form {
  if (body === "") return new Form([]);
  if (/^application\/x-www-form-urlencoded/i.test(contentType)) return new Form(new URLSearchParams(body));
  const [, quoted, plain] = /^multipart\/form-data;.*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw new ApiFailure(400, "The body is no form.");
  return new Form(partsOf(body, boundary));
}

function partsOf(body: string, boundary: string): readonly (readonly [string, string])[] {
  const parts = `\r\n${body}`.split(`\r\n--${boundary}`).slice(1, -1);
  return parts.map((part) => {
    const end = part.indexOf("\r\n\r\n");
    const name = /name="([^"]*)"/i.exec(part.slice(0, end))?.[1];
    if (end === -1 || name === undefined) throw new ApiFailure(400, "A part of the form has no name.");
    return [name, decoded(part.slice(0, end), part.slice(end + 4))] as const;
  });
}

/** Some clients send each value as base64, and say so. */
const decoded = (head: string, value: string): string =>
  /content-transfer-encoding:\s*base64/i.test(head) ? Buffer.from(value, "base64").toString("utf8") : value;
