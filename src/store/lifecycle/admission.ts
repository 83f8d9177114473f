import type { Cause } from "../../kernel/causes.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { findSettled } from "../restore/parked.ts";
import { findLiveReview } from "../restore/reviews.ts";
import { enteringClaims } from "./claims/wishes.ts";
import type { Unit } from "./commit/unit.ts";
import type { Waiting } from "./commit/unit-result.ts";
import type { EffectPlan } from "./effects/plan-effects.ts";
import { nameOf, storeOf, type ThingKey, type ThingStores } from "./things.ts";

/** Why a thing may not begin yet. */
export interface Refusal {
  readonly reason: string;
  readonly cause: Cause;
}

/**
 * How many things of a kind may begin, beside the claims that each needs. It is decided in the commit that begins, under one lock for
 * the kind: of two replicas that see the last place free, one gets it.
 */
export interface Admission<T extends Thing = Thing> {
  /** Whether the thing, as it would be, needs to be admitted. Pure. */
  readonly asks: (thing: T) => boolean;
  /** Of these, in their order: those that must wait, by their ids. */
  readonly refuse: (tx: Transaction, things: readonly T[]) => Promise<ReadonlyMap<string, Refusal>>;
}

/** What the unit locks when it asks to be admitted. Nothing is written there, so that those that ask are judged together. */
export const admissionLockOf = (stores: ThingStores, unit: Unit): readonly ThingKey[] =>
  asking(stores, unit) ? [{ kind: "admission", id: unit.kind }] : [];

/** The thing as it would begin; undefined where the unit begins nothing, or nothing that has to be admitted. */
function asking(stores: ThingStores, unit: Unit): Thing | undefined {
  const { admission } = storeOf(stores, unit.kind);
  const thing = admission && enteringClaims(stores, unit);
  return thing && admission?.asks(thing) ? thing : undefined;
}

export interface Admitted {
  /** The units that must wait, and why. */
  readonly refused: Map<Unit, Waiting>;
  /** The units that were given a place. */
  readonly admitted: ReadonlySet<Unit>;
}

/** Who of the units may begin. The caller holds the locks. */
export async function admit(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  plans: ReadonlyMap<Unit, EffectPlan>,
): Promise<Admitted> {
  const refused = await heldByReview(tx, stores, units, plans);
  const admitted = new Set<Unit>();
  const all = units.flatMap((unit) => {
    if (refused.has(unit)) return [];
    const thing = asking(stores, plans.get(unit)?.unit ?? unit);
    return thing ? [{ unit, thing }] : [];
  });
  for (const [kind, ofKind] of Map.groupBy(all, ({ unit }) => unit.kind)) {
    const refusals = await storeOf(stores, kind).admission?.refuse(
      tx,
      ofKind.map(({ thing }) => thing),
    );
    for (const { unit, thing } of ofKind) {
      const refusal = refusals?.get(thing.id);
      if (refusal === undefined) admitted.add(unit);
      else {
        refused.set(unit, { type: "waiting", for: { ...FOR_NOBODY, refusal } });
        tellOnce(tx, unit, refusal);
      }
    }
  }
  return { refused, admitted };
}

/**
 * While a restored backup is under review, no pass begins work on a device, but for what people have let go on, and what works on its behalf:
 * also what the backup leads to later by itself, such as the maintenance of a rack.
 */
async function heldByReview(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  plans: ReadonlyMap<Unit, EffectPlan>,
): Promise<Map<Unit, Waiting>> {
  const beginning = units.flatMap((unit) => {
    const thing = unit.lease && enteringClaims(stores, plans.get(unit)?.unit ?? unit);
    return thing ? [{ unit, holder: holderOf(stores, unit.kind, thing) }] : [];
  });
  const review = beginning.length === 0 ? undefined : await findLiveReview(tx);
  if (!review) return new Map();
  const keys = beginning.flatMap(({ unit, holder }) => [{ kind: unit.kind, id: unit.thing.id }, holder]);
  const free = new Set((await findSettled(tx, review.id, keys)).map(nameOf));
  const refusal: Refusal = { reason: `restore review ${review.id} has not ended`, cause: { code: "restored" } };
  return new Map(
    beginning
      .filter(
        ({ unit, holder }) => !free.has(nameOf({ kind: unit.kind, id: unit.thing.id })) && !free.has(nameOf(holder)),
      )
      .map(({ unit }) => {
        tellOnce(tx, unit, refusal);
        return [unit, { type: "waiting", for: { ...FOR_NOBODY, refusal } }];
      }),
  );
}

const holderOf = (stores: ThingStores, kind: string, thing: Thing): ThingKey =>
  storeOf(stores, kind).claims?.(thing).holder ?? { kind, id: thing.id };

const FOR_NOBODY = { inTheWay: [], ofSeveral: false, barExpired: false, untilBarEnds: undefined } as const;

function tellOnce(tx: Transaction, { kind, thing }: Unit, { reason, cause }: Refusal): void {
  if (thing.outcome?.cause?.code === cause.code) return;
  tx.logWhenCommitted({ kind, id: thing.id, state: thing.state.name, cause: cause.code, reason }, "waits to begin");
}
