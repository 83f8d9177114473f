import type { ClaimSet, ThingKey } from "../things.ts";
import { nameOf } from "../things.ts";

/** The right to work on a thing. One is granted; the others wait in the order of their tickets. */
export interface Claim {
  readonly thing: ThingKey;
  /** On whose behalf the thing is worked on. */
  readonly holder: ThingKey;
  readonly reason: string;
  readonly requestedAt: Date;
  readonly grantedAt: Date | null;
}

/** granted: the thing is held by it. under: works on a thing that is already held on the same behalf. waiting: holds nothing. */
export type Standing = "granted" | "under" | "waiting";

/** A claim with its place in the queue of its thing. */
export interface QueuedClaim extends Claim {
  readonly seq: number;
  /** Who took the claim or waits for it; nobody else releases it. */
  readonly claimant: ThingKey;
  readonly standing: Standing;
  /** One number for all claims of a set. */
  readonly ticket: number;
  readonly setSize: number;
  /** Milliseconds, as the claimant gave them; null: it left that to us. */
  readonly barsFor: number | null;
  /** Milliseconds until later claims may pass it; not above zero: they may. */
  readonly barsLeft: number;
}

/** What a claimant asks for. */
export interface ClaimWish extends ClaimSet {
  readonly claimant: ThingKey;
  readonly reason: string;
}

/** By the names of things. */
export type Queues = ReadonlyMap<string, readonly QueuedClaim[]>;

export const queuesOf = (rows: readonly QueuedClaim[]): Queues => Map.groupBy(rows, ({ thing }) => nameOf(thing));

const isSame = (one: ThingKey, other: ThingKey): boolean => one.kind === other.kind && one.id === other.id;
const works = ({ standing }: QueuedClaim): boolean => standing !== "waiting";
const bars = ({ standing, barsLeft }: QueuedClaim): boolean => standing === "waiting" && barsLeft > 0;

/**
 * What one thing of the wish waits for: whoever holds it on another's behalf; of a free one the first who came before and bars.
 * What the wish's holder holds already stands in nobody's way who works on its behalf.
 */
export function inTheWayOf(wish: ClaimWish, queue: readonly QueuedClaim[], ticket: number): QueuedClaim | undefined {
  const working = queue.filter(works);
  if (working.some(({ claimant }) => isSame(claimant, wish.claimant)) || coveredBy(wish, queue)) return undefined;
  if (working.length > 0) return working.find(({ standing }) => standing === "granted") ?? working[0];
  return queue
    .filter((claim) => bars(claim) && claim.ticket < ticket && !isSame(claim.claimant, wish.claimant))
    .sort(byTicket)[0];
}

/** On whose behalf a thing is held, where the wish may work under that claim. */
export const coveredBy = (wish: ClaimWish, queue: readonly QueuedClaim[]): ThingKey | undefined =>
  queue
    .filter(works)
    .find(
      ({ holder, claimant }) =>
        !isSame(claimant, wish.claimant) && (isSame(holder, wish.holder) || isSame(claimant, wish.holder)),
    )?.holder;

/** Whether the claims that the claimant has are those of the wish: same things, same bar. Otherwise it takes a new ticket. */
export function isUnchanged({ targets, barsFor }: ClaimWish, own: readonly QueuedClaim[]): boolean {
  const wanted = new Set(targets.map(nameOf));
  return (
    own.length === wanted.size &&
    own.every((claim) => wanted.has(nameOf(claim.thing)) && claim.setSize === wanted.size) &&
    own.every((claim) => claim.standing !== "waiting" || claim.barsFor === (barsFor ?? null))
  );
}

export interface Turn {
  /** Whose claim holds the thing from now on. */
  readonly granted?: QueuedClaim;
  /** Who can see for themselves whether their whole set is free. */
  readonly woken: readonly ThingKey[];
}

/**
 * Whose turn it is when a claim on the thing ended. Whoever still works under the one that ended goes on holding it. A set of one is
 * granted at once; a larger one takes its things by itself, when all of them are free, and until then keeps later ones off if it bars.
 */
export function nextInLine(queue: readonly QueuedClaim[]): Turn {
  if (queue.some(({ standing }) => standing === "granted")) return { woken: [] };
  const [heir] = queue.filter(works).sort((one, other) => one.seq - other.seq);
  if (heir) return { granted: heir, woken: [] };
  const woken: ThingKey[] = [];
  for (const claim of [...queue].sort(byTicket)) {
    woken.push(claim.claimant);
    if (claim.setSize === 1) return { granted: claim, woken };
    if (bars(claim)) break;
  }
  return { woken };
}

const byTicket = (one: QueuedClaim, other: QueuedClaim): number => one.ticket - other.ticket;
