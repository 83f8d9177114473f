import { AppError } from "../../kernel/errors.ts";
import type { Database, Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import type { KeyRing } from "./key-ring.ts";
import { type SecretRow, seal } from "./sealing.ts";
import type { SecretKey } from "./secret-key-file.ts";
import { currentKeyId, lockKeys, makeCurrent, noteKeys } from "./secret-keys.ts";

export interface EncryptedAgain {
  readonly done: number;
  /** What no key in the file opens, with why. It stays as it is. */
  readonly unreadable: readonly AppError[];
  /** Where to go on; null: all were looked at. */
  readonly last: string | null;
}

/** How the key of a site is changed while it is at work. */
export interface KeyRotation {
  /** Refuses a key file that is not this database's, at the start, before anything is encrypted with it. */
  checkKeys(db: Database): Promise<void>;
  /** Reads the key file again, says for this replica which keys it has, and follows the database to the current one. */
  followKeys(db: Queryable, replica: string): Promise<void>;
  /** Encrypts a page of those that an earlier key encrypted with the current one. Several replicas may do it at once. */
  encryptAgain(db: Database, page: { readonly after: string; readonly most: number }): Promise<EncryptedAgain>;
}

/** The key that a value of this transaction is encrypted with, as the database says at this moment. */
export async function keyFor(tx: Queryable, ring: KeyRing): Promise<SecretKey> {
  const current = await currentKeyId(tx);
  return current === null ? ring.current() : ring.follow(current);
}

export const keyRotation = (ring: KeyRing): KeyRotation => ({
  checkKeys: (db) => db.transaction((tx) => checkKeys(tx, ring)),
  async followKeys(db, replica) {
    ring.reload();
    await noteKeys(
      db,
      replica,
      ring.all().map(({ id }) => id),
    );
    await keyFor(db, ring);
  },
  encryptAgain: (db, page) => encryptAgain(db, ring, page),
});

async function checkKeys(tx: Transaction, ring: KeyRing): Promise<void> {
  await lockKeys(tx);
  const own = ring.all().map(({ id }) => id);
  const rows = await tx.query<{ key_id: string }>("select key_id from secret_keys");
  const known = new Set(rows.map((row) => row.key_id));
  if (known.size > 0 && !own.some((id) => known.has(id))) {
    throw new AppError(
      "failed_precondition",
      `${ring.keyFile} does not hold the key that this database's secrets are encrypted with`,
      { next: "use the key file of the other replicas, or restore it from its backup (secret_key_file)" },
    );
  }
  // The first one to come makes its key the database's own; all later ones must have it.
  await tx.execute(
    "insert into secret_keys (key_id, is_first) select $1, not exists (select from secret_keys) on conflict do nothing",
    [ring.current().id],
  );
  const current = await currentKeyId(tx);
  if (current === null) await makeCurrent(tx, ring.current().id);
  else ring.follow(current);
}

async function encryptAgain(
  db: Database,
  ring: KeyRing,
  { after, most }: { readonly after: string; readonly most: number },
): Promise<EncryptedAgain> {
  const current = await keyFor(db, ring);
  const rows = await db.query<SecretRow>(
    "select name, key_id, nonce, ciphertext from secrets where key_id <> $1 and name > $2 order by name limit $3",
    [current.id, after, most],
  );
  const opened = rows.map((row) => ({ row, plaintext: ring.decrypt(row) }));
  const sealed = opened.flatMap(({ row, plaintext }) =>
    typeof plaintext === "string" ? [{ old: row.nonce, name: row.name, ...seal(row.name, plaintext, current) }] : [],
  );
  const done = sealed.length === 0 ? 0 : await db.transaction((tx) => replace(tx, current.id, sealed));
  return {
    done,
    unreadable: opened.flatMap(({ plaintext }) => (typeof plaintext === "string" ? [] : [plaintext])),
    last: rows.length < most ? null : (rows.at(-1)?.name ?? null),
  };
}

type Replacement = Pick<SecretRow, "name" | "nonce" | "ciphertext"> & { readonly old: Buffer };

/** Of a value that was stored anew meanwhile, nothing is changed. What a value is bound to stays with it. */
async function replace(tx: Transaction, keyId: string, rows: readonly Replacement[]): Promise<number> {
  const replaced = await tx.execute(
    `update secrets s
        set key_id = $1, nonce = r.nonce, ciphertext = r.ciphertext, bound_nonce = case when s.bound_nonce = s.nonce then r.nonce end
       from unnest($2::text[], $3::bytea[], $4::bytea[], $5::bytea[]) as r (name, old, nonce, ciphertext)
      where s.name = r.name and s.nonce = r.old`,
    [keyId, ...(["name", "old", "nonce", "ciphertext"] as const).map((column) => rows.map((row) => row[column]))],
  );
  failPoint("secrets:encrypted-again");
  return replaced;
}
