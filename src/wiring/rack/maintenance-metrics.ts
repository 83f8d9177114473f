import type { EngineObserver } from "../../engine/observer.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { Rack } from "../../lifecycles/rack/rack.ts";
import type { RunThing } from "../../runs/model/lifecycle.ts";
import { RACK_MAINTENANCE, RACK_VALIDATION } from "../../runs/workflows/rack/words.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { countRacksToAdmit, listRacksFailedByThemselves } from "../../store/rack/admission.ts";
import type { Collect, Metrics } from "../../telemetry/metrics.ts";

/** What the end of a run means for the maintenance; absent: it goes on. */
const OUTCOMES: { readonly [workflow: string]: { readonly [phase: string]: string } } = {
  [RACK_MAINTENANCE]: { FAILED: "failed", CANCELED: "terminated" },
  [RACK_VALIDATION]: { SUCCEEDED: "completed", FAILED: "validation_failed", CANCELED: "terminated" },
};

/** The engine's observer, that also counts how maintenances of racks end. */
export const countingMaintenance = (
  metrics: Metrics,
  observer: Omit<EngineObserver, "moved"> & { moved(seen: Omit<Moved, "thing">): void },
): EngineObserver => ({
  ...observer,
  moved(seen) {
    observer.moved(seen);
    const ended = endOf(seen);
    if (ended) metrics.count("millwright_rack_maintenance_total", ended);
  },
});

type Moved = Parameters<EngineObserver["moved"]>[0];

/** Most end with a run; a rack whose run is lost ends by itself. */
function endOf({ kind, from, to, thing }: Moved): { readonly trigger: string; readonly outcome: string } | undefined {
  if (kind === "rack")
    return (from === "maintenance" || from === "validating") && to === "error"
      ? { trigger: triggerOf(thing), outcome: "lost" }
      : undefined;
  if (kind !== "run") return undefined;
  const { plan, target } = thing as RunThing;
  const outcome = OUTCOMES[plan.workflow ?? ""]?.[to];
  return outcome === undefined ? undefined : { trigger: triggerOf(target.thing), outcome };
}

const triggerOf = (rack: Thing | null): string => (rack as Rack | null)?.facts.workSet?.trigger ?? "unknown";

/** Racks that wait to begin, by why; and those whose failures count. */
export const collectRackAdmission =
  (db: Queryable): Collect =>
  async () => {
    const [waiting, failed] = await Promise.all([countRacksToAdmit(db), listRacksFailedByThemselves(db)]);
    return {
      millwright_racks_waiting_for_maintenance: waiting.map(({ cause, racks }) => ({
        labels: { cause },
        value: racks,
      })),
      millwright_racks_failed_by_themselves: [{ labels: {}, value: failed.length }],
    };
  };
