import { type Batcher, createBatcher, partsByWeight, runInHalves } from "../kernel/batcher.ts";
import { messageOf } from "../kernel/errors.ts";
import { type Duration, milliseconds, seconds } from "../kernel/time/duration.ts";
import { pauseBefore, retrying } from "../kernel/time/retry.ts";
import type { Wait } from "../store/lifecycle/claims/claims.ts";
import { commitUnits } from "../store/lifecycle/commit/commit-units.ts";
import type { Unit } from "../store/lifecycle/commit/unit.ts";
import type { UnitResult } from "../store/lifecycle/commit/unit-result.ts";
import { touchedBy } from "../store/lifecycle/commit/waves.ts";
import { readLockBudget } from "../store/lifecycle/locks.ts";
import { nameOf, type ThingKey, type ThingStores } from "../store/lifecycle/things.ts";
import * as work from "../store/lifecycle/work.ts";
import { type Database, retryOnConflict } from "../store/postgres/database.ts";
import { isDatabaseTrouble } from "../store/postgres/database-errors.ts";
import { failPoint } from "../store/postgres/fail-points.ts";

/** What becomes of the lease once the unit is written; absent: it is kept, and the pass goes on. */
export interface Submission {
  readonly claimed: work.ClaimedWork;
  /** Absent when nothing changed: then only the lease is released. */
  readonly unit?: Unit;
  readonly release?: Omit<work.Release, "kind" | "id" | "epoch">;
  /** Also when nothing could be written: a stream goes on under it, and has to end before it is given back. */
  readonly keepsLease?: boolean;
}

export type Submitted = UnitResult | { readonly type: "quarantined"; readonly error: string };

export interface CommitterOptions {
  readonly db: Database;
  readonly stores: ThingStores;
  readonly most: number;
  readonly atOnce: number;
  /** While a claim is waited for, the thing gets a pass this often, should the wake-up be lost. */
  readonly claimRecheck: Duration;
  /** A thing whose lease was released needs another pass at once: it changed, or was woken, while it was being handled. */
  readonly onDue: () => void;
}

export type Committer = Batcher<Submission, Submitted>;

const COMMITTED: Submitted = { type: "committed" };
const AT_ONCE = milliseconds(0);
/** For things that others change again and again during their passes: each pass without success is work for the device as well. */
const CONTENDED = { first: milliseconds(20), most: seconds(2) };
/** For things that are to move another one, which somebody else works on: nobody says when that one is free again. */
const BARRED = { first: seconds(1), most: seconds(30) };

/**
 * Writes the outcomes of many passes in one transaction, or in a few where they lock more things than one transaction should. A batch
 * that fails on its data is repeated by halves; a unit that fails alone is set aside with its error, and never holds up its neighbours.
 */
export function createCommitter(options: CommitterOptions): Committer {
  const tries = new Tries();
  const { db, stores } = options;
  let budget: number | undefined;
  const write = (part: readonly Submission[]) =>
    runInHalves<Submission, Submitted>(part, {
      run: async (some) => {
        const results = await retryOnConflict(() => commit(options, tries, some));
        for (const [index, { claimed }] of some.entries()) tries.note(claimed, results[index]);
        return results;
      },
      isOfTheItem: (error) => !isDatabaseTrouble(error),
      alone: (one, error) => quarantine(options, one, error),
    });
  const run = async (batch: readonly Submission[]): Promise<Submitted[]> => {
    budget ??= await readLockBudget(db);
    const answers: Submitted[] = [];
    for (const part of partsByWeight(batch, budget, (one) => locksOf(stores, one)))
      answers.push(...(await write(part)));
    return answers;
  };
  return createBatcher({ most: options.most, atOnce: options.atOnce, run });
}

function locksOf(stores: ThingStores, { unit }: Submission): number {
  if (!unit) return 0;
  const { written, read } = touchedBy(stores, unit);
  return new Set([...written, ...read].map(nameOf)).size;
}

const isTriedAgain = (result: Submitted | undefined): boolean =>
  result?.type === "conflict" || (result?.type === "waiting" && result.moving !== undefined);

