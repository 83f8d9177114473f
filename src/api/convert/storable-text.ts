import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { AppError } from "../../kernel/errors.ts";

/** More values than any request that is taken has. To read some hundred thousand takes seconds, in which nobody else is served. */
const MOST_VALUES = 50_000;

/**
 * Refuses text with the NUL character, which PostgreSQL cannot keep: found here it is an answer that names the field, found
 * there it would be an internal error. Refuses a request with very many values too, before all of them are read.
 */
export function refuseUnstorableText(schema: DescMessage, message: Message): void {
  const field = findNul(reflect(schema, message), { left: MOST_VALUES });
  if (field !== undefined)
    throw new AppError("invalid_argument", `${field}: must not contain the NUL character`, { field });
}

/** How many more values may be read. */
interface Budget {
  left: number;
}

function findNul(message: ReflectMessage, budget: Budget, prefix = ""): string | undefined {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const found = findNulIn(message, field, `${prefix}${field.name}`, budget);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findNulIn(message: ReflectMessage, field: DescField, path: string, budget: Budget): string | undefined {
  switch (field.fieldKind) {
    case "scalar":
      return findNulInValue(message.get(field), path, budget);
    case "message":
      return findNulInValue(message.get(field), path, budget);
    case "list":
      return firstFound(message.get(field).values(), (value, index) =>
        findNulInValue(value, `${path}[${index}]`, budget),
      );
    case "map":
      return firstFound(message.get(field).entries(), ([key, value]) =>
        typeof key === "string" && key.includes("\0") ? path : findNulInValue(value, path, budget),
      );
    case "enum":
      return undefined;
  }
}

function findNulInValue(value: unknown, path: string, budget: Budget): string | undefined {
  budget.left -= 1;
  if (budget.left < 0) {
    const message = `${path}: the request has more than ${MOST_VALUES} values; split the request`;
    throw new AppError("invalid_argument", message, { field: path });
  }
  if (typeof value === "string") return value.includes("\0") ? path : undefined;
  return isReflected(value) ? findNul(value, budget, `${path}.`) : undefined;
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
