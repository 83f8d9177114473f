import { setTimeout as sleep } from "node:timers/promises";
import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import { recordChanges } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { listActiveIds } from "../../store/run/runs.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";

const KIND = "run";
const AT_ONCE = 500;
const LOOK_EVERY: Duration = milliseconds(100);

/**
 * Asks every active run to stop, whichever replica works on it, and returns which they are. Those that somebody has asked already
 * are among them.
 */
export async function cancelActiveRuns(deps: ServiceDeps): Promise<readonly string[]> {
  const active = await listActiveIds(deps.db);
  for (let from = 0; from < active.length; from += AT_ONCE) {
    const keys = active.slice(from, from + AT_ONCE).map((id) => ({ kind: KIND, id }));
    await deps.db.transaction(async (tx) => {
      await lockThings(tx, keys);
      const ids = await listActiveIds(tx, { ids: keys.map(({ id }) => id), notCanceled: true });
      const cancelRequestedAt = nowOf(deps);
      await recordChanges(
        tx,
        storeOf(deps.stores, KIND),
        ids.map((id) => ({
          id,
          actor: "shutdown",
          type: "cancel_requested",
          reason: "the server is being stopped, and is set to cancel runs then",
          set: { cancel_requested_at: cancelRequestedAt },
        })),
      );
      await work.wake(
        tx,
        ids.map((id) => ({ kind: KIND, id })),
      );
    });
  }
  return active;
}

/** Waits until they have ended, at most so long. Returns those that have not: whoever starts next ends them. */
export async function untilRunsEnded(
  deps: ServiceDeps,
  ids: readonly string[],
  within: Duration,
): Promise<readonly string[]> {
  const deadline = performance.now() + within;
  for (let left = ids; ; ) {
    left = left.length === 0 ? left : await listActiveIds(deps.db, { ids: left });
    if (left.length === 0 || performance.now() > deadline) return left;
    await sleep(LOOK_EVERY);
  }
}
