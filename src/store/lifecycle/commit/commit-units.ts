import { changesState } from "../../../kernel/decide.ts";
import { GONE } from "../../../kernel/lifecycle.ts";
import type { Transaction } from "../../postgres/database.ts";
import { failPoint } from "../../postgres/fail-points.ts";
import { admit } from "../admission.ts";
import * as claims from "../claims/claims.ts";
import { findDisturbing } from "../claims/in-use.ts";
import { endsClaims, waitingUnit, wishOf } from "../claims/wishes.ts";
import { applyEffects, reacting } from "../effects/apply-effects.ts";
import { findEffectClaims, takeEffectClaims } from "../effects/effect-claims.ts";
import { type EffectPlan, findUnmet, planEffects } from "../effects/plan-effects.ts";
import * as journal from "../journal.ts";
import { lockThings } from "../locks.ts";
import { findAwaiting } from "../relations.ts";
import { nameOf, storeOf, type ThingStores } from "../things.ts";
import * as work from "../work.ts";
import { endUnheard } from "./end-requests.ts";
import { changesOf, isGone, keyOf, type Unit } from "./unit.ts";
import type { UnitResult, Waiting } from "./unit-result.ts";
import { findTouched, touchedBy, wavesOf, wokenBy } from "./waves.ts";
import { type WrittenThings, writeThings } from "./write-things.ts";

const COMMITTED: UnitResult = { type: "committed" };
const CONFLICT: UnitResult = { type: "conflict" };
const FENCED: UnitResult = { type: "fenced" };

