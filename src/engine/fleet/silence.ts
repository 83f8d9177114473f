import { setTimeout as pause } from "node:timers/promises";
import { follow } from "../../kernel/decide.ts";
import type { Log } from "../../kernel/log.ts";
import { type Duration, describeDuration, seconds } from "../../kernel/time/duration.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { fleetNodeStore } from "../../store/fleet/nodes.ts";
import { findHeard, findSilent } from "../../store/fleet/silence.ts";
import { commitUnits } from "../../store/lifecycle/commit/commit-units.ts";
import type { Unit } from "../../store/lifecycle/commit/unit.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { ThingStores } from "../../store/lifecycle/things.ts";
import { type Database, type Queryable, retryOnConflict } from "../../store/postgres/database.ts";

export interface SilenceOptions {
  readonly db: Database;
  readonly stores: ThingStores;
  readonly log: Log;
  /** A node that is silent for so long is offline. */
  readonly offlineAfter: Duration;
}

const ACTOR = "fleet reconciler";
const EVERY: Duration = seconds(2);
const MOVED_TOGETHER = 250;
const { kind } = fleetNodeLifecycle;

interface Rule {
  readonly trigger: "heartbeat_lost" | "heartbeat_recovered";
  readonly message: string;
  readonly find: (db: Queryable, options: { limit: number; among?: readonly string[] }) => Promise<string[]>;
}

/**
 * active → offline when the agent has been silent for too long, offline → active at its first healthy heartbeat. Two questions to the
 * database, however many nodes there are; every replica asks them, and what one of them has moved the others do not find any more.
 */
export async function runSilence(options: SilenceOptions, signal: AbortSignal): Promise<void> {
  const { log } = options;
  while (!signal.aborted) {
    try {
      while ((await judgeSilence(options)) === MOVED_TOGETHER) if (signal.aborted) return;
    } catch (error) {
      log.warn({ err: error }, "heartbeats could not be judged; trying again");
    }
    await pause(EVERY, undefined, { signal }).catch(() => undefined);
  }
}

/** Returns how many nodes it moved by the rule that moved more of them. */
async function judgeSilence({ db, stores, offlineAfter }: SilenceOptions): Promise<number> {
  const lost: Rule = {
    trigger: "heartbeat_lost",
    message: `its agent was silent for ${describeDuration(offlineAfter)}`,
    find: (on, which) => findSilent(on, { after: offlineAfter, ...which }),
  };
  const recovered: Rule = {
    trigger: "heartbeat_recovered",
    message: "its agent says that it is healthy",
    find: findHeard,
  };
  const moved = [];
  for (const rule of [lost, recovered]) moved.push(await apply(db, stores, rule));
  return Math.max(...moved);
}

async function apply(db: Database, stores: ThingStores, { trigger, message, find }: Rule): Promise<number> {
  const ids = await find(db, { limit: MOVED_TOGETHER });
  if (ids.length === 0) return 0;
  await retryOnConflict(() =>
    db.transaction(async (tx) => {
      await lockThings(
        tx,
        ids.map((id) => ({ kind, id })),
      );
      // Another replica, or a heartbeat, may have been quicker.
      const still = await find(tx, { limit: MOVED_TOGETHER, among: ids });
      const { things } = await fleetNodeStore.load(tx, still);
      const units = things.flatMap((node): Unit[] => {
        const move = follow(fleetNodeLifecycle, node, { owner: "other", name: trigger, message });
        return move ? [{ kind, thing: node, facts: {}, actor: ACTOR, move }] : [];
      });
      await commitUnits(tx, stores, units);
    }),
  );
  return ids.length;
}
