import { expect, test } from "vitest";
import { milliseconds } from "../../kernel/time/duration.ts";
import { followReadiness, readReadiness } from "./readiness.ts";

test("readiness is told again and again, as it comes and goes, until nobody wants to know", async () => {
  const stop = new AbortController();
  const reasons = [null, "is away", null];
  const told: boolean[] = [];
  const tell = (ready: boolean) => {
    told.push(ready);
    if (told.length === 3) stop.abort();
  };
  const checks = { engine: async () => null, database: async () => reasons[told.length] ?? null };
  await followReadiness(checks, { every: milliseconds(1), tell }, stop.signal);
  expect(told).toEqual([true, false, true]);
});

test("what is found out after the end is not told", async () => {
  const stop = new AbortController();
  const checks = {
    database: async () => {
      stop.abort();
      return null;
    },
  };
  const tell = () => expect.unreachable();
  await followReadiness(checks, { every: milliseconds(1), tell }, stop.signal);
});

test("a remark is shown, and keeps nobody from being ready", async () => {
  const checks = { database: async () => null, clock: async () => ({ remark: "it is an hour late" }) };
  expect(await readReadiness(checks)).toEqual({
    ready: true,
    checks: { database: "ok", clock: "ok, but it is an hour late" },
  });
});
