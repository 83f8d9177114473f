import { z } from "zod";
import type { Access } from "../auth/access.ts";
import { type AnyRoute, nameOfRoute } from "./route.ts";

type Part = Readonly<Record<string, unknown>>;

const PROBLEM = "Problem";
const DETAIL = { type: "object", required: ["detail"], properties: { detail: { type: "string" } } };

export interface DescribeOptions {
  readonly version: string;
  readonly access: Pick<Access, "isPublic">;
}

/** The OpenAPI 3.1 document of the routes: each is shown as it is checked, since both come from one declaration. */
export function describeRoutes(routes: readonly AnyRoute[], { version, access }: DescribeOptions): Part {
  const paths: Record<string, Record<string, Part>> = {};
  const named: NamedSchemas = {};
  for (const route of routes) {
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: operationOf(route, named, access.isPublic(nameOfRoute(route))),
    };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Millwright: network installs",
      version,
      description: "Nodes that install over the network, their groups and workflows. Errors are {detail}.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: {
        ...named,
        [PROBLEM]: {
          type: "object",
          required: ["detail"],
          properties: {
            detail: {
              type: "array",
              items: {
                type: "object",
                required: ["type", "loc", "msg"],
                properties: {
                  type: { type: "string" },
                  loc: { type: "array", items: { type: ["string", "integer"] } },
                  msg: { type: "string" },
                },
              },
            },
          },
        },
      },
    },
  };
}

/** Schemas that have a name are in the document once, and everywhere else by it. */
type NamedSchemas = Record<string, Part>;

function operationOf(route: AnyRoute, named: NamedSchemas, isPublic: boolean): Part {
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    ...(isPublic ? { security: [] } : { security: [{ bearer: [] }] }),
    parameters: [...parametersOf(route.params, "path", named), ...parametersOf(route.query, "query", named)],
    ...(route.body && {
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: schemaOf(route.body, "input", named),
            ...(route.example !== undefined && { example: route.example }),
          },
        },
      },
    }),
    responses: responsesOf(route, named, isPublic),
  };
}

const operationId = ({ method, path }: AnyRoute): string =>
  `${method.toLowerCase()}${path
    .replace(/^\/api\/v1/, "")
    .split(/[/{}-]+/)
    .filter((word) => word !== "")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")}`;

function responsesOf(route: AnyRoute, named: NamedSchemas, isPublic: boolean): Part {
  const answer =
    "text" in route.answer
      ? { [route.answer.text]: { schema: { type: "string" } } }
      : {
          "application/json": { schema: schemaOf(route.answer as z.ZodType, "output", named) },
        };
  const errors = {
    ...(!isPublic && {
      401: "No credentials, or bad ones.",
      403: "The caller's roles do not allow it.",
    }),
    ...(route.body && { 413: "The body is larger than 1 MiB.", 415: "The body is not said to be application/json." }),
    ...route.errors,
  };
  return {
    [route.status ?? 200]: { description: "Done.", content: answer },
    ...Object.fromEntries(
      Object.entries(errors).map(([code, description]) => [
        code,
        { description, content: { "application/json": { schema: DETAIL } } },
      ]),
    ),
    422: {
      description: "Something in the request is wrong whatever the state of things; `loc` says what.",
      content: { "application/json": { schema: { $ref: `#/components/schemas/${PROBLEM}` } } },
    },
  };
}

function schemaOf(schema: z.ZodType, io: "input" | "output", named: NamedSchemas): Part {
  const { $schema: _, $defs = {}, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Part;
  const moved = JSON.parse(JSON.stringify({ rest, $defs }).replaceAll('"#/$defs/', '"#/components/schemas/')) as {
    readonly rest: Part;
    readonly $defs: Readonly<Record<string, Part>>;
  };
  for (const [name, { id: __, ...part }] of Object.entries(moved.$defs)) named[name] = part;
  return moved.rest;
}

function parametersOf(schema: z.ZodType | undefined, where: "path" | "query", named: NamedSchemas): Part[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(schema, "input", named) as {
    properties?: Record<string, Part>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: where,
    required: where === "path" || required.includes(name),
    schema: property,
  }));
}
