import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { AppError } from "../../kernel/errors.ts";

/**
 * Refuses text with the NUL character, which PostgreSQL cannot keep: found here it is an answer that names the field, found
 * there it would be an internal error.
 */
export function refuseUnstorableText(schema: DescMessage, message: Message): void {
  const field = findNul(reflect(schema, message));
  if (field !== undefined)
    throw new AppError("invalid_argument", `${field}: must not contain the NUL character`, { field });
}

function findNul(message: ReflectMessage, prefix = ""): string | undefined {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const found = findNulIn(message, field, `${prefix}${field.name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findNulIn(message: ReflectMessage, field: DescField, path: string): string | undefined {
  switch (field.fieldKind) {
    case "scalar":
      return findNulInValue(message.get(field), path);
    case "message":
      return findNulInValue(message.get(field), path);
    case "list":
      return firstFound(message.get(field).values(), (value, index) => findNulInValue(value, `${path}[${index}]`));
    case "map":
      return firstFound(message.get(field).entries(), ([key, value]) =>
        typeof key === "string" && key.includes("\0") ? path : findNulInValue(value, path),
      );
    case "enum":
      return undefined;
  }
}

function findNulInValue(value: unknown, path: string): string | undefined {
  if (typeof value === "string") return value.includes("\0") ? path : undefined;
  return isReflected(value) ? findNul(value, `${path}.`) : undefined;
}

const isReflected = (value: unknown): value is ReflectMessage =>
  typeof value === "object" && value !== null && "desc" in value && "fields" in value;

function firstFound<T>(values: Iterable<T>, find: (value: T, index: number) => string | undefined): string | undefined {
  let index = 0;
  for (const value of values) {
    const found = find(value, index);
    if (found !== undefined) return found;
    index += 1;
  }
  return undefined;
}
