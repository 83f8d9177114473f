import type { Cause } from "../../../kernel/causes.ts";
import type { Thing } from "../../../kernel/lifecycle.ts";
import { afterUnit, keyOf, lastMoveOf, outcomeAfter, type Unit } from "../commit/unit.ts";
import { type ClaimSet, nameOf, storeOf, type ThingKey, type ThingStore, type ThingStores } from "../things.ts";
import type { Wait } from "./decision.ts";
import { describeInUse } from "./in-use.ts";
import type { ClaimWish, QueuedClaim } from "./queue.ts";

/** What a unit wishes for when its move enters a state that needs claims. */
export function wishOf(stores: ThingStores, unit: Unit): ClaimWish | undefined {
  const thing = enteringClaims(stores, unit);
  return thing && wishToEnter(storeOf(stores, unit.kind), thing, thing.state.name);
}

/** The thing as it will be in a state that needs claims, where the unit's move enters one; undefined otherwise. */
export function enteringClaims(stores: ThingStores, unit: Unit): Thing | undefined {
  const { kind, thing } = unit;
  const move = lastMoveOf(unit);
  if (!move || move.gone || claimsIn(stores, kind, thing.state.name) || !claimsIn(stores, kind, move.to))
    return undefined;
  return afterUnit(storeOf(stores, kind), unit);
}

/** What the thing would wish for, were it to enter a state that needs claims. */
export const wishToEnter = <T extends Thing>(store: ThingStore<T>, thing: T, reason: string): ClaimWish => ({
  ...claimsOf(store, thing),
  claimant: { kind: store.lifecycle.kind, id: thing.id },
  reason,
});

/**
 * The things whose claims the unit takes or releases, or that what it moves and orders takes or releases under its own. Those of a ticket
 * that it may have are not known without reading it.
 */
export function claimTargetsOf(stores: ThingStores, unit: Unit): readonly ThingKey[] {
  const { kind, thing, effects = [] } = unit;
  const move = lastMoveOf(unit);
  if (!claimsIn(stores, kind, thing.state.name)) return wishOf(stores, unit)?.targets ?? [];
  const leaves = move && (move.gone || !claimsIn(stores, kind, move.to));
  const worksThrough = effects.some(({ type }) => type !== "log" && type !== "wake");
  return leaves || worksThrough ? claimsOf(storeOf(stores, kind), thing).targets : [];
}

/** Whether the thing may wait for claims. One that does says so in its outcome. */
export const mayHaveTicket = (stores: ThingStores, { kind, thing }: Unit): boolean =>
  thing.outcome?.type === "waiting" &&
  !claimsIn(stores, kind, thing.state.name) &&
  Object.values(storeOf(stores, kind).lifecycle.states).some(({ claims }) => claims === true);

/**
 * A thing releases its claims when it leaves the state that needs them, and its ticket when it no longer wants them: it went another
 * way, or it stayed and waits for something else. A ticket that nobody wants would bar all behind it.
 */
export function endsClaims(stores: ThingStores, unit: Unit): boolean {
  const { kind, thing } = unit;
  const move = lastMoveOf(unit);
  if (move?.gone) return true;
  if (claimsIn(stores, kind, move?.to ?? thing.state.name)) return false;
  if (move && claimsIn(stores, kind, thing.state.name)) return true;
  return mayHaveTicket(stores, unit) && outcomeAfter(unit)?.reason !== thing.outcome?.reason;
}

/** What is written of a unit whose claims are not to be had: that it waits, and for whom. */
export function waitingUnit(unit: Unit, wait: Wait): Unit[] {
  const reason = wait.refusal?.reason ?? describeWait(wait);
  if (unit.thing.outcome?.reason === reason) return [];
  const [first] = wait.inTheWay;
  const cause: Cause =
    wait.refusal?.cause ??
    (wait.inUse
      ? { code: "in_use", facts: { name: wait.inUse[0]?.id ?? "" } }
      : { code: "claimed", ...(first && { facts: { holder: `${first.holder.kind} ${first.holder.id}` } }) });
  const expired = wait.barExpired ? ({ barExpired: true } as const) : {};
  const { thing, kind, actor } = unit;
  return [{ thing, kind, actor, outcome: { type: "waiting", reason, cause, ...expired } }];
}

/** Everybody whom the set waits for, each once, with what it has. */
function describeWait({ inTheWay, ofSeveral, barExpired, inUse }: Wait): string {
  if (inUse) return `it would disturb machines ${describeInUse(inUse)}`;
  const byHolder = Map.groupBy(inTheWay, (claim) => `${nameOf(claim.holder)} ${claim.reason} ${claim.standing}`);
  const holders = [...byHolder.values()].map((claims) => describeHolder(claims as [QueuedClaim], ofSeveral));
  const later = barExpired ? "; its priority in the queue has expired, so later claims may be granted first" : "";
  return `waiting for ${holders.join("; ")}${later}`;
}

/** For those who do not wait: who has what they need. */
export function describeHeld(wait: Wait): string {
  if (wait.inUse) return `not begun: ${describeWait(wait)}`;
  if (wait.inTheWay.some(({ standing }) => standing === "waiting")) return describeWait(wait);
  const names = new Set(wait.inTheWay.map(({ holder }) => `${holder.kind} ${holder.id}`));
  return `being worked on by ${[...names].join(", ")}`;
}

function describeHolder(claims: readonly [QueuedClaim, ...QueuedClaim[]], ofSeveral: boolean): string {
  const [{ holder, reason, standing }] = claims;
  const things = ofSeveral ? claims.map(({ thing }) => `${thing.kind} ${thing.id}`).join(", ") : "it";
  const does = standing === "waiting" ? `is ahead of it in the queue for ${things}` : `works on ${things}`;
  return `${holder.kind} ${holder.id} (${reason}), which ${does}`;
}

/** On whose behalf the unit's thing works, or will once its move is written: its own, where it needs no claims. */
export function holderOf(stores: ThingStores, unit: Unit): ThingKey {
  const { kind, thing } = unit;
  const wish = wishOf(stores, unit);
  if (wish) return wish.holder;
  return claimsIn(stores, kind, thing.state.name) ? claimsOf(storeOf(stores, kind), thing).holder : keyOf(unit);
}

const claimsIn = (stores: ThingStores, kind: string, state: string): boolean =>
  storeOf(stores, kind).lifecycle.states[state]?.claims === true;

function claimsOf<T extends Thing>({ claims, lifecycle }: ThingStore<T>, thing: T): ClaimSet {
  const itself = { kind: lifecycle.kind, id: thing.id };
  return claims?.(thing) ?? { targets: [itself], holder: itself };
}
