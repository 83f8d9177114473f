/** As much of OpenAPI 3.1 as the document uses. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
}
interface Content {
  readonly [type: string]: { readonly schema: Schema; readonly example?: unknown };
}
interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}
type Schema = Readonly<Record<string, unknown>>;

const METHODS = new Set(["get", "put", "post", "delete", "options", "head", "patch", "trace"]);
const TYPES = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);

/** Every rule of OpenAPI 3.1 and of JSON Schema 2020-12 that the document breaks, by where. */
export function faultsOfDocument(document: OpenApiDocument): string[] {
  const faults: string[] = [];
  if (!/^3\.1\.\d+$/.test(document.openapi)) faults.push(`openapi: ${document.openapi}`);
  if (document.info.title === "" || document.info.version === "") faults.push("info: title and version are required");
  const ids = new Set<string>();
  for (const [path, methods] of Object.entries(document.paths)) {
    if (!path.startsWith("/")) faults.push(`${path}: must begin with a slash`);
    for (const [method, operation] of Object.entries(methods)) {
      const where = `${method.toUpperCase()} ${path}`;
      if (!METHODS.has(method)) faults.push(`${where}: no method`);
      if (ids.has(operation.operationId)) faults.push(`${where}: ${operation.operationId} is used twice`);
      ids.add(operation.operationId);
      faults.push(...faultsOfOperation(document, path, operation).map((fault) => `${where}: ${fault}`));
    }
  }
  for (const [name, schema] of Object.entries(document.components.schemas))
    faults.push(...faultsOfSchema(document, schema, `components.schemas.${name}`));
  return faults;
}

function faultsOfOperation(document: OpenApiDocument, path: string, operation: OpenApiOperation): string[] {
  const faults: string[] = [];
  for (const tag of operation.tags)
    if (!document.tags.some(({ name }) => name === tag)) faults.push(`the tag ${tag} is not declared`);
  for (const scheme of operation.security.flatMap((each) => Object.keys(each)))
    if (!(scheme in document.components.securitySchemes)) faults.push(`the security scheme ${scheme} is not declared`);
  const inPath = operation.parameters.filter((each) => each.in === "path").map(({ name }) => name);
  const named = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name ?? "");
  if (inPath.sort().join() !== named.sort().join())
    faults.push(`path parameters are ${inPath.join(", ")}, and its path says ${named.join(", ")}`);
  const seen = new Set<string>();
  for (const parameter of operation.parameters) {
    const key = `${parameter.in} ${parameter.name}`;
    if (seen.has(key)) faults.push(`the parameter ${key} is there twice`);
    seen.add(key);
    if (!["path", "query", "header", "cookie"].includes(parameter.in)) faults.push(`a parameter in ${parameter.in}`);
    if (parameter.in === "path" && !parameter.required) faults.push(`${key} must be required`);
    faults.push(...faultsOfSchema(document, parameter.schema, key));
  }
  faults.push(...faultsOfContent(document, operation.requestBody?.content ?? {}, "requestBody"));
  const codes = Object.keys(operation.responses);
  if (!codes.some((code) => code.startsWith("2"))) faults.push("no answer is a success");
  for (const [code, { description, content = {} }] of Object.entries(operation.responses)) {
    if (!/^([1-5]\d\d|default)$/.test(code)) faults.push(`${code} is no status`);
    if (description === "") faults.push(`${code} has no description`);
    faults.push(...faultsOfContent(document, content, code));
  }
  return faults;
}

function faultsOfContent(document: OpenApiDocument, content: Content, where: string): string[] {
  return Object.entries(content).flatMap(([type, { schema }]) => [
    ...(/^[a-z]+\/[a-z.+-]+(; charset=utf-8)?$/.test(type) ? [] : [`${where}: ${type} is no media type`]),
    ...faultsOfSchema(document, schema, `${where} ${type}`),
  ]);
}

type Rule = (value: unknown, walk: (inner: unknown, name: string) => string[]) => string[] | boolean;
const isText = (value: unknown) => typeof value === "string";
const isNumber = (value: unknown) => typeof value === "number";
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !isList(value);
const schemas: Rule = (value, walk) =>
  isList(value) && value.length > 0 && value.flatMap((inner, index) => walk(inner, String(index)));

/** What a keyword may hold; whatever is not here is a slip. */
const KEYWORDS: Readonly<Record<string, Rule>> = {
  type: (value) => [value].flat().every((each) => TYPES.has(String(each))) && [value].flat().length > 0,
  properties: (value, walk) => isObject(value) && Object.entries(value).flatMap(([name, inner]) => walk(inner, name)),
  required: (value) => isList(value) && value.every(isText) && new Set(value).size === value.length,
  additionalProperties: (value, walk) => typeof value === "boolean" || walk(value, "*"),
  propertyNames: (value, walk) => walk(value, "names"),
  items: (value, walk) => walk(value, "items"),
  anyOf: schemas,
  oneOf: schemas,
  allOf: schemas,
  enum: (value) => isList(value) && value.length > 0,
  const: () => true,
  default: () => true,
  examples: isList,
  title: isText,
  description: isText,
  format: isText,
  pattern: (value) => isText(value) && isPattern(String(value)),
  minimum: isNumber,
  maximum: isNumber,
  minLength: isNumber,
  maxLength: isNumber,
  minItems: isNumber,
  maxItems: isNumber,
  $ref: isText,
  $defs: (value, walk) => isObject(value) && Object.entries(value).flatMap(([name, inner]) => walk(inner, name)),
};

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

function faultsOfSchema(document: OpenApiDocument, schema: unknown, where: string, root: unknown = schema): string[] {
  if (!isObject(schema)) return [`${where}: is no schema`];
  if (isText(schema.$ref) && !resolves(document, root, String(schema.$ref)))
    return [`${where}: ${schema.$ref} leads nowhere`];
  const walk = (inner: unknown, name: string) => faultsOfSchema(document, inner, `${where}.${name}`, root);
  const missing = isList(schema.required)
    ? schema.required.filter((name) => !isObject(schema.properties) || !(String(name) in schema.properties))
    : [];
  return [
    ...missing.map((name) => `${where}: ${name} is required and has no schema`),
    ...Object.entries(schema).flatMap(([keyword, value]) => {
      const found = KEYWORDS[keyword]?.(value, walk) ?? false;
      if (typeof found !== "boolean") return found;
      return found ? [] : [`${where}: ${keyword} must not be ${JSON.stringify(value)?.slice(0, 80)}`];
    }),
  ];
}

/** From the document's root, or from the schema's own. */
function resolves(document: OpenApiDocument, root: unknown, ref: string): boolean {
  const from = ref.startsWith("#/components/") ? document : root;
  const parts = ref
    .slice(1)
    .split("/")
    .filter((part) => part !== "");
  return parts.reduce<unknown>((part, name) => (isObject(part) ? part[name] : undefined), from) !== undefined;
}
