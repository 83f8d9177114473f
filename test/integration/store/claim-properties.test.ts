import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { type Duration, milliseconds, minutes } from "../../../src/kernel/time/duration.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { nameOf, type ThingKey } from "../../../src/store/lifecycle/things.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { retryOnConflict, type Transaction } from "../../../src/store/postgres/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/**
 * Sets of claims under random orders of everything that can happen to them, one after the other and all at once, against a real
 * database. A crash is a transaction that did its work and never committed.
 */
const THINGS = 5;
const CLAIMANTS = 6;

type Command =
  | {
      readonly type: "ask";
      readonly who: number;
      readonly set: readonly number[];
      readonly bars: Bars;
      crashes: boolean;
    }
  | { readonly type: "ask_again" | "release"; readonly who: number; readonly crashes: boolean }
  /** Its bar is over; it goes on waiting. */
  | { readonly type: "outwait"; readonly who: number }
  /** Something else works on one of its things on its behalf, or has done so. */
  | { readonly type: "delegate" | "delegate_ends"; readonly who: number; readonly thing: number };
type Bars = "given" | "default" | "never";

const who = fc.nat(CLAIMANTS - 1);
const crashes = fc.integer({ min: 0, max: 9 }).map((n) => n === 0);
const set = fc.uniqueArray(fc.nat(THINGS - 1), { minLength: 1, maxLength: 4 });
const bars = fc.constantFrom<Bars>("given", "given", "default", "never");
const ask = fc.record({ type: fc.constant("ask" as const), who, set, bars, crashes });
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: ask },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constantFrom("ask_again" as const, "release" as const), who, crashes }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("outwait" as const), who }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constantFrom("delegate" as const, "delegate_ends" as const),
      who,
      thing: fc.nat(THINGS - 1),
    }),
  },
);

const claimant = (n: number): ThingKey => ({ kind: "run", id: `r${n}` });
const delegate = (n: number): ThingKey => ({ kind: "chore", id: `of r${n}` });
const thing = (n: number): ThingKey => ({ kind: "widget", id: `w${n}` });
const BARS: Readonly<Record<Bars, { readonly barsFor?: Duration }>> = {
  given: { barsFor: minutes(5) },
  default: {},
  never: { barsFor: milliseconds(0) },
};

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => reset());
const reset = () => database.db.query("truncate claims, work restart identity");

class Crash extends Error {}
class Unlocked extends Error {}

/** In one transaction, under the locks of the claimant, of the things, and of all that it has: as the writer of states does it. */
async function underLocks<T>(
  key: ThingKey,
  things: readonly ThingKey[],
  { crashes: dies = false }: { readonly crashes?: boolean },
  body: (tx: Transaction, own: readonly claims.QueuedClaim[]) => Promise<T>,
): Promise<T | undefined> {
  for (;;) {
    try {
      return await retryOnConflict(() =>
        database.db.transaction(async (tx) => {
          const before = await claims.listOfClaimants(tx, [key]);
          const locked = [key, ...things, ...before.map((claim) => claim.thing)];
          await lockThings(tx, locked);
          const own = await claims.listOfClaimants(tx, [key]);
          const names = new Set(locked.map(nameOf));
          if (own.some((claim) => !names.has(nameOf(claim.thing)))) throw new Unlocked();
          const result = await body(tx, own);
          if (dies) throw new Crash();
          return result;
        }),
      );
    } catch (error) {
      if (error instanceof Crash) return undefined;
      if (!(error instanceof Unlocked)) throw error;
    }
  }
}

const works = ({ standing }: claims.QueuedClaim): boolean => standing !== "waiting";

/** Who works asks for nothing else: sets are taken when a state is entered, and kept until it is left. */
const askFor = (n: number, targets: readonly ThingKey[], given: Bars, options: { readonly crashes?: boolean } = {}) =>
  underLocks(claimant(n), targets, options, async (tx, own) => {
    if (own.some(works)) return;
    const wish = { targets, claimant: claimant(n), holder: claimant(n), reason: "work", ...BARS[given] };
    await claims.acquire(tx, [wish]);
  });

async function carryOut(given: Command): Promise<void> {
  const key = claimant(given.who);
  switch (given.type) {
    case "ask":
      return void (await askFor(given.who, given.set.map(thing), given.bars, given));
    case "ask_again":
      return void (await underLocks(key, [], given, async (tx, own) => {
        if (own.length === 0 || own.some(works)) return;
        const targets = own.map((claim) => claim.thing);
        const { barsFor } = own[0] as claims.QueuedClaim;
        const same = barsFor === null ? {} : { barsFor: milliseconds(barsFor) };
        await claims.acquire(tx, [{ targets, claimant: key, holder: key, reason: "work", ...same }]);
      }));
    case "release":
      return void (await underLocks(key, [], given, async (tx) => work.wake(tx, await claims.releaseAll(tx, [key]))));
    case "outwait":
      return void (await database.db.execute(
        `update claims set requested_at = requested_at - interval '1 hour', bars_until = bars_until - interval '1 hour'
          where holder_id = $1 and granted_at is null and joined_at is null`,
        [key.id],
      ));
    case "delegate":
      return void (await underLocks(delegate(given.who), [thing(given.thing)], {}, async (tx, own) => {
        const held = await claims.listOfClaimants(tx, [key]);
        const isHeld = held.some((claim) => works(claim) && claim.thing.id === thing(given.thing).id);
        if (own.length > 0 || !isHeld) return;
        const wish = { targets: [thing(given.thing)], claimant: delegate(given.who), holder: key, reason: "chore" };
        expect((await claims.acquire(tx, [wish])).size, "work on behalf of a holder never waits for it").toBe(0);
      }));
    case "delegate_ends":
      return void (await underLocks(delegate(given.who), [], {}, async (tx) =>
        work.wake(tx, await claims.releaseAll(tx, [delegate(given.who)])),
      ));
  }
}

