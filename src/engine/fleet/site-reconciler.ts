import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { CallContext } from "../../capabilities/call.ts";
import type { Maas, MaasTarget } from "../../capabilities/fleet/maas.ts";
import type { MaasMachine } from "../../capabilities/fleet/maas-machine.ts";
import { follow } from "../../kernel/decide.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import { DRIFT_REASONS } from "../../lifecycles/fleet-node/drift.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { fleetNodeStore } from "../../store/fleet/nodes.ts";
import { listUnchanged, listWatchedNodes, putObservations, type WatchedNode } from "../../store/fleet/observations.ts";
import { type ClaimedSite, claimSites, holdsSite, releaseSite } from "../../store/fleet/site-watches.ts";
import { commitUnits } from "../../store/lifecycle/commit/commit-units.ts";
import type { Unit } from "../../store/lifecycle/commit/unit.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { ThingStores } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { type Database, retryOnConflict } from "../../store/postgres/database.ts";
import { isLedOn, isNewlyAbsent, isTooMuch, type Judged, judgedAs, judgeNode } from "./judge-nodes.ts";

/** Where the MAAS of a site is, and what the site says of it. */
export interface WatchedSite {
  readonly maas: Pick<Maas, "listMachines" | "findMachine" | "readUser">;
  readonly target: MaasTarget;
  readonly retainsMachines: boolean;
}

/** What is told for metrics. */
export interface SitesObserver {
  listed(seen: { readonly outcome: "answered" | "failed" | "overtaken" | "doubted"; readonly took: Duration }): void;
}

export interface SiteReconcilerOptions {
  readonly db: Database;
  readonly stores: ThingStores;
  readonly log: Log;
  /** @throws where the site is gone, disabled or has no key */
  readonly siteOf: (name: string) => Promise<WatchedSite>;
  /** How often the machines of a site are listed, while MAAS answers quickly. */
  readonly interval: Duration;
  /**
   * Begins the next attempt at the job of an enrolling node whose machine people have led on: it adopts what MAAS shows. Asked again for the
   * same run it does nothing.
   */
  readonly adopt: (nodeId: string, failedRun: string) => Promise<void>;
  readonly owner?: string;
  readonly clock?: Clock;
  readonly observer?: SitesObserver;
}

const ACTOR = "fleet reconciler";
const IDLE_POLL = seconds(1);
/** Sites at the same time. */
const MOST_SITES = 4;
/** A region with very many machines takes its time. */
const LONGEST_LISTING = seconds(40);
/** From the claim on: the listing, and the reads that confirm what it left out. */
const LEASE = seconds(60);
/** A region that takes a second to list its machines is asked at most every ten. */
const REST_PER_EFFORT = 10;
/** Read one by one in a pass, however many a listing left out; the others follow in the next. */
const MOST_CONFIRMED = 10;
const WRITTEN_TOGETHER = 250;
const LONGEST_FAILURE = 500;

/**
 * Compares the nodes of each site with what its MAAS shows: one listing a site and interval, however many nodes there are. What has
 * changed is recorded; a node whose machine is not what it should be is quarantined, where the table has that row.
 *
 * The database says which site is due, and leases it, so that any number of replicas share the sites.
 */
