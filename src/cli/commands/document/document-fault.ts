import {
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";

/**
 * What is wrong with a document that is to become a message, in the words of the document: where, what stands there, what may.
 * Undefined when nothing is. The contract's own reader judges, one field at a time, so that there is no second opinion.
 */
export function documentFault(schema: DescMessage, value: JsonValue, path = ""): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return at(path, `${shown(value)} stands where ${fieldsOf(schema)} are wanted`);
  for (const key of Object.keys(value)) {
    const field = fieldOf(schema, key);
    if (!field) return at(path, unknownKey(schema, key));
    const fault = fieldFault(schema, field, {
      key,
      value: value[key] ?? null,
      path: path === "" ? key : `${path}.${key}`,
    });
    if (fault !== undefined) return fault;
  }
  return schema.oneofs.map((oneof) => oneofFault(oneof, value, path)).find((fault) => fault !== undefined);
}

const at = (path: string, fault: string): string => (path === "" ? fault : `${path}: ${fault}`);
const shown = (value: JsonValue): string => JSON.stringify(value) ?? "nothing";
const names = (fields: readonly DescField[]): string => fields.map(({ name }) => name).join(", ");
const isReadable = (schema: DescMessage, value: JsonValue): boolean => {
  try {
    fromJson(schema, value);
    return true;
  } catch {
    return false;
  }
};

/** Both spellings that the reader takes. */
const fieldOf = (schema: DescMessage, key: string): DescField | undefined =>
  schema.fields.find(({ name, jsonName }) => name === key || jsonName === key);

const plainFieldsOf = (schema: DescMessage): readonly DescField[] =>
  schema.fields.filter(({ oneof }) => oneof === undefined);
const fieldsOf = (schema: DescMessage): string => `the fields of ${spoken(schema)} (${names(schema.fields)})`;
/** Step, MachineSpec → a step, a machine spec. */
function spoken({ name }: DescMessage): string {
  const words = name.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return `${/^[aeiou]/.test(words) ? "an" : "a"} ${words}`;
}

function unknownKey(schema: DescMessage, key: string): string {
  const [choice] = schema.oneofs;
  if (!choice) return `${shown(key)} is no field of ${spoken(schema)}; known: ${names(schema.fields)}`;
  return (
    `${shown(key)} is neither a ${choice.name} nor a field of ${spoken(schema)}; ` +
    `${choice.name}s: ${names(choice.fields)}; fields: ${names(plainFieldsOf(schema))}`
  );
}

function oneofFault(oneof: DescOneof, value: JsonObject, path: string): string | undefined {
  const given = oneof.fields.filter(({ name, jsonName }) => name in value || jsonName in value);
  return given.length < 2 ? undefined : at(path, `${names(given)}: only one ${oneof.name} is wanted`);
}

interface Given {
  readonly key: string;
  readonly value: JsonValue;
  readonly path: string;
}

function fieldFault(schema: DescMessage, field: DescField, { key, value, path }: Given): string | undefined {
  if (isReadable(schema, { [key]: value })) return undefined;
  if (field.fieldKind === "list") {
    if (!Array.isArray(value)) return at(path, `${shown(value)} is no list`);
    const wrong = value.findIndex((each) => !isReadable(schema, { [key]: [each] }));
    return valueFault(field, value[wrong] ?? null, `${path}[${wrong}]`);
  }
  if (field.fieldKind === "map") {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return at(path, `${shown(value)} is no mapping of names to values`);
    const wrong = Object.keys(value).find((name) => !isReadable(schema, { [key]: { [name]: value[name] ?? null } }));
    return valueFault(field, value[wrong ?? ""] ?? null, `${path}.${wrong}`);
  }
  return valueFault(field, value, path);
}

function valueFault(field: DescField, value: JsonValue, path: string): string {
  if (field.message && !field.message.typeName.startsWith("google.protobuf."))
    return documentFault(field.message, value, path) ?? at(path, `${shown(value)} cannot be read`);
  if (field.enum) return at(path, `${shown(value)} is none of ${field.enum.values.map(({ name }) => name).join(", ")}`);
  // Free text may be a secret, whatever it was taken for: it is not repeated.
  if (field.scalar === ScalarType.STRING)
    return at(path, `${natureOf(value)} stands where text is wanted${inQuotes(value)}`);
  if (field.scalar === ScalarType.BOOL) return at(path, `${shown(value)} is neither true nor false`);
  return at(path, `${shown(value)} is no ${wantedOf(field)}`);
}

function natureOf(value: JsonValue): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a mapping";
  return typeof value === "boolean" ? "true or false" : "a number";
}
const inQuotes = (value: JsonValue): string => (typeof value === "object" ? "" : "; put it in quotes");

const WHOLE_NUMBERS: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT32,
  ScalarType.INT64,
  ScalarType.UINT32,
  ScalarType.UINT64,
]);

function wantedOf(field: DescField): string {
  if (field.message) return field.message.name.toLowerCase();

  return field.scalar !== undefined && WHOLE_NUMBERS.has(field.scalar) ? "whole number" : "number";
}
