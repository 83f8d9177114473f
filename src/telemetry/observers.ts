import type { Log } from "../kernel/log.ts";
import type { Duration } from "../kernel/time/duration.ts";
import type { Metrics } from "./metrics.ts";

const inSeconds = (milliseconds: number): number => milliseconds / 1_000;

/** Fits `EngineObserver`. */
export const observeEngine = (metrics: Metrics) => ({
  handled: (seen: { kind: string; state: string; outcome: string; took: Duration }) =>
    metrics.observe(
      "millwright_handler_seconds",
      { kind: seen.kind, state: seen.state, outcome: seen.outcome },
      inSeconds(seen.took),
    ),
  moved({ kind, from, to, after }: { kind: string; from: string; to: string; after: Duration }) {
    metrics.count("millwright_transitions_total", { kind, from, to });
    metrics.observe("millwright_state_seconds", { kind, state: from }, inSeconds(after));
  },
  failed: ({ kind, state, cause }: { kind: string; state: string; cause: string }) =>
    metrics.count("millwright_failures_total", { kind, state, cause }),
  conflicted: (kind: string) => metrics.count("millwright_conflicts_total", { kind }),
  quarantined: ({ kind }: { kind: string }) => metrics.count("millwright_quarantines_total", { kind }),
  leaseLost: (kind: string) => metrics.count("millwright_leases_lost_total", { kind }),
});

interface FailedStep {
  readonly run: string;
  readonly step: string;
  readonly stepKind: string;
  readonly attempt: number;
  readonly cause: string;
  readonly reason: string;
}

/** Of the runs' steps that a replica carries out. Each failed attempt is logged: few things tell operators more. */
export const observeSteps = (metrics: Metrics, log: Log) => ({
  stepFailed(failed: FailedStep): void {
    metrics.count("millwright_step_failures_total", { step_kind: failed.stepKind, cause: failed.cause });
    log.info({ ...failed }, "an attempt at a step failed");
  },
});

/** Fits `ReconcilerObserver`. */
export const observeChecks = (metrics: Metrics) => ({
  checked: ({ outcome, took }: { outcome: string; took: Duration }) =>
    metrics.observe("millwright_condition_look_seconds", { outcome }, inSeconds(took)),
});

/** Fits `SitesObserver`. */
export const observeSites = (metrics: Metrics) => ({
  listed: ({ outcome, took }: { outcome: string; took: Duration }) =>
    metrics.observe("millwright_fleet_listing_seconds", { outcome }, inSeconds(took)),
});

/** Fits `EventsObserver`. */
export const observeEvents = (metrics: Metrics) => ({
  nudged: (kind: string) => metrics.count("millwright_event_nudges_total", { kind }),
  ended: ({ kind, reason }: { kind: string; reason: string }) =>
    metrics.count("millwright_event_stream_ends_total", { kind, reason }),
});

interface DeviceCall {
  readonly address: string;
  readonly operation: string;
  readonly outcome: string;
  readonly ms: number;
  /** Whether it was sent at all. */
  readonly left: boolean;
}

/**
 * Fits `GatewayObserver`. The address is in no metric: one series per BMC would drown the server that scrapes us. Requests that
 * change a device are logged, each of them; reads are too many.
 */
export const observeDeviceCalls = (metrics: Metrics, log: Log) => ({
  onCall({ address, operation, outcome, ms, left }: DeviceCall): void {
    metrics.observe("millwright_device_call_seconds", { operation, outcome }, inSeconds(ms));
    if (!left || !operation.endsWith(".command")) return;
    log.info({ address, operation, outcome, ms: Math.round(ms) }, "a device was sent a command");
  },
});

interface LimitReading {
  readonly limit: string;
  readonly current: number;
  readonly most: number;
}

/** Of the limits that callers of the API are held to. */
export const observeLimits = (metrics: Metrics) => ({
  refused: (limit: string): void => metrics.count("millwright_limit_reached_total", { limit }),
  showWith(read: () => readonly LimitReading[]): void {
    metrics.collectWith(async () => {
      const readings = read().map(({ limit, current, most }) => ({ labels: { limit }, current, most }));
      return {
        millwright_limit_current: readings.map(({ labels, current }) => ({ labels, value: current })),
        millwright_limit_most: readings.map(({ labels, most }) => ({ labels, value: most })),
      };
    });
  },
});

/** To be told of the end of every call of the API. */
export const observeRpc =
  (metrics: Metrics) =>
  ({ method, code, ms }: { method: string; code: string; ms: number }): void =>
    metrics.observe("millwright_rpc_seconds", { method, code }, inSeconds(ms));
