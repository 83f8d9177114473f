import fastify, { type FastifyInstance } from "fastify";
import { afterEach, describe, expect, test } from "vitest";
import { AppError } from "../../kernel/errors.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { createOperations, type OperationsOptions } from "./operations.ts";

let app: FastifyInstance;
afterEach(() => app.close());

async function serve(options: Partial<OperationsOptions> = {}) {
  app = fastify();
  await app.register(
    createOperations({
      build: { version: "1.2.3", commit: "0123456789abcdef", schema: "0001" },
      checks: { database: async () => null },
      metrics: { render: async () => ({ contentType: "text/plain; version=0.0.4", body: "millwright_watchers 1\n" }) },
      authenticate: async () => {},
      ...options,
    }),
  );
  return (url: string) => app.inject({ method: "GET", url });
}

describe("operations", () => {
  test("/healthz says alive, whatever else is wrong", async () => {
    const get = await serve({ checks: { database: async () => "is away" } });
    expect((await get("/healthz")).json()).toEqual({ status: "alive" });
  });

  test("/readyz is 200 once every part is ready", async () => {
    const get = await serve({ checks: { database: async () => null, engine: async () => null } });
    const answer = await get("/readyz");
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({ status: "ready", checks: { database: "ok", engine: "ok" } });
  });

  test("who asks whether it is ready while that is found out gets the same answer", async () => {
    let questions = 0;
    const found = Promise.withResolvers<null>();
    const get = await serve({
      checks: {
        database: () => {
          questions += 1;
          return found.promise;
        },
      },
    });
    const answers = Array.from({ length: 50 }, () => get("/readyz"));
    const settled = Promise.all(answers);
    setImmediate(() => found.resolve(null));
    expect((await settled).every(({ statusCode }) => statusCode === 200)).toBe(true);
    expect(questions).toBeLessThan(50);
    await get("/readyz");
    expect(questions).toBeGreaterThan(1);
  });

  test("/readyz is 503 with the reason of each part that is not, also if its check throws or hangs", async () => {
    const get = await serve({
      checkTimeout: milliseconds(10),
      checks: {
        database: async () => {
          throw new Error("cannot reach postgres://mw:hunter2@db");
        },
        migrations: async () => "2 migrations are not applied yet",
        engine: () => new Promise(() => {}),
        watch: async () => null,
      },
    });
    const answer = await get("/readyz");
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toEqual({
      status: "not_ready",
      checks: {
        database: "cannot reach postgres://mw:[hidden]@db",
        migrations: "2 migrations are not applied yet",
        engine: "no answer within 10 ms",
        watch: "ok",
      },
    });
  });

  test("/metrics is for those who may read it", async () => {
    const asked: string[] = [];
    const get = await serve({ authenticate: async (_request, route) => asked.push(route) });
    const answer = await get("/metrics");
    expect(answer.body).toBe("millwright_watchers 1\n");
    expect(answer.headers["content-type"]).toContain("text/plain");
    expect(asked).toEqual(["GET /metrics"]);
    await get("/healthz");
    await get("/readyz");
    expect(asked).toHaveLength(1);
  });

  test("/version says what runs here, to those who may know", async () => {
    const asked: string[] = [];
    const get = await serve({ authenticate: async (_request, route) => asked.push(route) });
    expect((await get("/version")).json()).toEqual({ version: "1.2.3", commit: "0123456789abcdef", schema: "0001" });
    expect(asked).toEqual(["GET /version"]);
  });

  test("/metrics gives nothing to others", async () => {
    const get = await serve({
      authenticate: async () => {
        throw new AppError("permission_denied", "no");
      },
    });
    const answer = await get("/metrics");
    expect(answer.statusCode).not.toBe(200);
    expect(answer.body).not.toContain("millwright_watchers");
  });
});
