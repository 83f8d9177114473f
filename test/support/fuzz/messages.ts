import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Random } from "./random.ts";
import type { Values } from "./values.ts";

const DEEPEST = 6;

export interface Fuzz {
  readonly random: Random;
  readonly values: Values;
}

/** A request of this type, of which fields are left out, plausible or odd. */
export function randomMessage(fuzz: Fuzz, schema: DescMessage, depth = 0): Message {
  const message = create(schema);
  const fields = reflect(schema, message);
  if (depth === 0) fuzz.values.oddness = fuzz.random.chance(0.6) ? 0.02 : 0.3;
  const isFull = fuzz.random.chance(0.5);
  for (const field of schema.fields) if (isFull || fuzz.random.chance(0.6)) fill(fuzz, fields, field, depth);
  return message;
}

function fill(fuzz: Fuzz, message: ReflectMessage, field: DescField, depth: number): void {
  const { random } = fuzz;
  const nested = (schema: DescMessage) => reflect(schema, randomMessage(fuzz, schema, depth + 1));
  const isTooDeep = depth >= DEEPEST;
  const count = random.chance(0.02) ? 300 : random.below(3);
  if (field.fieldKind === "scalar") message.set(field, scalar(fuzz, field.scalar, field.name));
  else if (field.fieldKind === "enum") message.set(field, enumNumber(fuzz, field.enum));
  else if (field.fieldKind === "message") {
    if (!isTooDeep) message.set(field, nested(field.message));
  } else if (field.fieldKind === "list") {
    if (field.listKind === "message" && isTooDeep) return;
    const list = message.get(field);
    for (let at = 0; at < count; at += 1)
      if (field.listKind === "message") list.add(nested(field.message));
      else list.add(field.listKind === "enum" ? enumNumber(fuzz, field.enum) : scalar(fuzz, field.scalar, field.name));
  } else {
    if (field.mapKind === "message" && isTooDeep) return;
    const map = message.get(field);
    for (let at = 0; at < Math.min(count, 3); at += 1) {
      const key =
        field.mapKey === ScalarType.STRING ? wellFormed(fuzz.values.text("label")) : scalar(fuzz, field.mapKey, "");
      if (field.mapKind === "message") map.set(key as string, nested(field.message));
      else
        map.set(
          key as string,
          field.mapKind === "enum" ? enumNumber(fuzz, field.enum) : scalar(fuzz, field.scalar, field.name),
        );
    }
  }
}

const enumNumber = (
  { random }: Fuzz,
  { values, open }: { values: readonly { number: number }[]; open: boolean },
): number => (open && random.chance(0.1) ? random.pick([99, -1, 2_147_483_647]) : random.pick(values).number);

/** Our own encoder takes no half of a surrogate pair. */
const wellFormed = (text: string): string => text.toWellFormed();

function scalar({ random, values }: Fuzz, type: ScalarType, name: string): unknown {
  switch (type) {
    case ScalarType.STRING:
      return wellFormed(values.text(name));
    case ScalarType.BOOL:
      return random.chance(0.5);
    case ScalarType.BYTES:
      return Uint8Array.from({ length: random.below(20) }, () => random.below(256));
    case ScalarType.DOUBLE:
      return values.double();
    case ScalarType.FLOAT:
      return random.pick([0, 1, -1, Number.NaN, Number.POSITIVE_INFINITY]);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return values.bigint();
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return random.pick([0n, 1n, 2n ** 64n - 1n]);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return random.pick([0, 1, 100, 4_294_967_295]);
    default:
      return values.int();
  }
}

/** On the wire, and now and then damaged there. */
export function binaryOf({ random }: Fuzz, schema: DescMessage, message: Message): Uint8Array {
  const bytes = toBinary(schema, message);
  if (bytes.length === 0 || !random.chance(0.15)) return bytes;
  if (random.chance(0.3)) return bytes.subarray(0, random.below(bytes.length));
  const damaged = Uint8Array.from(bytes);
  for (let times = 1 + random.below(3); times > 0; times -= 1)
    damaged[random.below(damaged.length)] = random.below(256);
  return damaged;
}

/** As JSON, with now and then a member of another type, or one that is not known. */
export function jsonTextOf(fuzz: Fuzz, schema: DescMessage, message: Message): string {
  let json: unknown;
  try {
    json = toJson(schema, message);
  } catch {
    return "{}"; // such as a time that JSON has no words for: the binary form has it
  }
  return JSON.stringify(fuzz.random.chance(0.2) ? mutated(fuzz, json) : json);
}

const ODD_JSON: readonly unknown[] = [null, true, 0, -1, 1e300, "", "x", [], {}, [[[]]], { a: { b: {} } }, ["x", 1]];

/** One member, somewhere within, is something else. */
export function mutated(fuzz: Fuzz, json: unknown): unknown {
  const { random } = fuzz;
  const members = typeof json === "object" && json !== null && !Array.isArray(json) ? { ...json } : {};
  const entries: [string, unknown][] = Object.entries(members);
  if (entries.length === 0 || random.chance(0.1)) return random.pick(ODD_JSON);
  if (random.chance(0.1)) return { ...members, not_a_field: random.pick(ODD_JSON) };
  const [name, value] = random.pick(entries);
  return { ...members, [name]: random.chance(0.5) ? mutated(fuzz, value) : random.pick(ODD_JSON) };
}
