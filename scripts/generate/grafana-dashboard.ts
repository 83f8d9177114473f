import { METRICS } from "../../src/telemetry/metric-definitions.ts";

type Metric = keyof typeof METRICS;

/** What an operator looks at first, from top to bottom; metrics that no row names come last. A prefix stands for all that begin so. */
const ROWS: readonly (readonly [title: string, prefixes: readonly string[]])[] = [
  [
    "What is wrong",
    ["things_in_trouble", "things_above_sla", "machine_conditions", "runs_ended", "failures", "step_failures"],
  ],
  ["What is there", ["things", "state_seconds", "transitions"]],
  ["What waits", ["requests_", "claims_", "work_", "racks_", "rack_maintenance", "condition_lag"]],
  ["Fleet nodes", ["fleet_"]],
  ["Devices", ["device_call", "condition_look", "event_"]],
  ["Who calls", ["rpc_", "watchers", "limit_", "calls_refused", "boots_contested"]],
];
const OTHERS = "The server itself";

const WIDTH = 8;
const HEIGHT = 8;
const IN_A_ROW = 3;
const DATASOURCE = { type: "prometheus", uid: "$datasource" };

/** Every metric of Millwright's own as a panel. Gauges of the fleet are the same on every replica: their maximum counts, not their sum. */
export function grafanaDashboard(): string {
  const rows = rowsOfMetrics();
  const panels: object[] = [];
  let y = 0;
  for (const [title, metrics] of rows) {
    panels.push({
      id: panels.length + 1,
      type: "row",
      title,
      gridPos: { x: 0, y, w: 24, h: 1 },
      collapsed: false,
      panels: [],
    });
    y += 1;
    for (const [at, metric] of metrics.entries()) {
      const gridPos = { x: (at % IN_A_ROW) * WIDTH, y: y + Math.floor(at / IN_A_ROW) * HEIGHT, w: WIDTH, h: HEIGHT };
      panels.push(panelOf(metric, panels.length + 1, gridPos));
    }
    y += Math.ceil(metrics.length / IN_A_ROW) * HEIGHT;
  }
  const dashboard = {
    title: "Millwright",
    uid: "millwright",
    description: "Made from the definitions of the metrics by `npm run generate`. Do not edit: import it again.",
    tags: ["millwright"],
    schemaVersion: 39,
    time: { from: "now-6h", to: "now" },
    refresh: "30s",
    templating: {
      list: [{ name: "datasource", label: "Prometheus", type: "datasource", query: "prometheus" }],
    },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

function rowsOfMetrics(): readonly (readonly [string, readonly Metric[]])[] {
  const left = new Set(Object.keys(METRICS) as Metric[]);
  const rows = ROWS.map(([title, prefixes]) => {
    const metrics = prefixes.flatMap((prefix) => [...left].filter((name) => name.startsWith(`millwright_${prefix}`)));
    for (const metric of metrics) left.delete(metric);
    return [title, [...new Set(metrics)]] as const;
  });
  return [...rows, [OTHERS, [...left]]];
}

function panelOf(metric: Metric, id: number, gridPos: object): object {
  const { type, doc } = METRICS[metric];
  const isSeconds = /_seconds$/.test(metric);
  return {
    id,
    type: "timeseries",
    title: metric.replace(/^millwright_/, "").replaceAll("_", " "),
    description: doc,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit: isSeconds ? "s" : type === "counter" ? "cps" : "short", min: 0 }, overrides: [] },
    options: {
      legend: { displayMode: "table", placement: "bottom", calcs: ["lastNotNull"] },
      tooltip: { mode: "multi" },
    },
    targets: queriesOf(metric).map(({ expr, legend }, at) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + at),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

interface Query {
  readonly expr: string;
  readonly legend: string;
}

function queriesOf(metric: Metric): readonly Query[] {
  const { type, labels } = METRICS[metric];
  const by = labels.length === 0 ? "" : ` by (${labels.join(", ")})`;
  const legend = labels.length === 0 ? metric : labels.map((label) => `{{${label}}}`).join(" ");
  if (type === "gauge") return [{ expr: `max${by} (${metric})`, legend }];
  if (type === "counter") return [{ expr: `sum${by} (rate(${metric}[5m]))`, legend }];
  return [0.5, 0.99].map((quantile) => ({
    expr: `histogram_quantile(${quantile}, sum by (${["le", ...labels].join(", ")}) (rate(${metric}_bucket[5m])))`,
    legend: `p${quantile * 100} ${legend}`,
  }));
}
