import type { Effect } from "../../../kernel/effects.ts";
import type { Transaction } from "../../postgres/database.ts";
import { admissionLockOf } from "../admission.ts";
import { listOfClaimants } from "../claims/claims.ts";
import { claimTargetsOf, mayHaveTicket, wishOf } from "../claims/wishes.ts";
import { wokenAbove } from "../relations.ts";
import { nameOf, storeOf, type ThingKey, type ThingStores } from "../things.ts";
import { keyOf, lastMoveOf, type Unit } from "./unit.ts";

/** Effects that neither write to their thing nor say anything of it: only that it gets a pass. */
const isWake = ({ type }: Effect): boolean => type === "wake";
/** Effects that need their thing as the units before have left it, and leave it as it is. */
const isReading = ({ type }: Effect): boolean => type === "require" || type === "log";

/** What a unit needs locked. */
export interface Touched {
  readonly written: readonly ThingKey[];
  readonly read: readonly ThingKey[];
}

/** What each unit touches. Claims that its thing waits for are looked up: they need not be those that it now wishes for. */
export async function findTouched(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
): Promise<Map<Unit, Touched>> {
  const mayWait = units.filter((unit) => mayHaveTicket(stores, unit)).map(keyOf);
  const awaited = Map.groupBy(await listOfClaimants(tx, mayWait), ({ claimant }) => nameOf(claimant));
  return new Map(
    units.map((unit) => {
      const tickets = (awaited.get(nameOf(keyOf(unit))) ?? []).map(({ thing }) => thing);
      const { written, read } = touchedBy(stores, unit);
      return [unit, { written: [...written, ...tickets], read }];
    }),
  );
}

/** All that the unit touches, but for what a ticket that it may have waits for. */
export const touchedBy = (stores: ThingStores, unit: Unit): Touched => ({
  written: writtenBy(stores, unit),
  read: [
    ...(unit.effects ?? []).filter(isReading),
    ...(wishOf(stores, unit)?.unused ?? []),
    ...admissionLockOf(stores, unit),
  ],
});

/** Whom the unit wakes, whatever becomes of the things that its effects touch. */
export const wokenBy = (stores: ThingStores, unit: Unit): ThingKey[] => [
  ...(unit.effects ?? []).filter(isWake),
  ...wokenAbove(stores, unit),
];

/** What the unit changes: its thing, what its effects change, and whose claims are taken or released. */
function writtenBy(stores: ThingStores, unit: Unit): ThingKey[] {
  const { locksWhenGone } = storeOf(stores, unit.kind);
  return [
    keyOf(unit),
    ...(unit.effects ?? []).filter((effect) => !isWake(effect) && !isReading(effect)),
    ...claimTargetsOf(stores, unit),
    ...(lastMoveOf(unit)?.gone ? (locksWhenGone?.(unit.thing) ?? []) : []),
  ];
}

/**
 * Units of which one changes what another changes or reads are written one after the other, so that the later one is judged against
 * what the earlier one wrote: two written at once would both find the basis that they expect, and one would be lost. Units that have
 * no more in common than whom they wake, or whose log they add to, are written together.
 */
export function wavesOf(touched: ReadonlyMap<Unit, Touched>): Unit[][] {
  const waves: Unit[][] = [];
  const afterWrite = new Map<string, number>();
  const afterRead = new Map<string, number>();
  for (const [unit, keys] of touched) {
    const [written, read] = [keys.written.map(nameOf), keys.read.map(nameOf)];
    const wave = Math.max(
      ...written.map((name) => Math.max(afterWrite.get(name) ?? 0, afterRead.get(name) ?? 0)),
      ...read.map((name) => afterWrite.get(name) ?? 0),
    );
    for (const name of written) afterWrite.set(name, wave + 1);
    for (const name of read) afterRead.set(name, Math.max(afterRead.get(name) ?? 0, wave + 1));
    if (wave === waves.length) waves.push([]);
    waves[wave]?.push(unit);
  }
  return waves;
}
