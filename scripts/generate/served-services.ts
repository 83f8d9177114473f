import type { DescMethod } from "@bufbuild/protobuf";
import { createConnectRouter } from "@connectrpc/connect";
import { HealthSwitch, healthRoutes } from "../../src/api/transport/health-service.ts";
import { reflectionRoutes } from "../../src/api/transport/reflection.ts";
import { registerRoutes } from "../../src/wiring/routes.ts";

/**
 * Full names of the services that the server really has: the contracts hold more. The routes are registered as in the server,
 * and nothing is ever called, so that they need nothing behind them.
 */
export const servedServices = (): ReadonlySet<string> => new Set(servedMethods().map(({ parent }) => parent.typeName));

/** All of their methods, as the contracts describe them. */
export function servedMethods(): readonly DescMethod[] {
  const router = createConnectRouter();
  registerRoutes(router, {
    services: {},
    runs: {},
    events: {},
    system: {},
    onTokenRevoked() {},
  } as unknown as Parameters<typeof registerRoutes>[1]);
  healthRoutes(router, new HealthSwitch(true));
  reflectionRoutes(router);
  return router.handlers.map(({ method }) => method);
}
