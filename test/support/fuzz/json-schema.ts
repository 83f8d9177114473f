import { type Fuzz, mutated } from "./messages.ts";

/** As much of JSON Schema as our OpenAPI document uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
}

export type Schemas = Readonly<Record<string, JsonSchema>>;

/** A value of that schema; now and then one that is not. */
export function randomJson(fuzz: Fuzz, schemas: Schemas, schema: JsonSchema): unknown {
  fuzz.values.oddness = fuzz.random.chance(0.6) ? 0.02 : 0.3;
  const value = instance(fuzz, schemas, schema, "", 0);
  return fuzz.random.chance(0.25) ? mutated(fuzz, value) : value;
}

function instance(fuzz: Fuzz, schemas: Schemas, schema: JsonSchema, name: string, depth: number): unknown {
  const { random, values } = fuzz;
  if (schema.$ref !== undefined)
    return instance(fuzz, schemas, schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, name, depth);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return random.chance(0.9) ? random.pick(schema.enum) : values.text(name);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return instance(fuzz, schemas, random.pick(choices), name, depth);
  const type = typeof schema.type === "object" ? random.pick(schema.type) : schema.type;
  if (depth > 6) return null;
  if (type === "object" || schema.properties) return objectOf(fuzz, schemas, schema, depth);
  if (type === "array")
    return Array.from({ length: random.chance(0.03) ? 300 : random.below(3) }, () =>
      instance(fuzz, schemas, schema.items ?? {}, name, depth + 1),
    );
  if (type === "integer") return values.int();
  if (type === "number") return random.pick([0, 1.5, -1, 1e300]);
  if (type === "boolean") return random.chance(0.5);
  if (type === "null") return null;
  return values.text(name);
}

function objectOf(fuzz: Fuzz, schemas: Schemas, schema: JsonSchema, depth: number): unknown {
  const { random, values } = fuzz;
  const required = new Set(schema.required);
  const members = Object.entries(schema.properties ?? {})
    .filter(([name]) => (required.has(name) ? random.chance(0.95) : random.chance(0.5)))
    .map(([name, each]) => [name, instance(fuzz, schemas, each, name, depth + 1)] as const);
  const more = typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
  const others =
    more && random.chance(0.5) ? [[values.text("label"), instance(fuzz, schemas, more, "", depth + 1)] as const] : [];
  return Object.fromEntries([...members, ...others]);
}
