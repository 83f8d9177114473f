import { randomUUID } from "node:crypto";
import { restoreReviewLifecycle } from "../../lifecycles/restore-review/lifecycle.ts";
import type { Finding, ReturnedToken } from "../../lifecycles/restore-review/restore-review.ts";
import { create } from "../lifecycle/create.ts";
import { announce, startEpoch } from "../lifecycle/journal.ts";
import { lockThings } from "../lifecycle/locks.ts";
import { collectThingStores, storeOf } from "../lifecycle/things.ts";
import { applyVerb } from "../lifecycle/verbs.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { parkAll } from "./parked.ts";
import { findLiveReview, restoreReviewStore } from "./reviews.ts";
import type { Standing } from "./standing.ts";

const { kind } = restoreReviewLifecycle;
const STORES = collectThingStores([restoreReviewStore]);
const ACTOR = "millwright";

export interface FoundRestore {
  readonly findings: readonly Finding[];
  readonly standing: Standing;
  /** The highest that anybody has seen; 0: nobody has. */
  readonly seenGeneration: number;
  /** The tokens that were revoked, as far as anybody remembers. */
  readonly revoked: readonly ReturnedToken[];
  readonly replica: string;
}

/** Parks everything and says why, in one transaction. A restore that is found while another is under review is added to that one. */
export async function beginReview(
  tx: Transaction,
  found: FoundRestore,
): Promise<{ readonly id: string; readonly generation: number }> {
  const live = await findLiveReview(tx);
  const id = live?.id ?? `restore-${randomUUID().slice(0, 8)}`;
  await lockThings(tx, [{ kind, id }]);
  const generation = await renewIdentity(tx, found);
  await parkAll(tx);
  const { findings, standing, replica } = found;
  const facts = {
    findings: [...(live?.facts.findings ?? []), ...findings],
    asOf: standing.newestAt?.toISOString() ?? null,
    returnedTokens: await returnedTokens(tx, [...(live?.facts.returnedTokens ?? []), ...found.revoked]),
    foundBy: replica,
  };
  if (live) await applyVerb(tx, STORES, { kind, id, owner: "other", name: "restored_again", actor: ACTOR, facts });
  else await create(tx, storeOf(STORES, kind), { id, row: { facts }, actor: ACTOR });
  announce(tx);
  failPoint("restore:begun");
  return { id, generation };
}

async function renewIdentity(tx: Transaction, { standing: { actual }, seenGeneration }: FoundRestore): Promise<number> {
  await startEpoch(tx);
  const [row] = await tx.query<{ generation: number }>(
    `update database_identity
        set generation = greatest(generation, $4) + 1, system_identifier = $1, database_oid = $2, journal_oid = $3 returning generation`,
    [actual.systemIdentifier, actual.databaseOid, actual.journalOid, seenGeneration],
  );
  if (!row) throw new Error("the database does not say which it is");
  return row.generation;
}

/** Of tokens that were revoked, those that the backup lets in again. */
async function returnedTokens(db: Queryable, revoked: readonly ReturnedToken[]): Promise<readonly ReturnedToken[]> {
  const known = new Map(revoked.map((token) => [token.id, token]));
  if (known.size === 0) return [];
  const rows = await db.query<{ id: string }>(
    "select id from tokens where id = any($1) and revoked_at is null and (expires_at is null or expires_at > now()) order by id",
    [[...known.keys()]],
  );
  return rows.flatMap(({ id }) => known.get(id) ?? []);
}
