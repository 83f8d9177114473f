import type { EngineObserver } from "../../engine/observer.ts";
import { type RunThing, runLifecycle } from "../../runs/model/lifecycle.ts";
import type { Metrics } from "../../telemetry/metrics.ts";

/** The engine's observer, that also counts how runs end. */
export const countingRuns = (metrics: Metrics, observer: EngineObserver): EngineObserver => ({
  ...observer,
  moved(seen) {
    observer.moved(seen);
    const { kind, to, thing, cause = "" } = seen;
    if (kind !== runLifecycle.kind || !isEnd(to)) return;
    const { target, type, plan } = thing as RunThing;
    metrics.count("millwright_runs_ended_total", {
      target: target.kind,
      type: type || plan.workflow || "",
      outcome: to,
      cause,
    });
  },
});

const states: { readonly [state: string]: { readonly terminal?: boolean } } = runLifecycle.states;
const isEnd = (state: string): boolean => states[state]?.terminal === true;