export class SiteReconciler {
  readonly #options: Required<SiteReconcilerOptions>;
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: SiteReconcilerOptions) {
    this.#options = { owner: randomUUID(), clock: systemClock, observer: { listed() {} }, ...options };
  }

  /** Runs until the signal aborts; then hands its sites back, and resolves. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    while (!signal.aborted) {
      await this.#claim(signal).catch((error: unknown) => {
        log.warn({ err: error }, "sites could not be claimed; trying again");
      });
      await pause(IDLE_POLL, undefined, { signal }).catch(() => undefined);
    }
    await Promise.all(this.#underWay);
  }

  async #claim(signal: AbortSignal): Promise<void> {
    const { db, owner } = this.#options;
    const limit = MOST_SITES - this.#underWay.size;
    if (limit < 1) return;
    for (const site of await claimSites(db, { owner, limit, leaseFor: LEASE })) {
      const watching = this.#watch(site, signal).finally(() => {
        this.#underWay.delete(watching);
      });
      this.#underWay.add(watching);
    }
  }

  async #watch(claimed: ClaimedSite, signal: AbortSignal): Promise<void> {
    const { db, clock, log, interval, observer } = this.#options;
    const startedAt = clock.monotonic();
    const since = () => milliseconds(clock.monotonic() - startedAt);
    try {
      const call = this.#frame(claimed.site, startedAt, signal);
      const site = await this.#options.siteOf(claimed.site);
      // Before the listing: a node that is bound meanwhile may be none that MAAS had by then.
      const nodes = await listWatchedNodes(db, claimed.site);
      const machines = await site.maas.listMachines(site.target, {}, call);
      const took = since();
      const judged = await this.#judge(site, { nodes, machines, call });
      const isDoubted = isTooMuch(judged);
      if (isDoubted)
        log.warn(
          { site: claimed.site, nodes: nodes.length },
          "more than half of a site's nodes would be quarantined at once; MAAS is not believed, and nobody is",
        );
      if (!isDoubted) await this.#adopt(judged);
      const isOurs = await this.#write(claimed, isDoubted ? judged.map(withoutQuarantine) : judged);
      observer.listed({ outcome: !isOurs ? "overtaken" : isDoubted ? "doubted" : "answered", took });
      const after = milliseconds(Math.max(interval - took, took * REST_PER_EFFORT));
      await releaseSite(db, { ...claimed, after, listed: { machines: machines.length, ago: since() } });
    } catch (error) {
      const failure = messageOf(error).slice(0, LONGEST_FAILURE);
      const after = signal.aborted ? milliseconds(0) : interval;
      if (!signal.aborted) {
        observer.listed({ outcome: "failed", took: since() });
        log.warn(
          { site: claimed.site, reason: failure },
          "the machines of a site cannot be listed; what is known stays",
        );
      }
      // Else its lease ends by itself.
      await releaseSite(db, { ...claimed, after, listed: { failure } }).catch(() => undefined);
    }
  }

  /** Before the observation is written: who dies in between leaves it to be found again. */
  async #adopt(judged: readonly Judged[]): Promise<void> {
    const { adopt, log } = this.#options;
    for (const { nodeId, idleRun } of judged.filter(isLedOn)) {
      if (idleRun === null) continue;
      try {
        await adopt(nodeId, idleRun);
        log.info({ node: nodeId, run: idleRun }, "people have led a machine on in MAAS; the job of its node adopts it");
      } catch (error) {
        // An operator was quicker, or the job takes no attempt now: it stays where people see it.
        log.warn({ node: nodeId, run: idleRun, reason: messageOf(error) }, "what MAAS shows was not adopted");
      }
    }
  }

  #frame(site: string, startedAt: number, signal: AbortSignal): CallContext {
    const { clock } = this.#options;
    return {
      signal,
      subject: `machines of fleet site ${site}`,
      mayTouchDevice: (wanted) =>
        milliseconds(Math.max(1, Math.min(wanted, startedAt + LONGEST_LISTING - clock.monotonic()))),
    };
  }

  /** Of a machine that is not in the list, nothing is said until MAAS itself has said that there is none. */
  async #judge(
    { maas, target, retainsMachines }: WatchedSite,
    seen: {
      readonly nodes: readonly WatchedNode[];
      readonly machines: readonly MaasMachine[];
      readonly call: CallContext;
    },
  ): Promise<Judged[]> {
    const { nodes, call } = seen;
    const machines = new Map(seen.machines.map((machine) => [machine.systemId, machine]));
    const doubtful = nodes.filter((node) => isNewlyAbsent(node, machines.get(node.systemId)));
    const unproven = new Set(doubtful.map(({ id }) => id));
    // A key that is no administrator's sees a part of the machines alone.
    if (doubtful.length > 0 && (await maas.readUser(target, call)).isAdmin)
      for (const { id, systemId } of doubtful.slice(0, MOST_CONFIRMED)) {
        const found = await maas.findMachine(target, systemId, call);
        if (found) machines.set(systemId, found);
        unproven.delete(id);
      }
    return nodes
      .filter(({ id }) => !unproven.has(id))
      .map((node) => judgeNode(node, machines.get(node.systemId), retainsMachines));
  }

  /** Only what is new. Returns whether the site was still ours. */
  async #write(claimed: ClaimedSite, judged: readonly Judged[]): Promise<boolean> {
    const changed = judged.filter(({ isNew, drift }) => isNew || drift.is === "quarantine");
    for (let from = 0; from < changed.length; from += WRITTEN_TOGETHER) {
      const part = changed.slice(from, from + WRITTEN_TOGETHER);
      const isOurs = await retryOnConflict(() => this.#writePart(claimed, part));
      if (!isOurs) return false;
    }
    return true;
  }

  #writePart(claimed: ClaimedSite, part: readonly Judged[]): Promise<boolean> {
    const { db, stores } = this.#options;
    const { kind } = fleetNodeLifecycle;
    return db.transaction(async (tx) => {
      await lockThings(
        tx,
        part.map(({ nodeId: id }) => ({ kind, id })),
      );
      if (!(await holdsSite(tx, claimed))) return false;
      // What a job or a person did since the listing, the listing does not know.
      const unchanged = await listUnchanged(
        tx,
        part.map(({ node }) => node),
      );
      const current = part.filter(({ nodeId }) => unchanged.has(nodeId));
      await putObservations(
        tx,
        claimed.site,
        current.filter(({ isNew }) => isNew),
      );
      // A job that waits for its machine looks at once, in place of at its next time.
      await work.wake(
        tx,
        current.flatMap(({ node, isNew }) =>
          isNew && node.hasActiveRun && node.lastRun !== null ? [{ kind: "run", id: node.lastRun }] : [],
        ),
      );
      const drifting = new Map(
        current.flatMap((each) => (each.drift.is === "quarantine" ? [[each.nodeId, each]] : [])),
      );
      const { things } = await fleetNodeStore.load(tx, [...drifting.keys()]);
      const units = things.flatMap((node): Unit[] => {
        const drift = drifting.get(node.id)?.drift;
        if (drift?.is !== "quarantine") return [];
        const happening = { message: DRIFT_REASONS[drift.reason], data: { reason: drift.reason } };
        const move = follow(fleetNodeLifecycle, node, { owner: "other", name: "drift_found", ...happening });
        return move ? [{ kind, thing: node, facts: {}, actor: ACTOR, move }] : [];
      });
      await commitUnits(tx, stores, units);
      return true;
    });
  }
}

/** Told, and nothing more. */
const withoutQuarantine = (judged: Judged): Judged =>
  judged.drift.is === "quarantine" ? judgedAs(judged, { ...judged.drift, is: "report" }) : judged;
