import type { AppError } from "../../kernel/errors.ts";
import type { SecretStore } from "../access/secrets.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { catalogFields, defineCatalogTable } from "./catalog-table.ts";

export interface ClusterRow {
  readonly name: string;
  readonly apiUrl: string;
  readonly createdAt: Date;
}

const kubeconfigName = (cluster: string): string => `cluster/${cluster}`;

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<ClusterRow>()({
  ...catalogFields<ClusterRow>("cluster"),
  api_url: { type: "text", sql: "t.api_url", sort: "set", doc: "The server that its kubeconfig names.", of: ({ apiUrl }) => apiUrl },
});

export const clusterTable = defineCatalogTable<ClusterRow>({
  ...{ table: "clusters", called: "clusters", fields: FIELDS },
  columns: { name: "name", apiUrl: "api_url", createdAt: "created_at" },
});

export interface NewCluster {
  readonly name: string;
  readonly apiUrl: string;
  readonly kubeconfig: string;
  readonly createdBy: string;
}

/** The caller holds the cluster's lock. Returns whether the row is new; the kubeconfig is kept only then. */
export async function insertCluster(tx: Transaction, secrets: SecretStore, cluster: NewCluster): Promise<boolean> {
  const inserted = await tx.execute(
    `insert into clusters (name, api_url, created_by) values ($1, $2, $3) on conflict do nothing`,
    [cluster.name, cluster.apiUrl, cluster.createdBy],
  );
  if (inserted === 0) return false;
  await secrets.put(tx, kubeconfigName(cluster.name), cluster.kubeconfig);
  failPoint("clusters:written");
  return true;
}

/** The caller holds the cluster's lock. */
export async function replaceKubeconfig(
  tx: Transaction,
  secrets: SecretStore,
  { name, apiUrl, kubeconfig }: Omit<NewCluster, "createdBy">,
): Promise<void> {
  await tx.execute(`update clusters set api_url = $2 where name = $1`, [name, apiUrl]);
  await secrets.put(tx, kubeconfigName(name), kubeconfig);
  failPoint("clusters:replaced");
}

/** Those that have something to do in the cluster: to be drained there, or to be given back to it. */
export async function listMachinesOfCluster(tx: Transaction, name: string): Promise<readonly string[]> {
  const rows = await tx.query<{ id: string }>(
    `select id from machines
      where state <> 'RETIRED' and (facts ->> 'joinedCluster' = $1 or facts -> 'cordoned' ->> 'cluster' = $1
        or (facts ->> 'joinedCluster' is null and target_cluster = $1))
        and (state_data ->> 'drain' = 'true' or facts -> 'cordoned' ->> 'cluster' is not null)
      order by id`,
    [name],
  );
  return rows.map(({ id }) => id);
}

/** The caller holds it alone, and knows that nobody needs it. */
export async function removeCluster(tx: Transaction, secrets: SecretStore, name: string): Promise<void> {
  await tx.execute(`delete from clusters where name = $1`, [name]);
  await secrets.remove(tx, kubeconfigName(name));
}

/**
 * For the code that calls the clusters; no answer to a caller carries a kubeconfig. One query for many clusters: those that there
 * are. One that cannot be read is there as its error.
 */
export async function getKubeconfigs(
  db: Queryable,
  secrets: SecretStore,
  names: readonly string[],
): Promise<ReadonlyMap<string, string | AppError>> {
  const known = await clusterTable.list(db, { names });
  const found = await secrets.getMany(
    db,
    known.map(({ name }) => kubeconfigName(name)),
  );
  return new Map(
    known.flatMap(({ name }) => {
      const kubeconfig = found.get(kubeconfigName(name));
      return kubeconfig === undefined ? [] : [[name, kubeconfig]];
    }),
  );
}

/** Who still needs the cluster: a machine that is to join it or serves in it, or an active run with a step that names it. */
export async function findUserOfCluster(
  tx: Transaction,
  name: string,
): Promise<{ readonly kind: string; readonly id: string } | undefined> {
  const [user] = await tx.query<{ kind: string; id: string }>(
    `(select 'machine' as kind, id from machines
       where (target_cluster = $1 or (in_customer_cluster and facts ->> 'joinedCluster' = $1)) and state <> 'RETIRED'
       order by id limit 1)
     union all
     (select 'run', id from runs where state in ('PENDING', 'RUNNING') and plan @> $2::jsonb order by id limit 1)`,
    [name, JSON.stringify({ steps: [{ payload: { cluster_ref: name } }] })],
  );
  return user;
}
