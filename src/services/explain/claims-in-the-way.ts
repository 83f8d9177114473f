import { type Claim, list, listOfClaimants } from "../../store/lifecycle/claims/claims.ts";
import { nameOf, type ThingKey, type ThingStores } from "../../store/lifecycle/things.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { ClaimLink } from "./explanation.ts";

/** Longer chains help no reader, and a circle of waiting things must not keep us for ever. */
const LONGEST_CHAIN = 20;

/** Who holds what the thing waits for, or comes before it in line: all of them. Then whom those wait for, and so on. */
export async function findClaimsInTheWay(db: Queryable, stores: ThingStores, thing: ThingKey): Promise<ClaimLink[]> {
  const links: ClaimLink[] = [];
  const seen = new Set([nameOf(thing)]);
  let waiting: readonly ThingKey[] = [thing];
  while (waiting.length > 0) {
    const most = waiting[0] === thing ? Number.POSITIVE_INFINITY : LONGEST_CHAIN - links.length;
    const fresh = (await findBefore(db, waiting))
      .filter(({ holder }) => !seen.has(nameOf(holder)) && seen.add(nameOf(holder)))
      .slice(0, Math.max(most, 0));
    for (const claim of fresh) links.push(await linkOf(db, stores, claim));
    waiting = fresh.map(({ holder }) => holder);
  }
  return links;
}

/** Of each queue that one of them stands in: everybody before it who keeps it waiting. Others it may pass. */
async function findBefore(db: Queryable, waiting: readonly ThingKey[]): Promise<Claim[]> {
  const wishes = (await listOfClaimants(db, waiting)).filter(({ standing }) => standing === "waiting");
  const queues = Map.groupBy(
    await list(
      db,
      wishes.map(({ thing }) => thing),
    ),
    ({ thing }) => nameOf(thing),
  );
  return wishes.flatMap(({ thing, ticket }) =>
    (queues.get(nameOf(thing)) ?? []).filter(
      (claim) => claim.standing === "granted" || (claim.ticket < ticket && claim.barsLeft > 0),
    ),
  );
}

/** What the holder of a claim does with the thing, as the holder is now. */
export async function linkOf(db: Queryable, stores: ThingStores, claim: Claim): Promise<ClaimLink> {
  const { thing, holder, grantedAt, requestedAt } = claim;
  const [found] = (await stores.get(holder.kind)?.load(db, [holder.id]))?.things ?? [];
  const now = found === undefined ? claim.reason : `${found.state.name}${reasonOf(found.outcome?.reason)}`;
  return {
    thing,
    holder,
    since: grantedAt ?? requestedAt,
    reason: grantedAt === null ? `is ahead of it in the queue (${now})` : `works on it (${now})`,
  };
}

const reasonOf = (reason: string | undefined): string => (reason === undefined ? "" : `: ${reason}`);
