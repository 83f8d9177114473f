import type { Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { catalogFields, defineCatalogTable } from "./catalog-table.ts";

/** What plans name as cloud_init_ref. */
export interface CloudInitRow {
  readonly name: string;
  readonly content: string;
  readonly createdAt: Date;
}

export const cloudInitTable = defineCatalogTable<CloudInitRow>({
  ...{ table: "cloud_init_documents", called: "cloud-init documents" },
  // The content may hold what not every viewer is to read: nobody finds out by a filter what is in it.
  fields: defineFields<CloudInitRow>()(catalogFields<CloudInitRow>("document")),
  columns: { name: "name", content: "content", createdAt: "created_at" },
});

/** The caller holds the document's lock. Returns whether the row is new. */
export async function insertCloudInit(
  tx: Transaction,
  document: Omit<CloudInitRow, "createdAt"> & { readonly createdBy: string },
): Promise<boolean> {
  const inserted = await tx.execute(
    `insert into cloud_init_documents (name, content, created_by) values ($1, $2, $3) on conflict do nothing`,
    [document.name, document.content, document.createdBy],
  );
  failPoint("cloud-init:written");
  return inserted > 0;
}

/** The caller holds it alone, and knows that nobody needs it. */
export async function removeCloudInit(tx: Transaction, name: string): Promise<void> {
  await tx.execute(`delete from cloud_init_documents where name = $1`, [name]);
}
