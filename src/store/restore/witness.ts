import { type Duration, hours } from "../../kernel/time/duration.ts";
import type { ReturnedToken } from "../../lifecycles/restore-review/restore-review.ts";
import type { Queryable, Session } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import type { Memory } from "./judge.ts";

/** A server that comes back after this long has nothing to compare the database with. */
const FORGOTTEN_AFTER: Duration = hours(24 * 365);
/** Of the revocations, a replica remembers the last. */
const MOST_REVOKED = 1_000;

const NEWEST = `(select j.epoch || '.' || j.xid::text || '.' || j.seq from journal j order by j.epoch desc, j.xid desc, j.seq desc limit 1)`;
const SEEN = `i.database_id::text as "databaseId", i.generation, ${NEWEST} as cursor, now() as at`;

interface Seen extends Omit<Memory, "witness" | "beat" | "at"> {
  readonly at: Date;
}

/** The newest of what is committed. */
export async function readNewest(db: Queryable): Promise<Omit<Memory, "witness" | "beat"> | undefined> {
  const [row] = await db.query<Seen>({ hot: true, text: `select ${SEEN} from database_identity i` });
  return row && { ...row, at: row.at.toISOString() };
}

export interface Beat {
  readonly witness: string;
  /** What the database has confirmed to this witness last; null, or without a beat: nothing yet. */
  readonly last: Pick<Memory, "beat" | "generation"> | null;
  /** The tokens that were revoked before are known. */
  readonly revokedSince: string | null;
}

export interface Confirmed extends Omit<Memory, "witness"> {
  readonly revoked: readonly ReturnedToken[];
}

/**
 * The next beat of a witness; null where the database does not have its last one, or somebody has found a restore since. One whose answer
 * was lost is written again.
 */
export async function beat(db: Queryable, { witness, last, revokedSince }: Beat): Promise<Confirmed | null> {
  const isFirst = last === null || last.beat === 0;
  const write = isFirst
    ? `insert into database_witnesses (id, beat) values ($1, 1)
       on conflict (id) do update set beat = database_witnesses.beat + 1, seen_at = now() returning beat`
    : `update database_witnesses set beat = $2 + 1, seen_at = now()
        where id = $1 and beat between $2 and $2 + 1 and exists (select from database_identity where generation = $3) returning beat`;
  const [row] = await db.query<Seen & { beat: number }>({
    hot: true,
    text: `with written as (${write}) select w.beat, ${SEEN} from written w cross join database_identity i`,
    values: isFirst ? [witness] : [witness, last.beat, last.generation],
  });
  if (!row) return null;
  failPoint("restore:beat");
  return { ...row, at: row.at.toISOString(), revoked: await revokedTokens(db, revokedSince) };
}

async function revokedTokens(db: Queryable, since: string | null): Promise<readonly ReturnedToken[]> {
  const rows = await db.query<{ id: string; name: string; at: Date }>({
    hot: true,
    text: `select id, name, revoked_at as at from tokens
            where revoked_at > coalesce($1::timestamptz, '-infinity') and bound_to is null order by revoked_at desc limit ${MOST_REVOKED}`,
    values: [since],
  });
  return rows.toReversed().map(({ id, name, at }) => ({ id, name, revokedAt: at.toISOString() }));
}

/** Replicas have names of their own at each start: what nobody was heard of for a year is removed. */
export const forgetWitnesses = (db: Session): Promise<void> =>
  db.transaction(async (tx) => {
    await tx.execute(
      `with gone as (delete from database_witnesses where seen_at < now() - $1 * interval '1 ms' returning seen_at)
     update database_identity set witnesses_since = greatest(witnesses_since, (select max(seen_at) from gone)) where exists (select from gone)`,
      [FORGOTTEN_AFTER],
    );
    failPoint("restore:witnesses-forgotten");
  });
