import type { SecretStore } from "../access/secrets.ts";
import { type CatalogTable, catalogFields, defineCatalogTable } from "../catalog/catalog-table.ts";
import { FLAG, flagSql } from "../device/bmc-device-fields.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { defineFields } from "../postgres/list-fields.ts";

export interface FleetSite {
  readonly name: string;
  readonly url: string;
  readonly description: string;
  readonly isEnabled: boolean;
  readonly retainInMaas: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

const keyName = (site: string): string => `fleet-site/${site}`;

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<FleetSite>()({
  ...catalogFields<FleetSite>("site"),
  url:            { type: "text", sql: "t.url", sort: "set", doc: "Its MAAS.", of: ({ url }) => url },
  description:    { type: "text", sql: "t.description", doc: "What people say about it.", of: ({ description }) => description },
  enabled:        { type: FLAG, sql: flagSql("t.is_enabled"), doc: "Nodes may be onboarded there.", of: ({ isEnabled }) => String(isEnabled) },
  retain_in_maas: { type: FLAG, sql: flagSql("t.retain_in_maas"), doc: "Nodes that leave stay in MAAS.", of: ({ retainInMaas }) => String(retainInMaas) },
  updated_at:     { type: "time", sql: "t.updated_at", sort: "set", doc: "When it was changed last.", of: ({ updatedAt }) => updatedAt },
});

export const fleetSites: CatalogTable<FleetSite> = defineCatalogTable<FleetSite>({
  ...{ table: "fleet_sites", called: "fleet sites", fields: FIELDS },
  columns: {
    name: "name",
    url: "url",
    description: "description",
    isEnabled: "is_enabled",
    retainInMaas: "retain_in_maas",
    createdAt: "created_at",
    updatedAt: "updated_at",
  },
});

export type SiteSettings = Pick<FleetSite, "name" | "url" | "description" | "isEnabled" | "retainInMaas">;

/** The caller holds the site's lock. Returns whether the row is new; the key is kept only then. */
export async function insertSite(
  tx: Transaction,
  secrets: SecretStore,
  site: SiteSettings & { readonly apiKey: string; readonly createdBy: string },
): Promise<boolean> {
  const inserted = await tx.execute(
    `insert into fleet_sites (name, url, description, is_enabled, retain_in_maas, created_by)
     values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
    [site.name, site.url, site.description, site.isEnabled, site.retainInMaas, site.createdBy],
  );
  if (inserted === 0) return false;
  await putKey(tx, secrets, { ...site, apiKey: site.apiKey });
  failPoint("fleet-sites:written");
  return true;
}

/** The caller holds the site's lock. Without a key the one on record stays. */
export async function updateSite(
  tx: Transaction,
  secrets: SecretStore,
  site: SiteSettings & { readonly apiKey: string | undefined },
): Promise<void> {
  await tx.execute(
    `update fleet_sites set url = $2, description = $3, is_enabled = $4, retain_in_maas = $5, updated_at = now() where name = $1`,
    [site.name, site.url, site.description, site.isEnabled, site.retainInMaas],
  );
  const { apiKey } = site;
  if (apiKey !== undefined) await putKey(tx, secrets, { ...site, apiKey });
  failPoint("fleet-sites:changed");
}

/** The caller holds it alone, and knows that nothing needs it. */
export async function removeSite(tx: Transaction, secrets: SecretStore, name: string): Promise<void> {
  await tx.execute(`delete from fleet_sites where name = $1`, [name]);
  await secrets.remove(tx, keyName(name));
  failPoint("fleet-sites:removed");
}

/** With the address that it was given for: whoever reads both at different moments must not send a new key to an old place. */
const putKey = (
  tx: Transaction,
  secrets: SecretStore,
  { name, url, apiKey }: { readonly name: string; readonly url: string; readonly apiKey: string },
): Promise<void> => secrets.put(tx, keyName(name), JSON.stringify({ url, apiKey }));

/** For the code that calls MAAS; no answer to a caller carries it. Undefined: there is none for this address. */
export async function getApiKey(
  db: Queryable,
  secrets: SecretStore,
  site: Pick<FleetSite, "name" | "url">,
): Promise<string | undefined> {
  const kept = await secrets.get(db, keyName(site.name));
  if (kept === undefined) return undefined;
  const { url, apiKey } = JSON.parse(kept) as { readonly url: string; readonly apiKey: string };
  return url === site.url ? apiKey : undefined;
}
