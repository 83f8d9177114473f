import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import {
  countInGroup,
  DEEPEST_GROUP,
  type DeviceGroup,
  type DeviceGroupRecord,
  type GroupQuery,
  holdGroup,
  listGroups,
  putGroup,
  removeGroup,
} from "../../store/install/device-groups.ts";
import { listWorkflows } from "../../store/install/workflows.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { audit } from "../catalog/audit.ts";

export type { DeviceGroupRecord } from "../../store/install/device-groups.ts";

const KIND = "device_group";
/** Groups inherit from each other, so that a writer locks all of them. */
const TREE = { kind: KIND, id: "(all)" };

const unknownGroup = (id: string): AppError =>
  new AppError("not_found", `Group not found: ${id.slice(0, 80)}`, {
    field: "group_id",
    next: "millwright group list",
  });

async function findGroup(db: Queryable, id: string): Promise<DeviceGroupRecord> {
  const [group] = await listGroups(db, { ids: [id] });
  if (!group) throw unknownGroup(id);
  return group;
}

/** By its id or its name, as people configure it. */
export async function findGroupByWord(db: Queryable, word: string): Promise<DeviceGroupRecord | undefined> {
  const [byId] = await listGroups(db, { ids: [word] });
  return byId ?? (await listGroups(db, { name: word }))[0];
}

/** The group stays until the transaction is over: what is put into it finds it there. */
export async function holdKnownGroup(tx: Transaction, id: string): Promise<void> {
  if (!(await holdGroup(tx, id, "to be in it"))) throw unknownGroup(id);
}

export const getGroup = ({ db }: ServiceDeps, id: string): Promise<DeviceGroupRecord> => findGroup(db, id);
export const pageGroups = ({ db }: ServiceDeps, query: GroupQuery): Promise<DeviceGroupRecord[]> =>
  listGroups(db, query);

/** From the outermost inwards, without the group itself. */
export async function ancestorsOf(deps: ServiceDeps, id: string): Promise<DeviceGroupRecord[]> {
  const { path } = await getGroup(deps, id);
  return listGroups(deps.db, { ids: path.split("/").slice(1, -1) });
}

export async function descendantsOf(deps: ServiceDeps, id: string): Promise<DeviceGroupRecord[]> {
  const { path } = await getGroup(deps, id);
  return (await listGroups(deps.db, { below: path })).filter((group) => group.id !== id);
}

export async function createGroup(
  deps: ServiceDeps,
  caller: Caller,
  input: Omit<DeviceGroup, "id">,
): Promise<DeviceGroupRecord> {
  return write(deps, caller, { id: randomUUID(), ...input }, "created");
}

export async function updateGroup(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  patch: Partial<Omit<DeviceGroup, "id">>,
): Promise<DeviceGroupRecord> {
  return write(deps, caller, { id, ...patch }, "changed");
}

async function write(
  deps: ServiceDeps,
  caller: Caller,
  patch: Partial<DeviceGroup> & { readonly id: string },
  event: "created" | "changed",
): Promise<DeviceGroupRecord> {
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [TREE, { kind: KIND, id: patch.id }]);
    const before = event === "changed" ? await findGroup(tx, patch.id) : NOTHING_SAID;
    const group: DeviceGroup = {
      id: patch.id,
      name: patch.name ?? before.name,
      description: patch.description ?? before.description,
      parentId: patch.parentId === undefined ? before.parentId : patch.parentId,
      defaultWorkflowId: patch.defaultWorkflowId === undefined ? before.defaultWorkflowId : patch.defaultWorkflowId,
      autoProvision: patch.autoProvision === undefined ? before.autoProvision : patch.autoProvision,
      autoPromote: patch.autoPromote === undefined ? before.autoPromote : patch.autoPromote,
    };
    await check(tx, group);
    await putGroup(tx, group);
    await audit(tx, caller, { kind: KIND, id: group.id, type: event, data: { ...group } as JsonObject });
    return findGroup(tx, group.id);
  });
}

const NOTHING_SAID: Omit<DeviceGroup, "id"> = {
  name: "",
  description: "",
  parentId: null,
  defaultWorkflowId: null,
  autoProvision: null,
  autoPromote: null,
};

async function check(tx: Transaction, { id, name, parentId, defaultWorkflowId }: DeviceGroup): Promise<void> {
  const [taken] = await listGroups(tx, { name });
  if (taken && taken.id !== id) {
    throw new AppError("already_exists", `Group with name '${name}' already exists`, { field: "name" });
  }
  if (parentId !== null) {
    const parent = await findGroup(tx, parentId);
    if (parent.path.split("/").includes(id)) {
      throw new AppError("failed_precondition", "parent_id: a group cannot be below itself", { field: "parent_id" });
    }
    const deepest = Math.max(0, ...(await listGroups(tx, { below: await pathOf(tx, id) })).map(({ depth }) => depth));
    const own = (await listGroups(tx, { ids: [id] }))[0]?.depth ?? 0;
    if (parent.depth + 1 + Math.max(0, deepest - own) >= DEEPEST_GROUP) {
      throw new AppError("failed_precondition", `parent_id: groups go at most ${DEEPEST_GROUP} deep`, {
        field: "parent_id",
      });
    }
  }
  if (defaultWorkflowId === null) return;
  const [workflow] = await listWorkflows(tx, { ids: [defaultWorkflowId], activeOnly: true });
  if (!workflow) {
    throw new AppError("not_found", `Workflow not found: ${defaultWorkflowId}`, {
      field: "default_workflow_id",
      next: "millwright workflow list",
    });
  }
}

const pathOf = async (tx: Transaction, id: string): Promise<string> =>
  (await listGroups(tx, { ids: [id] }))[0]?.path ?? `/${id}`;

/** Only an empty one goes. */
export async function deleteGroup(deps: ServiceDeps, caller: Caller, id: string): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [TREE, { kind: KIND, id }]);
    const group = await findGroup(tx, id);
    await holdGroup(tx, id, "to delete it");
    const { nodes, groups } = await countInGroup(tx, id);
    if (nodes > 0 || groups > 0) {
      const [count, what] = nodes > 0 ? [nodes, "node"] : [groups, "group"];
      const held = count === 1 ? `1 ${what} is` : `${count} ${what}s are`;
      throw new AppError("failed_precondition", `Cannot delete group ${group.name}: ${held} in it`);
    }
    await removeGroup(tx, id);
    await audit(tx, caller, { kind: KIND, id, type: "deleted", data: { name: group.name } });
  });
}
