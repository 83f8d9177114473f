import { AppError } from "../../../kernel/errors.ts";
import type { SecretStore } from "../../access/secrets.ts";
import { siteKey } from "../../access/site-key.ts";
import type { Database, Queryable } from "../../postgres/database.ts";
import { failPoint } from "../../postgres/fail-points.ts";
import { OLDEST_CURSOR, parseCursor, SETTLED } from "../journal.ts";
import { NO_SEAL, sealCode } from "./seal-chain.ts";

/** Read by whoever asks for it, since the secret store may be out of reach when a replica starts. */
export type SealKey = () => Promise<Buffer>;

const KEY_NAME = "journal-seals/key";

export function openSealKey(db: Database, secrets: SecretStore): SealKey {
  let known: Buffer | undefined;
  return async () => {
    if (known !== undefined) return known;
    const isMade = (await secrets.findNames(db, [KEY_NAME])).size > 0;
    if (!isMade && (await newestSeal(db))) throw keyGone();
    known = await siteKey(db, secrets, KEY_NAME);
    return known;
  };
}

/** Another key would make all seals look forged. */
const keyGone = () =>
  new AppError("failed_precondition", "the key of the journal's seals is gone from the secrets of the database", {
    next: "restore the table secrets from its backup; who gives up what the seals prove deletes all rows of journal_seals",
  });

/**
 * The hash of an entry `j`, made by the database, so that sealing reads no entries. It covers every column; a text within it cannot be
 * taken for two, since it is a JSON array.
 */
export const LEAF = `sha256(convert_to(json_build_array(j.epoch, j.xid::text, j.seq, (extract(epoch from j.at) * 1000000)::bigint,
  j.kind, j.id, j.version, j.type, j.from_state, j.to_state, j.owner, j.actor, j.address, j.reason, j.data)::text, 'UTF8'))`;

export interface Seal {
  readonly number: number;
  readonly to: string;
  readonly mac: Buffer;
  readonly sealedAt: Date;
}

const SEAL = `s.number, s.to_epoch || '.' || s.to_xid::text || '.' || s.to_seq as "to", s.mac, s.sealed_at as "sealedAt"`;

export async function newestSeal(db: Queryable): Promise<Seal | undefined> {
  const [seal] = await db.query<Seal>({
    name: "journal-seals-newest",
    text: `select ${SEAL} from journal_seals s order by s.number desc limit 1`,
  });
  return seal;
}

export async function findSeal(db: Queryable, number: number): Promise<Seal | undefined> {
  const [seal] = await db.query<Seal>({
    name: "journal-seals-find",
    text: `select ${SEAL} from journal_seals s where s.number = $1`,
    values: [number],
  });
  return seal;
}

/** No entry at or before its end is younger than this. */
export async function lastSealBefore(db: Queryable, time: Date): Promise<Seal | undefined> {
  const [seal] = await db.query<Seal>(
    `select ${SEAL} from journal_seals s where s.sealed_at < $1 order by s.sealed_at desc, s.number desc limit 1`,
    [time],
  );
  return seal;
}

interface Unsealed {
  readonly entries: number;
  readonly leaves: Buffer | null;
  readonly to: string | null;
}

/** The next entries that nobody can precede any more. It takes no transaction id, so that it holds no reader back. */
async function readUnsealed(db: Queryable, after: string, most: number): Promise<Unsealed | undefined> {
  const [next] = await db.query<Unsealed>({
    name: `journal-seals-unsealed-${most}`,
    text: `with next as materialized (
             select j.epoch, j.xid, j.seq, ${LEAF} as leaf from journal j
              where (j.epoch, j.xid, j.seq) > ($1::int, $2::xid8, $3::bigint) and ${SETTLED}
              order by j.epoch, j.xid, j.seq limit ${Math.floor(most)})
           select count(*)::int as entries, string_agg(leaf, ''::bytea order by epoch, xid, seq) as leaves,
                  (select epoch || '.' || xid::text || '.' || seq from next order by epoch desc, xid desc, seq desc limit 1) as "to"
             from next`,
    values: parseCursor(after),
  });
  return next;
}

/**
 * Seals what has been written since the newest seal, up to `most` entries; undefined: there was nothing. Two replicas that do it at once
 * read the same entries, and one of their seals counts.
 */
export async function sealNext(
  db: Queryable,
  key: Buffer,
  { now, most }: { readonly now: Date; readonly most: number },
): Promise<(Seal & { readonly entries: number }) | undefined> {
  const before = await newestSeal(db);
  const next = await readUnsealed(db, before?.to ?? OLDEST_CURSOR, most);
  if (!next || next.to === null || next.leaves === null) return undefined;
  const body = {
    number: (before?.number ?? 0) + 1,
    to: next.to,
    entries: next.entries,
    leaves: next.leaves,
    sealedAt: now,
  };
  const mac = sealCode(key, before?.mac ?? NO_SEAL, body);
  const [epoch, xid, seq] = parseCursor(body.to);
  await db.execute(
    `insert into journal_seals (number, to_epoch, to_xid, to_seq, entries, leaves, sealed_at, mac)
     values ($1, $2::int, $3::xid8, $4::bigint, $5, $6, $7, $8) on conflict do nothing`,
    [body.number, epoch, xid, seq, body.entries, body.leaves, body.sealedAt, mac],
  );
  failPoint("journal-seals:sealed");
  return { ...body, mac };
}

/** How many entries no seal covers yet, up to a bound, and since when the oldest of them waits. */
export async function countUnsealed(db: Queryable): Promise<{ readonly entries: number; readonly since: Date | null }> {
  const newest = await newestSeal(db);
  const [row] = await db.query<{ entries: number; since: Date | null }>({
    name: "journal-seals-count-unsealed",
    text: `select count(*)::int as entries, min(n.at) as since
             from (select j.at from journal j where (j.epoch, j.xid, j.seq) > ($1::int, $2::xid8, $3::bigint)
                    order by j.epoch, j.xid, j.seq limit 10000) as n`,
    values: parseCursor(newest?.to ?? OLDEST_CURSOR),
  });
  return row ?? { entries: 0, since: null };
}
