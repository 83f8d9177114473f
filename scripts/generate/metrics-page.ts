import { METRICS } from "../../src/telemetry/metric-definitions.ts";
import { access } from "../../src/wiring/things/all-things.ts";
import { code, page, pageHead, table } from "./markdown.ts";

const scrapers = (): string => [access.allowedFor("GET /metrics")].flat().map(code).join(", ");

/** Every metric of Millwright's own. */
export function metricsPage(): string {
  const rows = Object.entries(METRICS).map(([name, { type, labels, doc }]) => [
    code(name),
    type,
    labels.length === 0 ? "–" : labels.map(code).join(", "),
    doc,
  ]);
  const buckets = Object.entries(METRICS).flatMap(([name, metric]) =>
    "buckets" in metric ? [[code(name), metric.buckets.map(String).join(", ")]] : [],
  );
  return page(
    pageHead("Metrics", "`src/telemetry/metric-definitions.ts`"),
    `Served for Prometheus at \`/metrics\` on the HTTP port, to callers with one of the roles ${scrapers()} or one that carries it: see [running in production](../guides/production.md#metrics) for a token and a scrape configuration.`,
    "The words in `kind` and `state` are those of the [lifecycles](../lifecycles/README.md). No label holds an address or text from outside, and none but `rack` an id. [Alerts and a dashboard](../guides/production.md#metrics) are ready-made.",
    table(["Metric", "Type", "Labels", "Meaning"], rows),
    "## Buckets",
    table(["Histogram", "Upper bounds in seconds"], buckets),
  );
}
