import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import { messageOf } from "../../kernel/errors.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { withoutSecretText } from "../../telemetry/redaction.ts";

/** Says why the part is not ready; nothing when it is. */
export type ReadyCheck = (signal: AbortSignal) => Promise<string | null>;

export interface OperationsOptions {
  /** By name: `database`, `migrations`, `engine`. */
  readonly checks: Readonly<Record<string, ReadyCheck>>;
  readonly metrics: Pick<Metrics, "render">;
  /** Throws unless the request may use the route (`GET /metrics`). */
  readonly authenticate: (request: FastifyRequest, route: string) => Promise<unknown>;
  readonly checkTimeoutMs?: number;
}

/** `/healthz`: the process answers. `/readyz`: it can do its work. `/metrics`: for Prometheus. */
export function createOperations({
  checks,
  metrics,
  authenticate,
  checkTimeoutMs = 2_000,
}: OperationsOptions): FastifyPluginAsync {
  return async (app: FastifyInstance) => {
    // Nothing is looked at: a process that is restarted because its database is away would only be gone as well.
    app.get("/healthz", async () => ({ status: "alive" }));

    app.get("/readyz", async (_request, reply) => {
      const results = await Promise.all(
        Object.entries(checks).map(
          async ([name, check]) => [name, (await reasonOf(check, checkTimeoutMs)) ?? "ok"] as const,
        ),
      );
      const ready = results.every(([, result]) => result === "ok");
      return reply
        .code(ready ? 200 : 503)
        .header("cache-control", "no-store")
        .send({ status: ready ? "ready" : "not_ready", checks: Object.fromEntries(results) });
    });

    app.get("/metrics", async (request, reply) => {
      await authenticate(request, "GET /metrics");
      const { contentType, body } = await metrics.render();
      return reply.header("content-type", contentType).send(body);
    });
  };
}

/** A check that throws or does not end is a reason as well. */
async function reasonOf(check: ReadyCheck, timeoutMs: number): Promise<string | null> {
  const signal = AbortSignal.timeout(timeoutMs);
  const late = new Promise<string>((resolve) => {
    signal.addEventListener("abort", () => resolve(`no answer within ${timeoutMs} ms`), { once: true });
  });
  try {
    return await Promise.race([check(signal), late]);
  } catch (error) {
    // Anybody may read this answer.
    return withoutSecretText(messageOf(error));
  }
}
