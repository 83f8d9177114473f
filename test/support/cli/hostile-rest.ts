import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describeRoutes } from "../../../src/api/rest/openapi.ts";
import { restApiRoutes } from "../../../src/api/rest/rest-api.ts";
import { restRoutes } from "../../../src/wiring/routes.ts";
import { access } from "../../../src/wiring/things/all-things.ts";
import type { RouteDeps } from "../../../src/wiring/things/thing.ts";
import type { JsonSchema, Schemas } from "../fuzz/json-schema.ts";

interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >;
}

/** A REST API all of whose answers have the shape that the OpenAPI document says, and this text wherever there is one. */
export async function startHostileRest(text: string): Promise<{ readonly url: string; close(): void }> {
  const served = { version: "", access };
  const routes = restApiRoutes({ ...served, routes: restRoutes({} as RouteDeps) });
  const { paths, components } = describeRoutes(routes, served) as unknown as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: { readonly schemas: Schemas };
  };
  const answers = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([verb, { responses }]) => {
      const [status = "200", { content }] = Object.entries(responses).find(([code]) => code.startsWith("2")) ?? [
        "200",
        {},
      ];
      const form = new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+").replaceAll(".", "\\.")}$`);
      const schema = content?.["application/json"]?.schema;
      return {
        verb: verb.toUpperCase(),
        form,
        status: Number(status),
        body: schema && instanceOf(components.schemas, schema, text, 0),
      };
    }),
  );
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://x").pathname;
    const found = answers.find(({ verb, form }) => verb === request.method && form.test(path));
    request.resume();
    response.writeHead(found?.status ?? 404, { "content-type": "application/json" });
    response.end(JSON.stringify(found?.body ?? { detail: text }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function instanceOf(
  schemas: Schemas,
  schema: JsonSchema & { readonly format?: string },
  text: string,
  depth: number,
): unknown {
  const within = (each: JsonSchema) => instanceOf(schemas, each, text, depth + 1);
  if (depth > 8) return null;
  if (schema.$ref !== undefined) return within(schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {});
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const [choice] = schema.anyOf ?? schema.oneOf ?? [];
  if (choice) return within(choice);
  const type = typeof schema.type === "object" ? schema.type[0] : schema.type;
  if (type === "object" || schema.properties) {
    const more = typeof schema.additionalProperties === "object" ? { [text]: within(schema.additionalProperties) } : {};
    return {
      ...more,
      ...Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, each]) => [name, within(each)])),
    };
  }
  if (type === "array") return [within(schema.items ?? {})];
  if (type === "integer" || type === "number") return 1;
  if (type === "boolean") return false;
  if (type === "null") return null;
  return schema.format === "date-time" ? "2026-01-01T00:00:00.000Z" : text;
}
