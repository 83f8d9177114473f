import type { ClaimWish } from "../../src/store/lifecycle/claims/claims.ts";
import type { ThingKey } from "../../src/store/lifecycle/things.ts";
import type { Queryable } from "../../src/store/postgres/database.ts";

/** A set of one, on the claimant's own behalf. */
export const wishFor = (thing: ThingKey, claimant: ThingKey, reason: string): ClaimWish => ({
  targets: [thing],
  claimant,
  holder: claimant,
  reason,
});

/** Puts a claim on record, granted if the thing is free: also beside others of the same claimant, as nobody could get it by asking. */
export async function recordClaim(db: Queryable, thing: ThingKey, claimant: ThingKey, reason: string): Promise<void> {
  await db.query(
    `insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason, granted_at)
     select $1, $2, $3, $4, $5, case when exists (
       select from claims where thing_kind = $1 and thing_id = $2 and granted_at is not null) then null else now() end`,
    [thing.kind, thing.id, claimant.kind, claimant.id, reason],
  );
}
