import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** A port that gets an address of its own. */
export interface RoceLink {
  /** As MAAS calls it, or its MAC address. */
  readonly port: string;
  readonly subnet: string;
  readonly ipAddress: string;
}

/** What the ports of one node get; the node need not be on record yet. */
export interface RoceAssignment {
  readonly site: string;
  readonly hostname: string;
  /** In the order of their ports; never empty. */
  readonly links: readonly RoceLink[];
  readonly createdAt: Date;
}

interface AssignmentRow {
  readonly site: string;
  readonly hostname: string;
  readonly links: readonly { readonly port: string; readonly subnet: string; readonly ip_address: string }[];
  readonly createdAt: Date;
}

export interface RoceQuery {
  readonly site?: string;
  readonly hostnames?: readonly string[];
  /** Those behind this one, in the order of sites and host names. */
  readonly after?: readonly string[] | undefined;
  readonly limit?: number;
}

export async function listRoceAssignments(db: Queryable, query: RoceQuery = {}): Promise<RoceAssignment[]> {
  const [afterSite = null, afterHost = null] = query.after ?? [];
  const rows = await db.query<AssignmentRow>(
    `select site, hostname, min(created_at) as "createdAt",
            jsonb_agg(jsonb_build_object('port', port, 'subnet', subnet::text, 'ip_address', host(ip_address)) order by port) as links
       from fleet_roce_links
      where ($1::text is null or site = $1) and ($2::text[] is null or hostname = any($2))
        and ($3::text is null or (site, hostname) > ($3, $4))
      group by site, hostname order by site, hostname limit $5`,
    [query.site ?? null, query.hostnames ?? null, afterSite, afterHost, query.limit ?? null],
  );
  return rows.map(({ links, ...row }) => ({
    ...row,
    links: links.map(({ ip_address: ipAddress, ...link }) => ({ ...link, ipAddress })),
  }));
}

export interface NewRoceAssignment extends Omit<RoceAssignment, "createdAt"> {
  readonly createdBy: string;
}

/** Each replaces what its node had; the caller holds the lock of the site. */
export async function putRoceAssignments(tx: Transaction, assignments: readonly NewRoceAssignment[]): Promise<void> {
  const rows = assignments.flatMap(({ site, hostname, links, createdBy }) =>
    links.map(({ port, subnet, ipAddress }) => ({
      ...{ site, hostname, port, subnet },
      ip_address: ipAddress,
      created_by: createdBy,
    })),
  );
  await removeLinks(tx, assignments);
  await tx.execute(
    `insert into fleet_roce_links (site, hostname, port, subnet, ip_address, created_by)
     select site, hostname, port, network(subnet), ip_address, created_by
       from jsonb_to_recordset($1) as r(site text, hostname text, port text, subnet inet, ip_address inet, created_by text)`,
    [JSON.stringify(rows)],
  );
  failPoint("fleet-roce:written");
}

/** The caller holds the lock of the site. Returns whether there was one. */
export async function removeRoceAssignment(tx: Transaction, site: string, hostname: string): Promise<boolean> {
  const removed = await removeLinks(tx, [{ site, hostname }]);
  failPoint("fleet-roce:removed");
  return removed > 0;
}

const removeLinks = (
  tx: Transaction,
  of: readonly { readonly site: string; readonly hostname: string }[],
): Promise<number> =>
  tx.execute(
    `delete from fleet_roce_links l using jsonb_to_recordset($1) as r(site text, hostname text)
      where l.site = r.site and l.hostname = r.hostname`,
    [JSON.stringify(of.map(({ site, hostname }) => ({ site, hostname })))],
  );

/** Who has one of these addresses at the site, other than these nodes. */
export async function findRoceAddressHolders(
  db: Queryable,
  query: { readonly site: string; readonly addresses: readonly string[]; readonly butFor: readonly string[] },
): Promise<readonly { readonly hostname: string; readonly ipAddress: string }[]> {
  return db.query(
    `select hostname, host(ip_address) as "ipAddress" from fleet_roce_links
      where site = $1 and ip_address = any($2::inet[]) and hostname <> all($3) order by hostname, ip_address`,
    [query.site, query.addresses, query.butFor],
  );
}
