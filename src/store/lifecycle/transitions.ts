import { GONE, type JsonObject, type Thing } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { toJsonText } from "../postgres/json-text.ts";
import * as claims from "./claims/claims.ts";
import { claimTargetsOf, endsClaims, mayHaveTicket, waitingUnit, wishOf } from "./claims/wishes.ts";
import { applyEffects, type EffectPlan, findUnmet, lockedByEffects, planEffects } from "./effects.ts";
import * as journal from "./journal.ts";
import { lockThings } from "./locks.ts";
import { checkColumns, nameOf, storeOf, type ThingKey, type ThingStore, type ThingStores } from "./things.ts";
import { keyOf, outcomeAfter, type Unit } from "./unit.ts";
import { tellUnit, type Untold, withVersions } from "./unit-entries.ts";
import type { UnitResult } from "./unit-result.ts";
import { endUnheard } from "./withdrawals.ts";
import * as work from "./work.ts";

const COMMITTED: UnitResult = { type: "committed" };
const CONFLICT: UnitResult = { type: "conflict" };
const FENCED: UnitResult = { type: "fenced" };

/** The only writer of states: locks all things, compares their bases, writes state + history + event + wake-ups of many units. */
export async function commitUnits(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<UnitResult[]> {
  const touched = await findTouched(tx, stores, units);
  await lockThings(tx, [...touched.values()].flat());
  const results = new Map<Unit, UnitResult>();
  for (const wave of wavesOf(touched))
    for (const [unit, result] of await commitWave(tx, stores, wave)) results.set(unit, result);
  for (const unit of units) if (!results.has(unit)) tellMove(tx, unit);
  return units.map((unit) => results.get(unit) ?? COMMITTED);
}

/** Of what the engine decides it tells itself, with what it knows of it; of what people, nodes and other things cause, we do. */
function tellMove(tx: Transaction, { kind, thing, move, actor, lease }: Unit): void {
  if (!move || lease || (!move.gone && move.to === move.from)) return;
  const { from, to, gone, owner, trigger, message: reason } = move;
  const fields = { kind, id: thing.id, from, to: gone ? GONE : to, owner, trigger, actor };
  tx.logWhenCommitted(reason === undefined ? fields : { ...fields, reason }, "moved");
}

/** What each unit touches. Claims that its thing waits for are read: they need not be those that it now wishes for. */
async function findTouched(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
): Promise<Map<Unit, readonly ThingKey[]>> {
  const mayWait = units.filter((unit) => mayHaveTicket(stores, unit)).map(keyOf);
  const awaited = Map.groupBy(await claims.listOfClaimants(tx, mayWait), ({ claimant }) => nameOf(claimant));
  return new Map(
    units.map((unit) => [
      unit,
      [
        keyOf(unit),
        ...lockedByEffects(unit.effects),
        ...claimTargetsOf(stores, unit),
        ...(awaited.get(nameOf(keyOf(unit))) ?? []).map(({ thing }) => thing),
        ...(unit.move?.gone ? (storeOf(stores, unit.kind).locksWhenGone?.(unit.thing) ?? []) : []),
      ],
    ]),
  );
}

/**
 * Units that touch a thing in common are written one after the other, so that the later one is judged against what the
 * earlier one wrote: two written at once would both find the basis that they expect, and one would be lost.
 */
function wavesOf(touched: ReadonlyMap<Unit, readonly ThingKey[]>): Unit[][] {
  const waves: Unit[][] = [];
  const next = new Map<string, number>();
  for (const [unit, keys] of touched) {
    const names = keys.map(nameOf);
    const wave = Math.max(...names.map((name) => next.get(name) ?? 0));
    for (const name of names) next.set(name, wave + 1);
    if (wave === waves.length) waves.push([]);
    waves[wave]?.push(unit);
  }
  return waves;
}

/** The results of those units that were not written; all others were. */
async function commitWave(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
): Promise<Map<Unit, UnitResult>> {
  const results = await findUncommittable(tx, stores, units);
  for (const unit of await findUnmet(tx, stores, units)) if (!results.has(unit)) results.set(unit, CONFLICT);
  const plans = await planEffects(tx, stores, units, results);
  const alive = units.filter((unit) => !results.has(unit));
  for (const [unit, wait] of await takeClaims(tx, stores, alive)) results.set(unit, { type: "waiting", for: wait });
  const where = units.map(({ kind, thing }) => ({ kind, state: thing.state.name }));
  failPoint("transitions:locked", where);

  await write(tx, stores, alive, results, plans);
  return results;
}

/** Units whose lease was lost or whose thing changed since it was loaded. */
async function findUncommittable(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
): Promise<Map<Unit, UnitResult>> {
  const results = new Map<Unit, UnitResult>();
  const leased = units.flatMap((unit) => (unit.lease ? [{ ...keyOf(unit), epoch: unit.lease.epoch }] : []));
  const ours = new Set((await work.fence(tx, leased)).map(nameOf));
  for (const [kind, ofKind] of groupByKind(units)) {
    const rows = await tx.query<{ id: string; basis: number }>({
      hot: true,
      text: `select id, basis from ${storeOf(stores, kind).table} where id = any($1)`,
      values: [ofKind.map((unit) => unit.thing.id)],
    });
    const bases = new Map(rows.map((row) => [row.id, row.basis]));
    for (const unit of ofKind) {
      if (unit.lease && !ours.has(nameOf(keyOf(unit)))) results.set(unit, FENCED);
      else if (bases.get(unit.thing.id) !== unit.thing.basis) results.set(unit, CONFLICT);
    }
  }
  return results;
}

/** Those of the units that must wait for claims. Within a wave no two sets have a thing in common. */
async function takeClaims(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
): Promise<[Unit, claims.Wait][]> {
  const wishes = new Map(
    units.flatMap((unit) => {
      const wish = wishOf(stores, unit);
      return wish ? [[wish, unit]] : [];
    }),
  );
  const waits = await claims.acquire(tx, [...wishes.keys()]);
  return [...waits].map(([wish, wait]) => {
    const unit = wishes.get(wish) as Unit;
    // Its own table may have a row for that, so that the next pass follows at once.
    const hasJustExpired = wait.barExpired && unit.thing.outcome?.barExpired !== true;
    return [unit, hasJustExpired ? { ...wait, untilBarEnds: 0 } : wait];
  });
}

async function write(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  results: ReadonlyMap<Unit, UnitResult>,
  plans: ReadonlyMap<Unit, EffectPlan>,
): Promise<void> {
  const planned = units.flatMap((unit) => {
    const result = results.get(unit);
    return result?.type === "waiting" ? waitingUnit(unit, result.for) : [unit];
  });
  if (planned.length === 0) return;
  const toWrite = await endUnheard(tx, stores, planned);
  const told = new Map(toWrite.map((unit) => [unit, tellUnit(stores, unit)]));
  const versions = new Map<string, number>();
  for (const [kind, ofKind] of groupByKind(toWrite)) {
    const store = storeOf(stores, kind);
    const [going, staying] = [ofKind.filter((unit) => unit.move?.gone), ofKind.filter((unit) => !unit.move?.gone)];
    const written = [...(await updateThings(tx, store, staying, told)), ...(await deleteThings(tx, store, going))];
    for (const { id, version } of written) versions.set(nameOf({ kind, id }), version);
  }
  const entries = [...told].flatMap(([unit, untold]) => withVersions(unit, untold, versions));
  await journal.append(tx, entries);
  failPoint(
    "transitions:journaled",
    units.map(({ kind, thing }) => ({ kind, state: thing.state.name })),
  );

  const gone = toWrite.filter((unit) => unit.move?.gone).map(keyOf);
  const bereft = await claims.endOn(tx, gone);
  const leaving = units.filter((unit) => !results.has(unit) && endsClaims(stores, unit)).map(keyOf);
  const woken = [...bereft, ...(await claims.releaseAll(tx, leaving))];
  await work.wake(tx, woken);
  const effects = planned.flatMap((unit) => plans.get(unit) ?? []);
  await applyEffects(tx, stores, { plans: effects, commit: commitUnits });
  // Readings of which nobody is told are most of what a fleet at rest writes; they rouse nobody.
  if (entries.length + woken.length + effects.length > 0) await journal.announce(tx);
}

/** The version after the write. The row counts it, not the unit: what others changed meanwhile has counted too. */
interface Written {
  readonly id: string;
  readonly version: number;
}

/** Since when it is so: a thing that fails in ever new ways has been failing all along. */
const OUTCOME_WITH_SINCE = `case when i.outcome is not null then i.outcome || jsonb_build_object('since',
        case when (t.outcome ->> 'type' = 'waiting') = (i.outcome ->> 'type' = 'waiting')
             then coalesce(t.outcome -> 'since', to_jsonb(now())) else to_jsonb(now()) end) end`;

/**
 * One statement for all units of a kind. Requests end only if they are still the ones that the move ends. Each entry of the journal
 * has a version of its own.
 */
async function updateThings(
  tx: Transaction,
  store: ThingStore,
  units: readonly Unit[],
  told: ReadonlyMap<Unit, readonly Untold[]>,
): Promise<Written[]> {
  if (units.length === 0) return [];
  const { observedColumns = [] } = store;
  checkColumns(observedColumns);
  const observed = observedColumns.map((column) => `, ${column} = coalesce(i.observed -> '${column}', t.${column})`);
  const requests = Object.entries(store.requests).map(
    ([field, { column, lastColumn }]) => `,
      ${lastColumn} = case when i.ends ? '${field}' then (i.ends -> '${field}') || jsonb_build_object('ended_at', now()) else t.${lastColumn} end,
      ${column} = case when t.${column} ->> 'id' = i.ends -> '${field}' ->> 'id' then null else t.${column} end`,
  );
  return tx.query<Written>({
    hot: true,
    text: `update ${store.table} t set
      version = t.version + i.entries,
      basis = t.basis + 1,
      state = i.state,
      state_data = i.state_data,
      state_version = t.state_version + case when i.moved then 1 else 0 end,
      state_since = case when i.moved then now() else t.state_since end,
      facts = t.facts || i.facts,
      outcome = ${OUTCOME_WITH_SINCE} ${requests.join("")} ${observed.join("")}
     from jsonb_to_recordset($1)
          as i(id text, entries int, state text, state_data jsonb, moved boolean, facts jsonb, outcome jsonb, ends jsonb, observed jsonb)
     where t.id = i.id
     returning t.id, t.version`,
    values: [
      toJsonText(units.map((unit) => ({ ...columnsAfter(unit), entries: Math.max(told.get(unit)?.length ?? 0, 1) }))),
    ],
  });
}

const columnsAfter = (unit: Unit) => ({
  id: unit.thing.id,
  state: unit.move?.to ?? unit.thing.state.name,
  state_data: unit.move?.carried ?? carriedBy(unit.thing),
  moved: unit.move !== undefined && unit.move.to !== unit.move.from,
  facts: { ...unit.facts, ...unit.move?.facts },
  outcome: outcomeAfter(unit),
  ends: endsOf(unit),
  ...(unit.observed && { observed: unit.observed.set }),
});

async function deleteThings(tx: Transaction, store: ThingStore, units: readonly Unit[]): Promise<Written[]> {
  if (units.length === 0) return [];
  const ids = units.map((unit) => unit.thing.id);
  const deleted = await tx.query<Written>(
    `delete from ${store.table} where id = any($1) returning id, version + 1 as version`,
    [ids],
  );
  await tx.query(`delete from health_reports where kind = $1 and id = any($2)`, [store.lifecycle.kind, ids]);
  await work.forget(tx, units.map(keyOf));
  await store.afterGone?.(
    tx,
    units.map((unit) => unit.thing),
  );
  return deleted;
}

const endsOf = (unit: Unit): JsonObject =>
  Object.fromEntries(
    (unit.move?.ends ?? []).map(({ field, request, outcome, message }) => [
      field,
      { ...request, outcome, message: message ?? null },
    ]),
  );

function carriedBy(thing: Thing): JsonObject {
  const { name: _, ...carried } = thing.state;
  return carried as JsonObject;
}

function groupByKind(units: readonly Unit[]): Map<string, Unit[]> {
  return Map.groupBy(units, (unit) => unit.kind);
}
