import { describe, expect, test } from "vitest";
import { createMetrics, describeMetrics, METRICS } from "./metrics.ts";

const sample = (body: string, series: string) => {
  const line = body.split("\n").find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
};

describe("metrics", () => {
  test("count and observe, under the names of the table", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.count("millwright_transitions_total", { kind: "power_shelf", from: "ready", to: "maintenance" });
    metrics.count("millwright_transitions_total", { kind: "power_shelf", from: "ready", to: "maintenance" }, 2);
    metrics.observe(
      "millwright_handler_seconds",
      { kind: "power_shelf", state: "maintenance", outcome: "waited" },
      0.2,
    );
    const { body, contentType } = await metrics.render();
    expect(contentType).toContain("text/plain");
    expect(sample(body, 'millwright_transitions_total{kind="power_shelf",from="ready",to="maintenance"}')).toBe(3);
    expect(
      sample(
        body,
        'millwright_handler_seconds_bucket{le="0.25",kind="power_shelf",state="maintenance",outcome="waited"}',
      ),
    ).toBe(1);
  });

  test("take exactly the labels that the table declares", () => {
    const metrics = createMetrics({ processMetrics: false });
    // @ts-expect-error a label that the table does not have
    expect(() => metrics.count("millwright_conflicts_total", { kind: "x", id: "ps-1" })).toThrow("id");
    // @ts-expect-error a histogram is not counted
    expect(() => metrics.count("millwright_rpc_seconds", { method: "m", code: "ok" })).toThrow("not in the table");
  });

  test("collected values replace those of the last time: a state without things is gone", async () => {
    const metrics = createMetrics({ processMetrics: false });
    let state = "ready";
    metrics.collectWith(async () => ({ millwright_things: [{ labels: { kind: "power_shelf", state }, value: 4 }] }));
    await metrics.render();
    state = "error";
    const { body } = await metrics.render();
    expect(sample(body, 'millwright_things{kind="power_shelf",state="error"}')).toBe(4);
    expect(body).not.toContain('state="ready"');
  });

  test("a collector that fails or hangs costs its own values alone, and is counted", async () => {
    const complaints: string[] = [];
    const metrics = createMetrics({
      processMetrics: false,
      collectTimeoutMs: 10,
      onCollectFailure: (message) => complaints.push(message),
    });
    metrics.collectWith(() => Promise.reject(new Error("the database is away")));
    metrics.collectWith(() => new Promise(() => {}));
    metrics.collectWith(async () => ({ millwright_work_due: [{ labels: { kind: "power_shelf" }, value: 2 }] }));
    const { body } = await metrics.render();
    expect(sample(body, 'millwright_work_due{kind="power_shelf"}')).toBe(2);
    expect(sample(body, "millwright_collect_failures_total")).toBe(2);
    expect(complaints.sort()).toEqual(["the database is away", "took longer than 10 ms"]);
  });

  test("scrapes that overlap share one reading", async () => {
    const metrics = createMetrics({ processMetrics: false });
    let readings = 0;
    metrics.collectWith(async () => {
      readings += 1;
      return {};
    });
    await Promise.all([metrics.render(), metrics.render()]);
    expect(readings).toBe(1);
    await metrics.render();
    expect(readings).toBe(2);
  });

  test("those of the process are there when asked for", async () => {
    const { body } = await createMetrics({ processMetrics: true }).render();
    expect(body).toContain("process_resident_memory_bytes");
    expect(body).toContain("nodejs_eventloop_lag_seconds");
  });
});

describe("the table", () => {
  test("follows the naming rules of Prometheus, and says what each metric means", () => {
    for (const [name, definition] of Object.entries(METRICS)) {
      expect(name).toMatch(/^millwright_[a-z_]+$/);
      expect([name, definition.type === "counter"]).toEqual([name, name.endsWith("_total")]);
      if (definition.type === "histogram") expect(name).toMatch(/_seconds$/);
      expect(definition.doc).toMatch(/\.$/);
    }
    expect(describeMetrics()).toHaveLength(Object.keys(METRICS).length);
  });
});
