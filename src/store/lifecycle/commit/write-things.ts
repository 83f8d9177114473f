import { changesState } from "../../../kernel/decide.ts";
import type { JsonObject, Thing } from "../../../kernel/lifecycle.ts";
import type { Transaction } from "../../postgres/database.ts";
import { type FailPointSubject, failPoint } from "../../postgres/fail-points.ts";
import { toJsonText } from "../../postgres/json-text.ts";
import * as journal from "../journal.ts";
import { checkColumns, nameOf, storeOf, type ThingStore, type ThingStores } from "../things.ts";
import * as work from "../work.ts";
import { type Change, changesOf, isGone, keyOf, lastMoveOf, outcomeAfter, type Unit } from "./unit.ts";
import { tellUnit, type Untold, withVersions } from "./unit-entries.ts";

/** The version after the write. The row counts it, not the unit: what others changed meanwhile has counted too. */
interface Written {
  readonly id: string;
  readonly version: number;
  /** Absent: the thing is gone. */
  readonly stateSince?: Date;
}

export interface WrittenThings {
  /** How many entries of the journal there are. */
  readonly entries: number;
  /** Since when each thing is in the state that it now is in, by its name. */
  readonly since: ReadonlyMap<string, Date>;
}

/** Writes what the units change: the row of each thing (or away with it, when the thing is gone) and its entries in the journal. */
export async function writeThings(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  places: readonly FailPointSubject[],
): Promise<WrittenThings> {
  const told = new Map(units.map((unit) => [unit, tellUnit(stores, unit)]));
  const versions = new Map<string, number>();
  const since = new Map<string, Date>();
  for (const [kind, ofKind] of Map.groupBy(units, (unit) => unit.kind)) {
    const store = storeOf(stores, kind);
    const [gone, kept] = [ofKind.filter(isGone), ofKind.filter((unit) => !isGone(unit))];
    const written = [...(await updateThings(tx, store, kept, told)), ...(await deleteThings(tx, store, gone, told))];
    for (const { id, version, stateSince } of written) {
      versions.set(nameOf({ kind, id }), version);
      if (stateSince !== undefined) since.set(nameOf({ kind, id }), stateSince);
    }
  }
  const entries = [...told].flatMap(([unit, untold]) => withVersions(unit, untold, versions));
  await journal.append(tx, entries);
  failPoint("transitions:journaled", places);
  return { entries: entries.length, since };
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
      ${lastColumn} = case when i.ends ? '${field}' then
        case when t.${column} ->> 'id' = i.ends -> '${field}' ->> 'id' then t.${column} else '{}' end || (i.ends -> '${field}') || jsonb_build_object('ended_at', now()) else t.${lastColumn} end,
      ${column} = case when t.${column} ->> 'id' = i.ends -> '${field}' ->> 'id' then null else t.${column} end`,
  );
  return tx.query<Written>({
    hot: true,
    text: `update ${store.table} t set
      version = t.version + i.entries,
      basis = t.basis + 1,
      state = i.state,
      state_data = i.state_data,
      state_version = t.state_version + i.entered,
      state_since = case when i.entered > 0 then now() else t.state_since end,
      facts = t.facts || i.facts,
      outcome = ${OUTCOME_WITH_SINCE} ${requests.join("")} ${observed.join("")}
     from jsonb_to_recordset($1)
          as i(id text, entries int, state text, state_data jsonb, entered int, facts jsonb, outcome jsonb, ends jsonb, observed jsonb)
     where t.id = i.id
     returning t.id, t.version, t.state_since as "stateSince"`,
    values: [
      toJsonText(units.map((unit) => ({ ...columnsAfter(unit), entries: Math.max(told.get(unit)?.length ?? 0, 1) }))),
    ],
  });
}

function columnsAfter(unit: Unit) {
  const changes = changesOf(unit);
  const last = lastMoveOf(unit);
  const observed = changes.flatMap((change) => (change.observed ? [change.observed.set] : []));
  return {
    id: unit.thing.id,
    state: last?.to ?? unit.thing.state.name,
    state_data: last?.carried ?? carriedBy(unit.thing),
    /** States that were entered: a row that stays, and leaves what the state carries as it is, enters none. */
    entered: changes.filter(({ thing, move }) => move !== undefined && changesState(thing, move)).length,
    facts: Object.assign({}, ...changes.flatMap(({ facts, move }) => [facts, move?.facts])),
    outcome: outcomeAfter(unit),
    ends: Object.assign({}, ...changes.map(endsOf)),
    ...(observed.length > 0 && { observed: Object.assign({}, ...observed) }),
  };
}

/** Rows go for good; the journal keeps what was. */
async function deleteThings(
  tx: Transaction,
  store: ThingStore,
  units: readonly Unit[],
  told: ReadonlyMap<Unit, readonly Untold[]>,
): Promise<Written[]> {
  if (units.length === 0) return [];
  const ids = units.map((unit) => unit.thing.id);
  const deleted = await tx.query<Written>(
    `delete from ${store.table} t using unnest($1::text[], $2::int[]) as d(id, entries)
      where t.id = d.id returning t.id, t.version + d.entries as version`,
    [ids, units.map((unit) => told.get(unit)?.length ?? 1)],
  );
  await tx.query(`delete from health_reports where kind = $1 and id = any($2)`, [store.lifecycle.kind, ids]);
  await work.forget(tx, units.map(keyOf));
  await store.afterGone?.(
    tx,
    units.map((unit) => unit.thing),
  );
  return deleted;
}

const endsOf = ({ move }: Change): JsonObject =>
  Object.fromEntries(
    (move?.ends ?? []).map(({ field, request, outcome, message }) => [
      field,
      { ...request, outcome, message: message ?? null },
    ]),
  );

function carriedBy(thing: Thing): JsonObject {
  const { name: _, ...carried } = thing.state;
  return carried as JsonObject;
}
