import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import type { Duration } from "../../kernel/time/duration.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { type ReadyChecks, readReadiness } from "../transport/readiness.ts";

export interface OperationsOptions {
  readonly build: { readonly version: string; readonly commit: string; readonly schema: string };
  readonly checks: ReadyChecks;
  readonly metrics: Pick<Metrics, "render">;
  /** Throws unless the request may use the route (`GET /metrics`, `GET /version`). */
  readonly authenticate: (request: FastifyRequest, route: string) => Promise<unknown>;
  readonly checkTimeout?: Duration;
}

/** `/healthz`: the process answers. `/readyz`: it can do its work. `/metrics`: for Prometheus. `/version`: what runs here. */
export function createOperations({
  build,
  checks,
  metrics,
  authenticate,
  checkTimeout,
}: OperationsOptions): FastifyPluginAsync {
  return async (app: FastifyInstance) => {
    // Nothing is checked: a restart would not bring a lost database back.
    app.get("/healthz", async () => ({ status: "alive" }));

    // Whoever asks meanwhile gets the same answer: a flood of probes is one question to the database.
    let asked: ReturnType<typeof readReadiness> | undefined;
    const read = () => {
      asked ??= readReadiness(checks, checkTimeout).finally(() => {
        asked = undefined;
      });
      return asked;
    };

    app.get("/readyz", async (_request, reply) => {
      const { ready, checks: results } = await read();
      return reply
        .code(ready ? 200 : 503)
        .header("cache-control", "no-store")
        .send({ status: ready ? "ready" : "not_ready", checks: results });
    });

    // Strangers are not told which release they would have to break.
    app.get("/version", async (request, reply) => {
      await authenticate(request, "GET /version");
      return reply.send(build);
    });

    app.get("/metrics", async (request, reply) => {
      await authenticate(request, "GET /metrics");
      const { contentType, body } = await metrics.render();
      return reply.header("content-type", contentType).send(body);
    });
  };
}
