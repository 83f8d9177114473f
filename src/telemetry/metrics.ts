import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { messageOf } from "../kernel/errors.ts";
import {
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  METRICS,
  type MetricName,
} from "./metric-definitions.ts";

export { describeMetrics, METRICS, type MetricRow } from "./metric-definitions.ts";

/** A gauge's values, all of them: what is left out is gone. */
export type Samples = {
  readonly [N in GaugeName]?: readonly { readonly labels: LabelsOf<N>; readonly value: number }[];
};

/** Reads values when somebody asks for them; for what only a query can tell. */
export type Collect = (signal: AbortSignal) => Promise<Samples>;

export interface Metrics {
  count<N extends CounterName>(name: N, labels: LabelsOf<N>, by?: number): void;
  observe<N extends HistogramName>(name: N, labels: LabelsOf<N>, seconds: number): void;
  collectWith(collect: Collect): void;
  /** In the Prometheus text format. A collector that fails or hangs costs its own values and nothing else. */
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
}

export interface MetricsOptions {
  /** Memory, event loop, garbage collection, open files; off in tests, since they watch the whole process. */
  readonly processMetrics: boolean;
  readonly collectTimeoutMs?: number;
  readonly onCollectFailure?: (message: string) => void;
}

export function createMetrics({
  processMetrics,
  collectTimeoutMs = 3_000,
  onCollectFailure = () => {},
}: MetricsOptions): Metrics {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry });
  const { counters, gauges, histograms } = register(registry);
  const collectors: Collect[] = [];

  const metrics: Metrics = {
    count: (name, labels, by = 1) => named(counters, name).inc(labels, by),
    observe: (name, labels, seconds) => named(histograms, name).observe(labels, seconds),
    collectWith: (collect) => void collectors.push(collect),
    async render() {
      await collectAll();
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };

  // Scrapes that overlap share one reading, so that a slow database is not asked ever more often.
  let collecting: Promise<unknown> | undefined;
  function collectAll(): Promise<unknown> {
    collecting ??= Promise.all(collectors.map(collectOne)).finally(() => {
      collecting = undefined;
    });
    return collecting;
  }

  async function collectOne(collect: Collect): Promise<void> {
    try {
      const samples = await within(collectTimeoutMs, collect);
      for (const [name, values] of Object.entries(samples)) {
        const gauge = named(gauges, name as GaugeName);
        gauge.reset();
        for (const { labels, value } of values) gauge.set(labels, value);
      }
    } catch (error) {
      metrics.count("millwright_collect_failures_total", {});
      onCollectFailure(messageOf(error));
    }
  }
  return metrics;
}

/** Ends also when the collector does not heed its signal. */
async function within<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(timeoutMs);
  const late = Promise.withResolvers<never>();
  const onAbort = () => late.reject(new Error(`took longer than ${timeoutMs} ms`));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work(signal), late.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function named<M>(metrics: ReadonlyMap<MetricName, M>, name: MetricName): M {
  const metric = metrics.get(name);
  if (metric === undefined) throw new Error(`${name} is not in the table of metrics under this type`);
  return metric;
}

function register(registry: Registry) {
  const counters = new Map<MetricName, Counter>();
  const gauges = new Map<MetricName, Gauge>();
  const histograms = new Map<MetricName, Histogram>();
  for (const name of Object.keys(METRICS) as MetricName[]) {
    const definition = METRICS[name];
    const common = { name, help: definition.doc, labelNames: [...definition.labels], registers: [registry] };
    if (definition.type === "counter") counters.set(name, new Counter(common));
    else if (definition.type === "gauge") gauges.set(name, new Gauge(common));
    else histograms.set(name, new Histogram({ ...common, buckets: [...definition.buckets] }));
  }
  return { counters, gauges, histograms };
}
