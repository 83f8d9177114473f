import { machineLifecycle } from "../lifecycles/machine/lifecycle.ts";
import { countContestedBoots } from "../store/install/contested-boots.ts";
import { horizonAge } from "../store/lifecycle/journal.ts";
import { countStates, measureClaimWaits, measureRequests, workDepth } from "../store/lifecycle/measurements.ts";
import type { ThingStores } from "../store/lifecycle/things.ts";
import { countTroubles } from "../store/lifecycle/troubles.ts";
import { countBanners, countMachineTroubles } from "../store/machine/conditions.ts";
import type { Queryable } from "../store/postgres/database.ts";
import { countParkedByKind } from "../store/restore/parked.ts";
import { findLiveReview } from "../store/restore/reviews.ts";
import type { Collect } from "../telemetry/metrics.ts";

/** The gauges that only the database knows: things by state, above SLA, in trouble, requested, waiting for claims, conditions of machines, work depth, contested boots, age of the journal's horizon. */
export function createFleetCollector({
  db,
  stores,
}: {
  readonly db: Queryable;
  readonly stores: ThingStores;
}): Collect {
  return async () => {
    const kinds = [...stores.keys()];
    const [states, troubles, machineTroubles, requests, depths, waits, conditions, contested, horizon, review, parked] =
      await Promise.all([
        Promise.all(
          [...stores].map(async ([kind, store]) => (await countStates(db, store)).map((count) => ({ kind, ...count }))),
        ),
        Promise.all(
          [...stores].map(async ([kind, store]) =>
            (await countTroubles(db, store)).map((count) => ({ kind, ...count })),
          ),
        ),
        countMachineTroubles(db),
        Promise.all(
          [...stores].map(async ([kind, store]) =>
            (await measureRequests(db, store)).map((pending) => ({ kind, ...pending })),
          ),
        ),
        workDepth(db, kinds),
        measureClaimWaits(db, kinds),
        countBanners(db),
        countContestedBoots(db),
        horizonAge(db),
        findLiveReview(db),
        countParkedByKind(db),
      ]);
    const counts = states.flat();
    const inTrouble = troubles.flat();
    const failingIn = (kind: string, state: string): number =>
      inTrouble
        .filter((count) => count.kind === kind && count.state === state && count.trouble !== "failed")
        .reduce((sum, { things }) => sum + things, 0);
    return {
      millwright_things: counts.map(({ kind, state, things }) => ({ labels: { kind, state }, value: things })),
      millwright_things_above_sla: counts.map(({ kind, state, aboveSla }) => ({
        labels: { kind, state },
        value: aboveSla,
      })),
      millwright_things_failing: counts.map(({ kind, state }) => ({
        labels: { kind, state },
        value: failingIn(kind, state),
      })),
      millwright_things_in_trouble: summed([
        ...inTrouble,
        ...machineTroubles.map((count) => ({ kind: machineLifecycle.kind, ...count })),
      ]),
      millwright_machine_conditions: conditions.map(({ condition, machines }) => ({
        labels: { condition },
        value: machines,
      })),
      millwright_requests_pending: requests
        .flat()
        .map(({ kind, request, things }) => ({ labels: { kind, request }, value: things })),
      millwright_requests_oldest_pending_seconds: requests
        .flat()
        .map(({ kind, request, oldestSeconds }) => ({ labels: { kind, request }, value: oldestSeconds })),
      millwright_things_waiting_for_claims: waits.map(({ kind, things }) => ({ labels: { kind }, value: things })),
      millwright_claims_oldest_wait_seconds: waits.map(({ kind, oldestSeconds }) => ({
        labels: { kind },
        value: oldestSeconds,
      })),
      millwright_boots_contested: [{ labels: {}, value: contested }],
      millwright_work_due: depths.map(({ kind, due }) => ({ labels: { kind }, value: due })),
      millwright_work_leased: depths.map(({ kind, leased }) => ({ labels: { kind }, value: leased })),
      millwright_work_oldest_due_seconds: depths.map(({ kind, oldestDueSeconds }) => ({
        labels: { kind },
        value: oldestDueSeconds,
      })),
      millwright_restore_review: [{ labels: {}, value: review ? 1 : 0 }],
      millwright_restore_parked: kinds.map((kind) => ({
        labels: { kind },
        value: parked.find((one) => one.kind === kind)?.things ?? 0,
      })),
      millwright_journal_horizon_age_seconds: [{ labels: {}, value: horizon }],
    };
  };
}

interface InTrouble {
  readonly kind: string;
  readonly trouble: string;
  readonly rack: string;
  readonly cause: string;
  readonly things: number;
}

/** Things of several states that are in the same trouble are one series. */
function summed(counts: readonly InTrouble[]) {
  const series = new Map<string, { labels: Omit<InTrouble, "things">; value: number }>();
  for (const { kind, trouble, rack, cause, things } of counts) {
    const labels = { kind, trouble, rack, cause };
    const key = JSON.stringify(labels);
    series.set(key, { labels, value: (series.get(key)?.value ?? 0) + things });
  }
  return [...series.values()];
}
