import { type DescEnum, type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";

export type Json = JsonValue;

/**
 * A message as JSON that scripts can rely on: field names as in the contract (snake_case), every field always there and in the
 * contract's order (null where a message or optional value is absent), enums as the words that commands take.
 */
export function jsonOf<D extends DescMessage>(schema: D, message: MessageShape<D>): Json {
  return complete(schema, toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true }));
}

/** EXPLORE_STATE_WRONG_SERIAL → wrong_serial. */
export function enumWord(descriptor: DescEnum, value: number): string {
  const name = descriptor.value[value]?.name;
  return name === undefined ? String(value) : wordOf(descriptor, name);
}

/** wrong-serial, wrong_serial or WRONG_SERIAL → the number; undefined when there is no such value. */
export function enumNumber(descriptor: DescEnum, word: string): number | undefined {
  const wanted = word.toLowerCase().replaceAll("-", "_");
  return descriptor.values.find((value) => wordOf(descriptor, value.name).toLowerCase() === wanted)?.number;
}

/** All the words of an enum but "unspecified". */
export const enumWords = (descriptor: DescEnum): string[] =>
  descriptor.values.map((value) => wordOf(descriptor, value.name)).filter((word) => word !== "unspecified");

function wordOf(descriptor: DescEnum, name: string): string {
  const prefix = (descriptor.sharedPrefix ?? "").toUpperCase();
  const word = prefix !== "" && name.toUpperCase().startsWith(prefix) ? name.slice(prefix.length) : name;
  // The words of this contract are in capitals wherever they are seen: in filters, tables and JSON alike.
  return descriptor.typeName.startsWith("baremetal.v1.") ? word : word.toLowerCase();
}

function complete(schema: DescMessage, json: Json): Json {
  if (
    schema.typeName.startsWith("google.protobuf.") ||
    json === null ||
    typeof json !== "object" ||
    Array.isArray(json)
  )
    return json;
  const whole: { [field: string]: Json } = {};
  for (const field of schema.fields) {
    const value = json[field.name];
    if (value === undefined) {
      whole[field.name] = null;
      continue;
    }
    const nested = (inner: Json): Json => {
      if (field.message) return complete(field.message, inner);
      if (field.enum && typeof inner === "string") return wordOf(field.enum, inner);
      return inner;
    };
    if (field.fieldKind === "list" && Array.isArray(value)) whole[field.name] = value.map(nested);
    else if (field.fieldKind === "map" && value !== null && typeof value === "object" && !Array.isArray(value)) {
      whole[field.name] = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, nested(inner)]));
    } else whole[field.name] = nested(value);
  }
  return whole;
}
