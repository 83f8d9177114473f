import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export const IMAGE_KINDS = ["iso", "disk", "netboot"] as const;
export type ImageKind = (typeof IMAGE_KINDS)[number];
/** How an installed system proves itself. */
export const SUCCESS_PROOFS = ["token", "ssh"] as const;
export type SuccessProof = (typeof SUCCESS_PROOFS)[number];

export interface ImageRow {
  readonly name: string;
  readonly kind: ImageKind;
  readonly location: string;
  readonly digest: string;
  readonly successProof: SuccessProof;
  readonly createdAt: Date;
}

/** In the order of their names. */
export const listImages = (
  db: Queryable,
  query: { readonly names?: readonly string[]; readonly after?: string | undefined; readonly limit?: number } = {},
): Promise<ImageRow[]> =>
  db.query<ImageRow>({
    text: `select name, kind, location, digest, success_proof as "successProof", created_at as "createdAt" from images
      where ($1::text[] is null or name = any($1)) and ($2::text is null or name > $2) order by name
      ${query.limit === undefined ? "" : `limit ${Math.floor(query.limit)}`}`,
    values: [query.names ?? null, query.after ?? null],
    ...(query.limit === undefined && { hot: true }),
  });

/** The caller holds the image's lock. Returns whether the row is new. */
export async function insertImage(
  tx: Transaction,
  image: Omit<ImageRow, "createdAt"> & { readonly createdBy: string },
): Promise<boolean> {
  const inserted = await tx.execute(
    `insert into images (name, kind, location, digest, success_proof, created_by) values ($1, $2, $3, $4, $5, $6)
     on conflict do nothing`,
    [image.name, image.kind, image.location, image.digest, image.successProof, image.createdBy],
  );
  failPoint("images:written");
  return inserted > 0;
}

/** The caller holds it alone, and knows that nobody needs it. */
export async function removeImage(tx: Transaction, name: string): Promise<void> {
  await tx.execute(`delete from images where name = $1`, [name]);
}

/**
 * Of the named images those that there are, in the order of their names; they cannot be removed until the end of the transaction.
 * Any number may hold them at once. What was removed a moment ago is not there any more.
 */
export const holdImages = (
  tx: Transaction,
  names: readonly string[],
): Promise<Pick<ImageRow, "name" | "kind" | "successProof">[]> =>
  tx.query({
    hot: true,
    text: `select name, kind, success_proof as "successProof" from images where name = any($1) order by name for key share`,
    values: [names],
  });

/** Waits for those who hold it; then nobody can until the end of the transaction. Returns whether there is one. */
export const holdImageAlone = async (tx: Transaction, name: string): Promise<boolean> =>
  (await tx.query("select 1 from images where name = $1 for update", [name])).length > 0;

/** An active run with a step that installs the image. */
export async function findRunOfImage(tx: Transaction, name: string): Promise<string | undefined> {
  const [run] = await tx.query<{ id: string }>(
    `select id from runs where state in ('PENDING', 'RUNNING') and plan @> $1::jsonb order by id limit 1`,
    [JSON.stringify({ steps: [{ payload: { image_ref: name } }] })],
  );
  return run?.id;
}
