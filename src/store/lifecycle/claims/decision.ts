import type { Refusal } from "../admission.ts";
import { type MachineInUse, nameOf, type ThingKey } from "../things.ts";
import { type ClaimWish, coveredBy, inTheWayOf, isUnchanged, type QueuedClaim, type Standing } from "./queue.ts";

/** A set that must wait: for whom, and how its own bar stands. */
export interface Wait {
  /** Each thing that is not to be had, with its holder or with who bars it. */
  readonly inTheWay: readonly QueuedClaim[];
  /** The set has more than one thing, so that it must be said which. */
  readonly ofSeveral: boolean;
  /** Its claimant said how long it bars, and that time is over: later claims may pass it. */
  readonly barExpired: boolean;
  /** Machines that it would disturb, and that somebody uses; then nobody is in the way. */
  readonly inUse?: readonly MachineInUse[];
  /** Milliseconds until a bar ends, its own or one that it waits for; undefined: none will end soon. */
  readonly untilBarEnds: number | undefined;
  /** It waits for nobody's claim: it is not admitted. */
  readonly refusal?: Refusal;
}

/** A claim that waited, and now holds its thing or works on it under another. */
export interface Grant {
  readonly seq: number;
  readonly standing: Standing;
  /** Null: its claimant's own. */
  readonly behalf: ThingKey | null;
}

/** A claim that is not in the database yet. */
export interface NewClaim extends Omit<Grant, "seq"> {
  readonly wish: ClaimWish;
  readonly thing: ThingKey;
  /** Of one set all have the same number. */
  readonly set: number;
  readonly setSize: number;
}

export interface Decision {
  /** The wishes that must wait; all others are granted. */
  readonly waits: Map<ClaimWish, Wait>;
  readonly toGrant: readonly Grant[];
  readonly toInsert: readonly NewClaim[];
}

/** Tickets that the database has not given yet come after all that it has. */
const NEW_TICKET = 2 ** 52;

/** Whose claims are not those that they now wish for. */
export function findChanged(wishes: readonly ClaimWish[], rows: readonly QueuedClaim[]): ThingKey[] {
  const owned = byClaimant(rows);
  return wishes
    .filter((wish) => {
      const own = owned.get(nameOf(wish.claimant)) ?? [];
      return own.length > 0 && !isUnchanged(wish, own);
    })
    .map(({ claimant }) => claimant);
}

/** Grants whole sets or none of them; one wish after the other, each against what those before it leave. */
export function decideWishes(wishes: readonly ClaimWish[], rows: readonly QueuedClaim[]): Decision {
  const decision = { waits: new Map<ClaimWish, Wait>(), toGrant: [] as Grant[], toInsert: [] as NewClaim[] };
  const queues = new Map(Map.groupBy(rows, ({ thing }) => nameOf(thing)));
  const owned = byClaimant(rows);
  for (const [set, wish] of wishes.entries()) {
    const own = owned.get(nameOf(wish.claimant)) ?? [];
    const ticket = own[0]?.ticket ?? NEW_TICKET + set;
    const targets = new Map(wish.targets.map((target) => [nameOf(target), target]));
    const inTheWay = [...targets.keys()].flatMap((name) => inTheWayOf(wish, queues.get(name) ?? [], ticket) ?? []);
    if (inTheWay.length > 0) decision.waits.set(wish, waitOf(wish, own, inTheWay));
    for (const [name, thing] of targets) {
      const queue = queues.get(name) ?? [];
      const known = own.find((claim) => nameOf(claim.thing) === name);
      if (known && known.standing !== "waiting") continue;
      const { standing, holder } = inTheWay.length > 0 ? waitingFor(wish) : workingOn(wish, queue);
      const behalf = nameOf(holder) === nameOf(wish.claimant) ? null : holder;
      if (!known) decision.toInsert.push({ wish, thing, set, setSize: targets.size, standing, behalf });
      else if (standing !== "waiting") decision.toGrant.push({ seq: known.seq, standing, behalf });
      const now = { ...(known ?? unwritten(wish, thing, ticket)), standing, holder };
      queues.set(name, [...queue.filter((claim) => claim !== known), now]);
    }
  }
  return decision;
}

type Place = Pick<QueuedClaim, "standing" | "holder">;
const waitingFor = ({ holder }: ClaimWish): Place => ({ standing: "waiting", holder });
function workingOn(wish: ClaimWish, queue: readonly QueuedClaim[]): Place {
  const covered = coveredBy(wish, queue);
  return covered ? { standing: "under", holder: covered } : { standing: "granted", holder: wish.holder };
}

const byClaimant = (rows: readonly QueuedClaim[]): ReadonlyMap<string, readonly QueuedClaim[]> =>
  Map.groupBy(rows, ({ claimant }) => nameOf(claimant));

/** As the wishes that come after it find it in the queue. */
const unwritten = (wish: ClaimWish, thing: ThingKey, ticket: number): QueuedClaim => ({
  ...wish,
  thing,
  seq: ticket,
  ticket,
  standing: "waiting",
  setSize: wish.targets.length,
  requestedAt: new Date(),
  grantedAt: null,
  barsFor: wish.barsFor ?? null,
  barsLeft: wish.barsFor ?? Number.POSITIVE_INFINITY,
});

function waitOf(wish: ClaimWish, own: readonly QueuedClaim[], inTheWay: readonly QueuedClaim[]): Wait {
  const given = wish.barsFor ?? 0;
  const left = given > 0 ? (own[0]?.barsLeft ?? given) : 0;
  const ends = [left, ...inTheWay.map(({ standing, barsLeft }) => (standing === "waiting" ? barsLeft : 0))];
  const untilBarEnds = Math.min(...ends.filter((end) => end > 0));
  return {
    inTheWay,
    ofSeveral: wish.targets.length > 1,
    barExpired: given > 0 && left <= 0,
    untilBarEnds: Number.isFinite(untilBarEnds) ? Math.ceil(untilBarEnds) : undefined,
  };
}
