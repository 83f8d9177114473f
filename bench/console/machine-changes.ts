import { setTimeout as pause } from "node:timers/promises";
import { recordChanges } from "../../src/store/lifecycle/changes.ts";
import { lockThings } from "../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../src/store/lifecycle/things.ts";
import type { Database } from "../../src/store/postgres/database.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { sharedNow } from "../watchers.ts";

interface Changes {
  readonly ids: readonly string[];
  readonly perSecond: number;
  readonly count: number;
}

/** As many in one transaction as keeps the pace: at 50 a second each has its own. */
const TRANSACTIONS_PER_SECOND = 50;

/** Changes the slots of machines, one after the other and steadily; returns when the COMMIT of each was sent. */
export async function changeMachines(db: Database, { ids, perSecond, count }: Changes): Promise<number[]> {
  const sentAt: number[] = [];
  const writing: Promise<void>[] = [];
  const each = Math.max(1, perSecond / TRANSACTIONS_PER_SECOND);
  const startedAt = performance.now();
  for (let n = 0; n < count; n += each) {
    await pause(Math.max(0, startedAt + (n * 1_000) / perSecond - performance.now()));
    const numbers = Array.from({ length: each }, (_, index) => n + index);
    writing.push(
      db.transaction(async (tx) => {
        const changed = numbers.map((number) => ({ number, id: ids[number % ids.length] ?? "" }));
        await lockThings(
          tx,
          changed.map(({ id }) => ({ kind: "machine", id })),
        );
        await recordChanges(
          tx,
          storeOf(allStores, "machine"),
          changed.map(({ id, number }) => ({ id, type: "spec_changed", actor: "bench", set: { slot: `n=${number}` } })),
        );
        for (const number of numbers) sentAt[number] = sharedNow();
      }),
    );
  }
  await Promise.all(writing);
  return sentAt;
}