/** Commits in a row that came to nothing, by thing. Only those whose last one did are in it. */
class Tries {
  readonly #counts = new Map<string, number>();

  note(thing: ThingKey, result: Submitted | undefined): void {
    if (isTriedAgain(result)) this.#counts.set(nameOf(thing), this.#of(thing) + 1);
    else this.#counts.delete(nameOf(thing));
  }

  /** After the first conflict the next pass comes at once, since the change is most likely why; then after growing pauses. */
  pauseAfterConflict(thing: ThingKey): Duration {
    const before = this.#of(thing);
    return before === 0 ? AT_ONCE : pauseBefore(before, CONTENDED);
  }

  pauseWhileBarred(thing: ThingKey): Duration {
    return pauseBefore(this.#of(thing) + 1, BARRED);
  }

  #of(thing: ThingKey): number {
    return this.#counts.get(nameOf(thing)) ?? 0;
  }
}

async function commit(
  { db, stores, claimRecheck, onDue }: CommitterOptions,
  tries: Tries,
  batch: readonly Submission[],
): Promise<Submitted[]> {
  const withUnit = batch.filter((one) => one.unit !== undefined);
  // Those that changed nothing stay out of the transaction: its leases are locked in one order at its start, and more would
  // be locked after them, across whoever wakes many things at once.
  const unchanged = batch.filter((one) => one.unit === undefined);
  const dueAlready = await work.release(
    db,
    unchanged.flatMap((one) => releaseOf(one, COMMITTED, { claimRecheck, tries })),
  );
  if (dueAlready > 0) onDue();
  if (withUnit.length === 0) return batch.map(() => COMMITTED);
  const where = withUnit.map(({ unit }) => ({ kind: (unit as Unit).kind, state: (unit as Unit).thing.state.name }));
  failPoint("committer:before", where);
  const { written: results, due } = await db.transaction(async (tx) => {
    const written = await commitUnits(
      tx,
      stores,
      withUnit.map((one) => one.unit as Unit),
    );
    const due = await work.release(
      tx,
      withUnit.flatMap((one, index) => releaseOf(one, written[index] as Submitted, { claimRecheck, tries })),
    );
    failPoint("committer:inside", where);
    return { written, due };
  });
  failPoint("committer:after", where);
  if (due > 0) onDue();
  const byClaim = new Map(withUnit.map((one, index) => [one, results[index] as Submitted]));
  return batch.map((one) => byClaim.get(one) ?? COMMITTED);
}

function releaseOf(
  { claimed, release, keepsLease = false }: Submission,
  result: Submitted,
  { claimRecheck, tries }: { readonly claimRecheck: Duration; readonly tries: Tries },
): work.Release[] {
  const { kind, id, epoch, failures } = claimed;
  if (keepsLease && result.type !== "committed") return [];
  switch (result.type) {
    case "committed":
      return release ? [{ kind, id, epoch, ...release }] : [];
    case "conflict": // the next pass loads it as it now is
      return [{ kind, id, epoch, after: tries.pauseAfterConflict(claimed), failures, error: null }];
    case "waiting": {
      const after = result.moving ? tries.pauseWhileBarred(claimed) : recheckOf(result.for, claimRecheck);
      return [{ kind, id, epoch, after, failures: 0, error: null }];
    }
    default:
      return [];
  }
}

/** Releases wake whoever waits; that a bar has ended nobody says. */
const recheckOf = ({ untilBarEnds }: Wait, claimRecheck: Duration): Duration =>
  untilBarEnds === undefined ? claimRecheck : milliseconds(Math.min(claimRecheck, untilBarEnds));

async function quarantine(
  { db }: CommitterOptions,
  { claimed, keepsLease }: Submission,
  error: unknown,
): Promise<Submitted> {
  const { kind, id, epoch } = claimed;
  const failures = claimed.failures + 1;
  const message = `its outcome cannot be written: ${messageOf(error)}`;
  if (keepsLease) return { type: "quarantined", error: message };
  await work.release(db, [
    { kind, id, epoch, after: pauseBefore(failures, retrying), failures, error: message, cause: "quarantined" },
  ]);
  return { type: "quarantined", error: message };
}