/** The only writer of states: locks all things, compares their bases, writes state + history + event + wake-ups of many units. */
export async function commitUnits(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<UnitResult[]> {
  const touched = await findTouched(tx, stores, units);
  const locked = [...touched.values()].flatMap(({ written, read }) => [...written, ...read]);
  await lockThings(tx, locked);
  const results = new Map<Unit, UnitResult>();
  const held = { names: new Set(locked.map(nameOf)), leases: await fence(tx, stores, units) };
  for (const wave of wavesOf(touched))
    for (const [unit, result] of await commitWave(tx, stores, wave, held)) results.set(unit, result);
  return units.map((unit) => results.get(unit) ?? COMMITTED);
}

/** What the transaction holds: the things by their names, and the leases that are still ours. */
interface Held {
  readonly names: ReadonlySet<string>;
  readonly leases: ReadonlySet<string>;
}

async function fence(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<ReadonlySet<string>> {
  const leased = units.flatMap((unit) => (unit.lease ? [{ ...keyOf(unit), epoch: unit.lease.epoch }] : []));
  const woken = units.flatMap((unit) => wokenBy(stores, unit));
  return new Set((await work.fence(tx, leased, woken)).map(nameOf));
}

/** The results of those units that were not written, and of passes that entered a state; all others were written. */
async function commitWave(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  held: Held,
): Promise<Map<Unit, UnitResult>> {
  const results = await findUncommittable(tx, stores, units, held);
  const isAlive = (unit: Unit) => !results.has(unit);
  for (const unit of await findUnmet(tx, stores, units.filter(isAlive))) results.set(unit, CONFLICT);
  const planned = units.filter(isAlive);
  const wanted = await planEffects(tx, stores, planned);
  await lockMore(tx, stores, wanted, held);
  const { refused, admitted } = await admit(tx, stores, planned, wanted);
  const isRefused = (unit: Unit) => refused.has(unit);
  const plans = new Map([...wanted].filter(([unit]) => !isRefused(unit)));
  const claiming = planned.filter((unit) => !isRefused(unit));
  const waiting = await takeClaims(tx, stores, claiming, plans);
  // Somebody who must wait for claims leaves a place free: those that were refused for it are tried again.
  const isTriedAgain = [...admitted].some((unit) => waiting.has(unit));
  for (const [unit, result] of refused)
    if (isTriedAgain) results.set(unit, CONFLICT);
    else waiting.set(unit, result);
  const alive = planned.filter(isAlive);
  for (const [unit, { impossible }] of plans) if (impossible && !waiting.has(unit)) throw impossible;
  for (const [unit, result] of waiting) results.set(unit, result);
  failPoint("transitions:locked", placesOf(units, plans));

  const since = await write(tx, stores, alive, waiting, plans);
  for (const unit of alive) {
    const hasEntered = unit.lease !== undefined && unit.move !== undefined && changesState(unit.thing, unit.move);
    const stateSince = hasEntered && !waiting.has(unit) ? since.get(nameOf(keyOf(unit))) : undefined;
    if (stateSince) results.set(unit, { type: "committed", stateSince });
  }
  return results;
}

/** What is to be locked with a thing is known once it is loaded; with most it is the thing alone. */
async function lockMore(
  tx: Transaction,
  stores: ThingStores,
  plans: ReadonlyMap<Unit, EffectPlan>,
  { names }: Held,
): Promise<void> {
  const needed = [...plans.values()].flatMap(({ changes }) =>
    changes.flatMap((change) => touchedBy(stores, change).written),
  );
  await lockThings(
    tx,
    needed.filter((key) => !names.has(nameOf(key))),
  );
}

const placesOf = (units: readonly Unit[], plans: ReadonlyMap<Unit, EffectPlan>) =>
  [...units, ...[...plans.values()].flatMap(({ changes }) => changes)].map(({ kind, thing }) => ({
    kind,
    state: thing.state.name,
  }));

/** Units whose lease was lost or whose thing changed since it was loaded. */
async function findUncommittable(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  { leases }: Held,
): Promise<Map<Unit, UnitResult>> {
  const results = new Map<Unit, UnitResult>();
  for (const [kind, ofKind] of groupByKind(units)) {
    const rows = await tx.query<{ id: string; basis: number }>({
      hot: true,
      text: `select id, basis from ${storeOf(stores, kind).table} where id = any($1)`,
      values: [ofKind.map((unit) => unit.thing.id)],
    });
    const bases = new Map(rows.map((row) => [row.id, row.basis]));
    for (const unit of ofKind) {
      if (unit.lease && !leases.has(nameOf(keyOf(unit)))) results.set(unit, FENCED);
      else if (bases.get(unit.thing.id) !== unit.thing.basis) results.set(unit, CONFLICT);
    }
  }
  return results;
}

/** Those of the units that must wait for claims, their own or those of what they move. Within a wave no two sets have a thing in common. */
async function takeClaims(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  plans: ReadonlyMap<Unit, EffectPlan>,
): Promise<Map<Unit, Waiting>> {
  const ofEffects = await findEffectClaims(tx, stores, plans);
  const waiting = new Map(ofEffects.waiting);
  const wishes = new Map(
    units.flatMap((unit) => {
      const wish = waiting.has(unit) ? undefined : wishOf(stores, plans.get(unit)?.unit ?? unit);
      return wish ? [[wish, unit]] : [];
    }),
  );
  const disturbing = await findDisturbing(tx, stores, [...wishes.keys()]);
  for (const [wish, inUse] of disturbing) {
    const unit = wishes.get(wish) as Unit;
    // Its table says what becomes of it, so that the next pass follows at once; after that it is for those who use the machines.
    const isNew = unit.thing.outcome?.cause?.code !== "in_use";
    const wait = { inTheWay: [], ofSeveral: false, barExpired: false, inUse, untilBarEnds: isNew ? 0 : undefined };
    waiting.set(unit, { type: "waiting", for: wait });
  }
  // What it was granted when its turn came, and its place in the queue, go to the next.
  const nextInTurn = await claims.releaseAll(
    tx,
    [...disturbing.keys()].map(({ claimant }) => claimant),
  );
  await work.wake(tx, nextInTurn);
  const free = [...wishes.keys()].filter((wish) => !disturbing.has(wish));
  for (const [wish, wait] of await claims.acquire(tx, free)) {
    const unit = wishes.get(wish) as Unit;
    // Its own table may have a row for that, so that the next pass follows at once.
    const hasJustExpired = wait.barExpired && unit.thing.outcome?.barExpired !== true;
    waiting.set(unit, { type: "waiting", for: hasJustExpired ? { ...wait, untilBarEnds: 0 } : wait });
  }
  await takeEffectClaims(
    tx,
    [...ofEffects.wishes].flatMap(([unit, wanted]) => (waiting.has(unit) ? [] : wanted)),
  );
  return waiting;
}

async function write(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  waiting: ReadonlyMap<Unit, Waiting>,
  plans: ReadonlyMap<Unit, EffectPlan>,
): Promise<WrittenThings["since"]> {
  const going = units.filter((unit) => !waiting.has(unit));
  const effects = going.flatMap((unit) => plans.get(unit) ?? []);
  const changing = [...going.map((unit) => plans.get(unit)?.unit ?? unit), ...effects.flatMap((plan) => plan.changes)];
  const planned = [...[...waiting].flatMap(([unit, result]) => waitingUnit(unit, result.for)), ...changing];
  if (planned.length === 0) return new Map();
  const toWrite = await endUnheard(tx, stores, planned);
  const { entries, since } = await writeThings(tx, stores, toWrite, placesOf(units, plans));

  const bereft = await claims.endOn(tx, toWrite.filter(isGone).map(keyOf));
  const leaving = changing.filter((unit) => endsClaims(stores, unit)).map(keyOf);
  const nextInTurn = await claims.releaseAll(tx, leaving);
  await applyEffects(tx, stores, { plans: effects, commit: commitUnits });
  const awaiting = await findAwaiting(tx, stores, changing);
  const woken = [
    ...bereft,
    ...nextInTurn,
    ...awaiting,
    ...changing.flatMap((unit) => wokenBy(stores, unit)),
    ...effects.flatMap((plan) => reacting(stores, plan)),
  ];
  await work.wake(tx, woken);
  for (const unit of toWrite) {
    tellMoves(tx, unit);
    for (const line of changesOf(unit).flatMap(({ observed }) => observed?.lines ?? [])) tx.logWhenCommitted(...line);
  }
  // Readings of which nobody is told are most of what a fleet at rest writes; they rouse nobody.
  if (entries + woken.length + effects.length > 0) journal.announce(tx);
  return since;
}

/** Of what the engine decides it tells itself, with what it knows of it; of what people, nodes and other things cause, we do. */
function tellMoves(tx: Transaction, unit: Unit): void {
  if (unit.lease) return;
  for (const { move, thing } of changesOf(unit)) {
    if (!move || (!move.gone && move.to === move.from)) continue;
    const { from, to, gone, owner, trigger, message: reason } = move;
    const fields = { kind: unit.kind, id: thing.id, from, to: gone ? GONE : to, owner, trigger, actor: unit.actor };
    tx.logWhenCommitted(reason === undefined ? fields : { ...fields, reason }, "moved");
  }
}

function groupByKind(units: readonly Unit[]): Map<string, Unit[]> {
  return Map.groupBy(units, (unit) => unit.kind);
}
