import { expect, test } from "vitest";
import type { EngineObserver } from "../../engine/observer.ts";
import { unobserved } from "../../engine/observer.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import { countingRuns } from "./run-metrics.ts";

type Moved = Parameters<EngineObserver["moved"]>[0];
const moved = (kind: string, from: string, to: string, more: object = {}) =>
  ({
    ...{ kind, from, to, after: milliseconds(0) },
    thing: { type: "REPAVE", plan: {}, target: { kind: "machine" } },
    ...more,
  }) as unknown as Moved;

test("counts each run once, where it ends, by type, outcome and cause", async () => {
  const metrics = createMetrics({ processMetrics: false });
  const observer = countingRuns(metrics, unobserved);
  for (const seen of [
    moved("run", "PENDING", "RUNNING"),
    moved("run", "RUNNING", "RUNNING"),
    moved("run", "RUNNING", "SUCCEEDED"),
    moved("run", "RUNNING", "FAILED", { cause: "image_digest_differs" }),
    moved("run", "RUNNING", "FAILED", { cause: "image_digest_differs" }),
    moved("run", "PENDING", "CANCELED"),
    moved("power_shelf", "maintenance", "error"),
    moved("run", "RUNNING", "FAILED", {
      thing: { type: "", plan: { workflow: "rack_maintenance" }, target: { kind: "rack" } },
    }),
  ])
    observer.moved(seen);
  const counted = (await metrics.render()).body.split("\n").filter((line) => line.includes("runs_ended_total{"));
  expect(counted.toSorted()).toEqual([
    'millwright_runs_ended_total{target="machine",type="REPAVE",outcome="CANCELED",cause=""} 1',
    'millwright_runs_ended_total{target="machine",type="REPAVE",outcome="FAILED",cause="image_digest_differs"} 2',
    'millwright_runs_ended_total{target="machine",type="REPAVE",outcome="SUCCEEDED",cause=""} 1',
    'millwright_runs_ended_total{target="rack",type="rack_maintenance",outcome="FAILED",cause=""} 1',
  ]);
});
