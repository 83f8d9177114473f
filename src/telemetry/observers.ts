import type { Duration } from "../kernel/duration.ts";
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
  conflicted: (kind: string) => metrics.count("millwright_conflicts_total", { kind }),
  quarantined: ({ kind }: { kind: string }) => metrics.count("millwright_quarantines_total", { kind }),
  leaseLost: (kind: string) => metrics.count("millwright_leases_lost_total", { kind }),
});

/** Fits `GatewayObserver`. The address is left out: one series per BMC would drown the server that scrapes us. */
export const observeDeviceCalls = (metrics: Metrics) => ({
  onCall: ({ operation, outcome, ms }: { operation: string; outcome: string; ms: number }) =>
    metrics.observe("millwright_device_call_seconds", { operation, outcome }, inSeconds(ms)),
});

/** To be told of the end of every call of the API. */
export const observeRpc =
  (metrics: Metrics) =>
  ({ method, code, ms }: { method: string; code: string; ms: number }): void =>
    metrics.observe("millwright_rpc_seconds", { method, code }, inSeconds(ms));