const allClaims = () =>
  claims.listOfClaimants(database.db, Array.from({ length: CLAIMANTS }, (_, n) => [claimant(n), delegate(n)]).flat());

/** What holds whatever has happened. */
function check(rows: readonly claims.QueuedClaim[]): void {
  for (const [name, ofThing] of Map.groupBy(rows.filter(works), (row) => nameOf(row.thing))) {
    expect(new Set(ofThing.map(({ holder }) => nameOf(holder))).size, `${name} has one holder`).toBe(1);
    expect(
      ofThing.filter(({ standing }) => standing === "granted"),
      `${name} is granted once`,
    ).toHaveLength(1);
  }
  for (const [name, own] of Map.groupBy(rows, (row) => nameOf(row.claimant))) {
    expect(new Set(own.map(works)).size, `${name} has all of its set or nothing`).toBe(1);
    expect(new Set(own.map(({ setSize }) => setSize)), `${name} is in every queue of its set`).toEqual(
      new Set([own.length]),
    );
    expect(new Set(own.map(({ ticket }) => ticket)).size, `${name} has one ticket`).toBe(1);
  }
  // Whom each set waits for: who works, or has a lower ticket. Who works waits for nobody, so that there is no circle.
  for (const waiting of rows.filter((row) => !works(row)))
    for (const other of rows.filter((row) => nameOf(row.thing) === nameOf(waiting.thing) && row !== waiting))
      expect(works(other) || other.ticket !== waiting.ticket, "tickets are in one order").toBe(true);
}

/** Nobody was granted a thing that an earlier set keeps others from. */
function checkOrder(before: readonly claims.QueuedClaim[], after: readonly claims.QueuedClaim[]): void {
  const hadWorked = new Set(before.filter(works).map(({ claimant: key }) => nameOf(key)));
  const isStillThere = new Set(after.filter((row) => !works(row)).map(({ seq }) => seq));
  for (const granted of after.filter(
    ({ standing, claimant: key }) => standing === "granted" && !hadWorked.has(nameOf(key)),
  )) {
    const passed = before.filter(
      (row) =>
        !works(row) &&
        row.barsLeft > 0 &&
        row.ticket < granted.ticket &&
        nameOf(row.thing) === nameOf(granted.thing) &&
        nameOf(row.claimant) !== nameOf(granted.claimant) &&
        isStillThere.has(row.seq),
    );
    expect(passed, `${nameOf(granted.claimant)} passed a set that bars`).toEqual([]);
  }
}

/** Once nobody asks for anything new: whoever works ends, whoever is woken asks again, and nobody else does anything. */
async function letAllHaveTheirTurn(): Promise<void> {
  const waiting = new Set((await allClaims()).filter((row) => !works(row)).map((row) => nameOf(row.claimant)));
  for (let rounds = 0; waiting.size > 0; rounds += 1) {
    expect(rounds, `${[...waiting].join(", ")} would wait for ever`).toBeLessThan(4 * CLAIMANTS);
    const working = (await allClaims()).filter(works);
    for (const row of working) waiting.delete(nameOf(row.claimant));
    for (const key of new Map(working.map((row) => [nameOf(row.claimant), row.claimant])).values())
      await underLocks(key, [], {}, async (tx) => work.wake(tx, await claims.releaseAll(tx, [key])));
    const woken = await database.db.query<{ id: string }>("delete from work where kind = 'run' returning id");
    for (const { id } of woken) {
      await carryOut({ type: "ask_again", who: Number(id.slice(1)), crashes: false });
      check(await allClaims());
    }
  }
  for (const { claimant: key } of (await allClaims()).filter(works))
    await underLocks(key, [], {}, async (tx) => void (await claims.releaseAll(tx, [key])));
  expect(await allClaims()).toEqual([]);
}

test("random sets one after the other: whole or not at all, by ticket, and everybody gets a turn", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 40 }), async (commands) => {
      await reset();
      for (const each of commands) {
        const before = await allClaims();
        await carryOut(each);
        const after = await allClaims();
        check(after);
        checkOrder(before, after);
        if ("crashes" in each && each.crashes)
          expect(after.map(({ barsLeft: _, ...row }) => row)).toEqual(before.map(({ barsLeft: _, ...row }) => row));
      }
      await letAllHaveTheirTurn();
    }),
    { numRuns: 60 },
  );
}, 240_000);

test("random sets all at once: whole or not at all, and everybody gets a turn", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(command, { minLength: 2, maxLength: 8 }), { maxLength: 6 }), async (rounds) => {
      await reset();
      for (const round of rounds) {
        await Promise.all(round.map(carryOut));
        check(await allClaims());
      }
      await letAllHaveTheirTurn();
    }),
    { numRuns: 60 },
  );
}, 240_000);
