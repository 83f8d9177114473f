import { runSilence } from "../../engine/fleet/silence.ts";
import { SiteReconciler } from "../../engine/fleet/site-reconciler.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { adoptLedOn } from "../../services/fleet/node-actions.ts";
import { countDrift, countFleetJobs } from "../../store/fleet/observations.ts";
import { measureAgents } from "../../store/fleet/silence.ts";
import { measureWatches } from "../../store/fleet/site-watches.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { Collect } from "../../telemetry/metrics.ts";
import { observeSites } from "../../telemetry/observers.ts";
import type { EngineWiring } from "../engine.ts";
import type { RunParts } from "../run-deps.ts";
import { storesOf } from "../things/all-things.ts";
import { maasOfSite } from "./fleet-parts.ts";

type Loop = (signal: AbortSignal) => Promise<void>;

/** What compares nodes with what is seen of them. */
export function fleetLoops(wiring: EngineWiring, runs: RunParts): Readonly<Record<string, Loop>> {
  const { db, secrets, log, clock, replica, config, metrics, things, maas } = wiring;
  const stores = storesOf(things);
  const silence = { db, log, stores, offlineAfter: config.fleet.offlineAfter };
  const ofAgents = { fleet_silence: (signal: AbortSignal) => runSilence(silence, signal) };
  if (!maas) return ofAgents;
  const deps = { ...runs, ...{ db, secrets, clock, stores }, maxFindByIds: 1 };
  const sites = new SiteReconciler({
    ...{ db, log, clock, owner: replica, stores },
    interval: config.fleet.reconcileInterval,
    observer: observeSites(metrics),
    siteOf: (name) => maasOfSite(wiring, name),
    adopt: (node, failedRun) => adoptLedOn(deps, node, failedRun),
  });
  return { ...ofAgents, fleet_sites: (signal) => sites.run(signal) };
}

/** What only the database knows of nodes, their jobs and what MAAS shows of them. */
export const collectFleet =
  (db: Queryable, { offlineAfter }: { readonly offlineAfter: Duration }): Collect =>
  async () => {
    const [watches, drift, jobs, agents] = await Promise.all([
      measureWatches(db),
      countDrift(db),
      countFleetJobs(db),
      measureAgents(db, offlineAfter),
    ]);
    const ages = Map.groupBy(agents, ({ state }) => state);
    return {
      millwright_fleet_agents: agents.map(({ state, heard, agents: value }) => ({ labels: { state, heard }, value })),
      millwright_fleet_heartbeat_age_seconds: [...ages].map(([state, of]) => ({
        labels: { state },
        value: Math.max(...of.map(({ oldestSeconds }) => oldestSeconds)),
      })),
      millwright_fleet_observation_age_seconds: [{ labels: {}, value: watches.ageSeconds }],
      millwright_fleet_sites_failing: [{ labels: {}, value: watches.failing }],
      millwright_fleet_drift: drift.map(({ drift: reason, nodes }) => ({ labels: { reason }, value: nodes })),
      millwright_fleet_jobs: jobs.map(({ workflow, state, nodes }) => ({ labels: { workflow, state }, value: nodes })),
    };
  };
