import type { Queryable } from "../postgres/database.ts";

/** A fleet node as callers name it. */
export interface NodeRef {
  readonly id: string;
  readonly site: string;
  readonly hostname: string;
  readonly state: string;
}

/**
 * The nodes that callers may mean: by id, also those that are gone; by host name those that are not. Several sites may have nodes of one host
 * name.
 */
export async function findNodesNamed(db: Queryable, names: readonly string[]): Promise<readonly NodeRef[]> {
  return db.query<NodeRef>({
    hot: true,
    text: `select id, site, hostname, state from fleet_nodes
            where id = any($1) or (hostname = any($1) and state <> 'deleted') order by id`,
    values: [names],
  });
}
