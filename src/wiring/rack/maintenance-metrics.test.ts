import { expect, test } from "vitest";
import type { EngineObserver } from "../../engine/observer.ts";
import { unobserved } from "../../engine/observer.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import { countingMaintenance } from "./maintenance-metrics.ts";

type Moved = Parameters<EngineObserver["moved"]>[0];
const rack = (trigger?: string) => ({ facts: { workSet: { trigger } } });
const run = (workflow: string | undefined, trigger?: string) => ({
  plan: { workflow },
  target: { thing: rack(trigger) },
});
const moved = (kind: string, from: string, to: string, thing: object) =>
  ({ kind, from, to, thing, after: milliseconds(0) }) as unknown as Moved;

test("counts each maintenance once, where it ends, by what led to it", async () => {
  const metrics = createMetrics({ processMetrics: false });
  const observer = countingMaintenance(metrics, unobserved);
  for (const seen of [
    moved("run", "RUNNING", "SUCCEEDED", run("rack_maintenance", "ingestion")), // it is validated next
    moved("run", "RUNNING", "SUCCEEDED", run("rack_validation", "ingestion")),
    moved("run", "RUNNING", "FAILED", run("rack_validation", "reprovision")),
    moved("run", "RUNNING", "FAILED", run("rack_maintenance", "on_demand")),
    moved("run", "PENDING", "CANCELED", run("rack_maintenance", "on_demand")),
    moved("rack", "maintenance", "error", rack("ingestion")),
    moved("rack", "ready", "error", rack("ingestion")), // a device failed
    moved("run", "RUNNING", "FAILED", run("repave")),
    moved("run", "RUNNING", "FAILED", run(undefined)),
  ])
    observer.moved(seen);
  const counted = (await metrics.render()).body.split("\n").filter((line) => line.includes("rack_maintenance_total{"));
  expect(counted.toSorted()).toEqual([
    'millwright_rack_maintenance_total{trigger="ingestion",outcome="completed"} 1',
    'millwright_rack_maintenance_total{trigger="ingestion",outcome="lost"} 1',
    'millwright_rack_maintenance_total{trigger="on_demand",outcome="failed"} 1',
    'millwright_rack_maintenance_total{trigger="on_demand",outcome="terminated"} 1',
    'millwright_rack_maintenance_total{trigger="reprovision",outcome="validation_failed"} 1',
  ]);
});
