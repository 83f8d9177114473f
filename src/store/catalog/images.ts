import type { SeedFormat, SeedPlace } from "../../capabilities/seeds/seed.ts";
import type { Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { catalogFields, defineCatalogTable } from "./catalog-table.ts";

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
  /** What its installer reads; null: nothing but the address of its medium. */
  readonly seed: SeedFormat | null;
  /** Where the installer of an ISO looks for its seed; null: on a second medium, or over the network. */
  readonly seedOn: SeedPlace | null;
  readonly createdAt: Date;
}

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<ImageRow>()({
  ...catalogFields<ImageRow>("image"),
  kind:          { type: IMAGE_KINDS, sql: "t.kind", sort: "set", doc: "What it is.", of: ({ kind }) => kind },
  location:      { type: "text", sql: "t.location", sort: "set", doc: "Where it is fetched from; of a netboot image the id of its workflow.", of: ({ location }) => location },
  digest:        { type: "text", sql: "t.digest", doc: "Its digest.", of: ({ digest }) => digest },
  success_proof: { type: SUCCESS_PROOFS, sql: "t.success_proof", sort: "set", doc: "How an installed system proves itself.", of: ({ successProof }) => successProof },
  seed:          { type: "text", sql: "t.seed", sort: "nullable", doc: "What its installer reads; empty where it reads no seed.", of: ({ seed }) => seed },
  seed_on:       { type: "text", sql: "t.seed_on", sort: "nullable", doc: "Where the installer of an ISO reads its seed; empty for the usual place.", of: ({ seedOn }) => seedOn },
});

export const imageTable = defineCatalogTable<ImageRow>({
  ...{ table: "images", called: "images", fields: FIELDS },
  columns: {
    name: "name",
    kind: "kind",
    location: "location",
    digest: "digest",
    successProof: "success_proof",
    seed: "seed",
    seedOn: "seed_on",
    createdAt: "created_at",
  },
});

/** The caller holds the image's lock. Returns whether the row is new. */
export async function insertImage(
  tx: Transaction,
  image: Omit<ImageRow, "createdAt"> & { readonly createdBy: string },
): Promise<boolean> {
  const inserted = await tx.execute(
    `insert into images (name, kind, location, digest, success_proof, seed, created_by, seed_on) values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict do nothing`,
    [
      ...[image.name, image.kind, image.location, image.digest, image.successProof, image.seed, image.createdBy],
      image.seedOn,
    ],
  );
  failPoint("images:written");
  return inserted > 0;
}

/** The caller holds it alone, and knows that nobody needs it. */
export async function removeImage(tx: Transaction, name: string): Promise<void> {
  await tx.execute(`delete from images where name = $1`, [name]);
}

/** An active run with a step that installs the image. */
export async function findRunOfImage(tx: Transaction, name: string): Promise<string | undefined> {
  const [run] = await tx.query<{ id: string }>(
    `select id from runs where state in ('PENDING', 'RUNNING') and plan @> $1::jsonb order by id limit 1`,
    [JSON.stringify({ steps: [{ payload: { image_ref: name } }] })],
  );
  return run?.id;
}
