import { describeRoutes } from "../../src/api/rest/openapi.ts";
import { restApiRoutes } from "../../src/api/rest/rest-api.ts";
import { type AnyRoute, nameOfRoute } from "../../src/api/rest/route.ts";
import { restRoutes } from "../../src/wiring/routes.ts";
import { access } from "../../src/wiring/things/all-things.ts";
import type { RouteDeps } from "../../src/wiring/things/thing.ts";
import { anchor, code, page, pageHead, table } from "./markdown.ts";

type Schema = Readonly<Record<string, unknown>>;
interface Operation {
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content: Readonly<Record<string, { schema: Schema }>> }>
  >;
}

/** Every route of `/api/v1`, as it is checked and as it answers. Nothing is called, so nothing is needed behind them. */
export function restPage(): string {
  const served = { version: "", access };
  const routes = restApiRoutes({ ...served, routes: restRoutes({} as RouteDeps) });
  const { paths, components } = describeRoutes(routes, served) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  };
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  return page(
    pageHead("REST", "the routes in `src/api/rest/`"),
    "Network installs over HTTP and JSON: what is required of them is in the [specification](../specs/node-install.md). A server shows the same as OpenAPI 3.1 at `/api/v1/openapi.json`, and to browse at `/api/v1/docs`.",
    "Objects come as `{success, data, message}` and lists as `{success, data, total}`; histories and events as `{data, total}`. What is refused is answered with `{detail}`: a sentence, or with 422 a list of `{type, loc, msg}`. The header `millwright-next` names the command that helps, where there is one. A body is JSON and at most 1 MiB large (413, 415). Without credentials it is 401, and without the role 403.",
    table(
      ["Route", "What it does", "Who may"],
      routes.map((route) => [`[${nameOfRoute(route)}](${anchor(nameOfRoute(route))})`, route.summary, whoMay(route)]),
    ),
    tags.flatMap((tag) => [
      `## ${tag.charAt(0).toUpperCase()}${tag.slice(1)}`,
      ...routes
        .filter((route) => route.tag === tag)
        .flatMap((route) => describe(route, paths[route.path]?.[route.method.toLowerCase()])),
    ]),
    "## Objects",
    Object.entries(components.schemas).flatMap(([name, schema]) => [
      `### ${name}`,
      table(
        ["Field", "Value"],
        fieldsOf(schema).map(([field = "", value = ""]) => [field, value]),
      ),
    ]),
  );
}

const whoMay = (route: AnyRoute): string => {
  const allowed = access.allowedFor(nameOfRoute(route));
  return allowed === "anyone" ? "anyone" : allowed.map(code).join(", ");
};

function describe(route: AnyRoute, operation: Operation | undefined): string[] {
  if (!operation) throw new Error(`${nameOfRoute(route)} is not described`);
  const body = operation.requestBody?.content["application/json"].schema;
  const answer = operation.responses[route.status ?? 200]?.content["application/json"]?.schema;
  const refusals = Object.entries(operation.responses).filter(
    ([status]) => route.errors?.[Number(status)] !== undefined,
  );
  return [
    `### ${nameOfRoute(route)}`,
    route.summary,
    ...section(
      "Parameters",
      operation.parameters.map(({ name, in: where, required, schema }) => [
        code(name),
        where,
        wordsOf(schema),
        required ? "yes" : "",
        fallback(schema),
      ]),
      ["Name", "In", "Value", "Required", "Default"],
    ),
    ...section("Body", body ? fieldsOf(body) : [], ["Field", "Value", "Required", "Default"]),
    ...(route.example === undefined ? [] : [`\`\`\`json\n${JSON.stringify(route.example, null, 2)}\n\`\`\``]),
    ...section(
      `Answers ${route.status ?? 200}`,
      answer ? fieldsOf(answer).map(([field = "", value = ""]) => [field, value]) : [],
      ["Field", "Value"],
    ),
    ...section(
      "Refusals",
      refusals.map(([status, { description }]) => [status, description]),
      ["Code", "Meaning"],
    ),
  ];
}

const section = (title: string, rows: readonly (readonly string[])[], head: readonly string[]): string[] =>
  rows.length === 0 ? [] : [`**${title}**`, table(head, rows)];

const fallback = ({ default: value }: Schema): string => (value === undefined ? "" : code(JSON.stringify(value)));
const partsOf = (schema: Schema): readonly Schema[] | undefined =>
  (schema.anyOf ?? schema.oneOf) as readonly Schema[] | undefined;

/** What may stand there, in a few words. */
function wordsOf(schema: Schema): string {
  if (typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").at(-1) ?? "";
    return `[${name}](${anchor(name)})`;
  }
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (Array.isArray(schema.enum)) return schema.enum.map((each) => code(String(each))).join(", ");
  const parts = partsOf(schema);
  if (parts) return [...new Set(parts.map(wordsOf))].join(" or ");
  if (schema.type === "array") return `list of ${wordsOf((schema.items ?? {}) as Schema)}`;
  const limit = (name: string, sign: string) => {
    const value = schema[name];
    return typeof value === "number" && Math.abs(value) < Number.MAX_SAFE_INTEGER ? [`${sign} ${value}`] : [];
  };
  const type = [schema.format ?? schema.type ?? "any JSON"].flat().join(" or ");
  return [type, ...limit("minimum", "≥"), ...limit("maximum", "≤"), ...limit("maxLength", "at most")].join(" ");
}

/** Each field on a row of its own, inner ones with dots between their names. */
function fieldsOf(schema: Schema, prefix = ""): string[][] {
  const parts = partsOf(schema);
  if (parts) return unique(parts.flatMap((part) => fieldsOf(part, prefix)));
  if (schema.type === "array") return fieldsOf((schema.items ?? {}) as Schema, `${prefix}[]`);
  const required = (schema.required ?? []) as readonly string[];
  return Object.entries((schema.properties ?? {}) as Readonly<Record<string, Schema>>).flatMap(([name, inner]) => {
    const path = prefix === "" ? name : `${prefix}.${name}`;
    return [
      [code(path), wordsOf(inner), required.includes(name) ? "yes" : "", fallback(inner)],
      ...fieldsOf(inner, path),
    ];
  });
}

/** Alternatives have fields in common. */
const unique = (rows: readonly string[][]): string[][] => [
  ...new Map(rows.map((row) => [row.join("|"), row])).values(),
];
