import { createConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { registerRoutes } from "../routes.ts";

const servedWith = (parts: object): ReadonlySet<string> => {
  const router = createConnectRouter();
  const deps = { services: {}, events: {}, system: {}, onTokenRevoked() {}, ...parts };
  registerRoutes(router, deps as unknown as Parameters<typeof registerRoutes>[1]);
  return new Set(router.handlers.map(({ service }) => service.typeName));
};

describe("the services of a server", () => {
  test("without runs: those that need no runs, each with all of its methods", () => {
    const withRuns = servedWith({ runs: {} });
    const withoutRuns = servedWith({});
    expect(withRuns).toContain("millwright.v1.FleetNodeService");
    expect(withoutRuns).toContain("forge.Forge");
    expect([...withoutRuns].filter((name) => !withRuns.has(name))).toEqual([]);
    expect(withoutRuns).not.toContain("millwright.v1.FleetNodeService");
  });
});
