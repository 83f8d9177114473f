import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import { z } from "zod";
import { type BootRouteDeps, bootRoutes } from "./boot.ts";
import { groupRoutes } from "./groups.ts";
import { type NodeHistoryDeps, nodeHistoryRoutes } from "./node-history.ts";
import { nodeStateRoutes } from "./node-states.ts";
import { nodeRoutes } from "./nodes.ts";
import { describeRoutes } from "./openapi.ts";
import { referenceRoute } from "./reference.ts";
import { type ReportRouteDeps, reportRoutes } from "./reports.ts";
import { type AnyRoute, defineRoute, type RouteDeps, registerRoutes } from "./route.ts";
import { workflowRoutes } from "./workflows.ts";

export interface InstallApiDeps extends NodeHistoryDeps, ReportRouteDeps, BootRouteDeps, RouteDeps {
  readonly version: string;
}

const PREFIX = "/api/v1";

/** All routes of `/api/v1`, and the document that describes them. */
export function installRoutes(deps: InstallApiDeps): AnyRoute[] {
  const routes = [
    ...nodeRoutes(deps),
    ...nodeStateRoutes(deps),
    ...nodeHistoryRoutes(deps),
    ...reportRoutes(deps),
    ...bootRoutes(deps),
    ...groupRoutes(deps),
    ...workflowRoutes(deps),
  ];
  return [...routes, openApiRoute(routes, deps.version), referenceRoute()];
}

function openApiRoute(routes: readonly AnyRoute[], version: string): AnyRoute {
  const document = describeRoutes(routes, version);
  return defineRoute({
    method: "GET",
    path: `${PREFIX}/openapi.json`,
    tag: "reference",
    summary: "This document.",
    answer: z.record(z.string(), z.unknown()),
    handle: async () => document,
  });
}

export const createInstallApi =
  (deps: InstallApiDeps): FastifyPluginAsync =>
  async (app) => {
    const routes = installRoutes(deps);
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
