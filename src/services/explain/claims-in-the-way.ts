import { type Claim, list, listOfHolders } from "../../store/lifecycle/claims.ts";
import { nameOf, type ThingKey, type ThingStores } from "../../store/lifecycle/things.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { ClaimLink } from "./explanation.ts";

/** Longer chains are no help to anybody, and whoever waits in a circle must not keep us for ever. */
const LONGEST_CHAIN = 20;

/** Who holds what the thing waits for, or comes before it in line; then whom those wait for, and so on. */
export async function findClaimsInTheWay(db: Queryable, stores: ThingStores, thing: ThingKey): Promise<ClaimLink[]> {
  const links: ClaimLink[] = [];
  const seen = new Set([nameOf(thing)]);
  let waiting: readonly ThingKey[] = [thing];
  while (waiting.length > 0 && links.length < LONGEST_CHAIN) {
    const before = await findBefore(db, waiting);
    const fresh = before.filter(({ holder }) => !seen.has(nameOf(holder)));
    for (const claim of fresh) {
      if (seen.has(nameOf(claim.holder))) continue;
      seen.add(nameOf(claim.holder));
      links.push(await linkOf(db, stores, claim));
    }
    waiting = fresh.map(({ holder }) => holder);
  }
  return links.slice(0, LONGEST_CHAIN);
}

/** Of each queue that one of them stands in: everybody before it. */
async function findBefore(db: Queryable, waiting: readonly ThingKey[]): Promise<Claim[]> {
  const wishes = (await listOfHolders(db, waiting)).filter(({ grantedAt }) => grantedAt === null);
  const queues = Map.groupBy(
    await list(
      db,
      wishes.map(({ thing }) => thing),
    ),
    ({ thing }) => nameOf(thing),
  );
  return wishes.flatMap(({ thing, holder }) => {
    const queue = queues.get(nameOf(thing)) ?? [];
    const at = queue.findIndex((claim) => nameOf(claim.holder) === nameOf(holder));
    return queue.slice(0, Math.max(at, 0));
  });
}

async function linkOf(db: Queryable, stores: ThingStores, claim: Claim): Promise<ClaimLink> {
  const { thing, holder, grantedAt, requestedAt } = claim;
  const [found] = (await stores.get(holder.kind)?.load(db, [holder.id]))?.things ?? [];
  const now = found === undefined ? claim.reason : `${found.state.name}${reasonOf(found.outcome?.reason)}`;
  return {
    thing,
    holder,
    since: grantedAt ?? requestedAt,
    reason: grantedAt === null ? `is before it in line for it (${now})` : `works on it (${now})`,
  };
}

const reasonOf = (reason: string | undefined): string => (reason === undefined ? "" : `: ${reason}`);
