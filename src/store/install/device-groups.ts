import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** What a group does not say itself (null), the next one above that does says for it. */
export interface DeviceGroup {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly parentId: string | null;
  readonly defaultWorkflowId: string | null;
  readonly autoProvision: boolean | null;
  readonly autoPromote: boolean | null;
}

export interface DeviceGroupRecord extends DeviceGroup {
  readonly effectiveWorkflowId: string | null;
  readonly effectiveAutoProvision: boolean;
  readonly effectiveAutoPromote: boolean;
  /** `/root/child/this`, by ids. */
  readonly path: string;
  readonly depth: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** The longest chain of groups. */
export const DEEPEST_GROUP = 16;

const COLUMNS = `g.id, g.name, g.description, g.parent_id as "parentId", g.default_workflow_id as "defaultWorkflowId",
  g.auto_provision as "autoProvision", g.auto_promote as "autoPromote", g.effective_workflow_id as "effectiveWorkflowId",
  g.effective_auto_provision as "effectiveAutoProvision", g.effective_auto_promote as "effectiveAutoPromote", g.path, g.depth,
  g.created_at as "createdAt", g.updated_at as "updatedAt"`;

export interface GroupQuery {
  readonly ids?: readonly string[];
  readonly name?: string;
  /** Null: those without one. */
  readonly parentId?: string | null;
  /** This path and all below it. */
  readonly below?: string;
}

/** Parents before their children, then by name. */
export async function listGroups(db: Queryable, query: GroupQuery = {}): Promise<DeviceGroupRecord[]> {
  const values: unknown[] = [];
  const at = (value: unknown) => `$${values.push(value)}`;
  const where = ["true"];
  if (query.ids) where.push(`g.id = any(${at(query.ids)})`);
  if (query.name !== undefined) where.push(`g.name = ${at(query.name)}`);
  if (query.parentId === null) where.push("g.parent_id is null");
  else if (query.parentId !== undefined) where.push(`g.parent_id = ${at(query.parentId)}`);
  if (query.below !== undefined) {
    // "0" comes right after "/": so this is the path itself and whatever has it and a slash before the rest.
    where.push(
      `(g.path = ${at(query.below)} or (g.path >= ${at(`${query.below}/`)} and g.path < ${at(`${query.below}0`)}))`,
    );
  }
  return db.query<DeviceGroupRecord>(
    `select ${COLUMNS} from device_groups g where ${where.join(" and ")} order by g.depth, g.name`,
    values,
  );
}

/**
 * Writes a group, new or changed, and recomputes what all groups inherit. The caller holds the lock of the tree, and has seen
 * that the name is free and the parent is not below it.
 */
export async function putGroup(tx: Transaction, group: DeviceGroup): Promise<void> {
  await tx.execute(
    `insert into device_groups (id, name, description, parent_id, default_workflow_id, auto_provision, auto_promote, path)
     values ($1, $2, $3, $4, $5, $6, $7, '/' || $1)
     on conflict (id) do update set name = excluded.name, description = excluded.description, parent_id = excluded.parent_id,
       default_workflow_id = excluded.default_workflow_id, auto_provision = excluded.auto_provision,
       auto_promote = excluded.auto_promote, updated_at = now()`,
    [
      group.id,
      group.name,
      group.description,
      group.parentId,
      group.defaultWorkflowId,
      group.autoProvision,
      group.autoPromote,
    ],
  );
  await tx.execute(
    `with recursive tree as (
       select g.id, '/' || g.id as path, 0 as depth, g.default_workflow_id as workflow_id, g.auto_provision as provision,
              g.auto_promote as promote
         from device_groups g where g.parent_id is null
       union all
       select g.id, tree.path || '/' || g.id, tree.depth + 1, coalesce(g.default_workflow_id, tree.workflow_id),
              coalesce(g.auto_provision, tree.provision), coalesce(g.auto_promote, tree.promote)
         from device_groups g join tree on g.parent_id = tree.id)
     update device_groups g
        set path = tree.path, depth = tree.depth, effective_workflow_id = tree.workflow_id,
            effective_auto_provision = coalesce(tree.provision, false), effective_auto_promote = coalesce(tree.promote, false)
       from tree where g.id = tree.id
        and (g.path, g.depth, g.effective_workflow_id, g.effective_auto_provision, g.effective_auto_promote)
            is distinct from (tree.path, tree.depth, tree.workflow_id, coalesce(tree.provision, false), coalesce(tree.promote, false))`,
  );
  failPoint("device-groups:written");
}

/**
 * Keeps a group as it is until the transaction is over. Whoever deletes it waits for those who put something into it, and then
 * sees what they put. Returns whether there is one.
 */
export async function holdGroup(tx: Transaction, id: string, why: "to be in it" | "to delete it"): Promise<boolean> {
  const strength = why === "to delete it" ? "for update" : "for key share";
  return (await tx.query(`select id from device_groups where id = $1 ${strength}`, [id])).length > 0;
}

export async function removeGroup(tx: Transaction, id: string): Promise<void> {
  await tx.execute(`delete from device_groups where id = $1`, [id]);
  failPoint("device-groups:removed");
}

/** How many nodes, and how many groups, are directly in it. */
export async function countInGroup(
  tx: Transaction,
  id: string,
): Promise<{ readonly nodes: number; readonly groups: number }> {
  const [counts] = await tx.query<{ nodes: number; groups: number }>(
    `select (select count(*) from installs where group_id = $1) as nodes,
            (select count(*) from device_groups where parent_id = $1) as groups`,
    [id],
  );
  return counts ?? { nodes: 0, groups: 0 };
}
