import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Access } from "../auth/access.ts";
import { describeRoutes } from "./openapi.ts";
import { referenceRoute } from "./reference.ts";
import { type AnyRoute, defineRoute, type RouteDeps, registerRoutes } from "./route.ts";

export interface RestApiDeps extends RouteDeps {
  readonly version: string;
  readonly access: Pick<Access, "isPublic">;
  /** Those of the things. */
  readonly routes: readonly AnyRoute[];
  /** Which of them answer here; the document describes all. Absent: all. */
  readonly isHere?: (route: AnyRoute) => boolean;
}

const PREFIX = "/api/v1";

/** All routes of `/api/v1`: those of the things, and the document that describes them. */
export const restApiRoutes = ({
  routes,
  version,
  access,
}: Omit<RestApiDeps, keyof RouteDeps | "isHere">): AnyRoute[] => [
  ...routes,
  openApiRoute(describeRoutes(routes, { version, access })),
  referenceRoute(),
];

const openApiRoute = (document: Readonly<Record<string, unknown>>): AnyRoute =>
  defineRoute({
    method: "GET",
    path: `${PREFIX}/openapi.json`,
    tag: "reference",
    summary: "This document.",
    answer: z.record(z.string(), z.unknown()),
    handle: async () => document,
  });

export const createRestApi =
  (deps: RestApiDeps): FastifyPluginAsync =>
  async (app) => {
    const { isHere = () => true } = deps;
    const routes = restApiRoutes(deps).filter(isHere);
    // JSON is all that is spoken here; Fastify would take text as well.
    app.removeContentTypeParser("text/plain");
    registerRoutes(app, routes, deps);
    await app.register(async (below) => answerUnknown(below, routes), { prefix: PREFIX });
  };

/** Below `/api/v1` also what does not exist is answered in the words of this contract. */
function answerUnknown(app: FastifyInstance, routes: readonly AnyRoute[]): void {
  const patterns = routes.map(({ method, path }) => ({
    method,
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{[^}]+\}/g, "[^/]+")}$`),
  }));
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?", 1)[0] ?? "";
    const allowed = [...new Set(patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
    if (allowed.length === 0)
      return reply.code(404).send({ detail: `Not Found: there is no ${nameOf(request, path)}` });
    const detail = `Method Not Allowed: ${path} takes ${allowed.join(", ")}`;
    return reply.code(405).header("allow", allowed.join(", ")).send({ detail });
  });
}

const nameOf = ({ method }: FastifyRequest, path: string): string => `${method} ${path.slice(0, 200)}`;
