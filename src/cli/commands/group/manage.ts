import { CliError, EXIT } from "../../client/errors.ts";
import type { Json } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column, OneThing } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";
import { listAll } from "../options/list-all.ts";
import type { Choice, GroupOptions } from "./group.ts";

/** As the API sends it. */
interface Group {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly parent_id: string | null;
  readonly depth: number;
  readonly default_workflow_id: string | null;
  readonly auto_provision: boolean | null;
  readonly auto_promote: boolean | null;
  readonly effective_workflow_id: string | null;
  readonly effective_auto_provision: boolean;
  readonly effective_auto_promote: boolean;
}

const GROUPS = "/api/v1/groups";
const at = (id: string) => `${GROUPS}/${encodeURIComponent(id)}`;
const json = (group: Group): Json => structuredClone(group) as unknown as Json;
const yesOrNo = (value: boolean) => (value ? "yes" : "no");
/** Its own word, or what it inherits and that it does. */
const said = (own: boolean | null, effective: boolean) =>
  own === null ? `${yesOrNo(effective)} (inherited)` : yesOrNo(own);

const columns: readonly Column<Group>[] = [
  { title: "NAME", cell: ({ name, depth }) => `${"  ".repeat(depth)}${name}`, plain: ({ name }) => name },
  { title: "ID", cell: ({ id }) => id },
  { title: "WORKFLOW", cell: ({ effective_workflow_id: id }) => id ?? "" },
  { title: "PROVISIONS", cell: ({ effective_auto_provision: does }) => yesOrNo(does) },
  { title: "PROMOTES", cell: ({ effective_auto_promote: does }) => yesOrNo(does) },
  { title: "DESCRIPTION", cell: ({ description }) => description },
];

/** Groups are known by their names, which are unique; ids are for scripts. */
async function findGroup(session: Session, word: string): Promise<Group> {
  const groups = await listAll<Group>(session, GROUPS);
  const found = groups.find(({ id }) => id === word) ?? groups.find(({ name }) => name === word);
  if (found) return found;
  throw new CliError(EXIT.notFound, `there is no group ${word}`, "millwright group list");
}
export async function groupNameOf(session: Session, id: string): Promise<string> {
  const { data } = (await session.rest({ method: "GET", path: at(id) })) as { data: Group };
  return data.name;
}
export const groupIdOf = async (session: Session, word: string): Promise<string> => (await findGroup(session, word)).id;

export async function listGroups(
  session: Session,
  { parent, roots }: { readonly parent?: string; readonly roots?: boolean },
): Promise<undefined> {
  const parentId = parent === undefined ? undefined : await groupIdOf(session, parent);
  const items = await listAll<Group>(session, GROUPS, {
    parent_id: parentId,
    root_only: roots === true ? "true" : undefined,
  });
  await printList(session, { items: inTreeOrder(items), columns, json }, "No groups.");
}

/** Each right below its parent, as people draw trees. */
function inTreeOrder(groups: readonly Group[]): Group[] {
  const ids = new Set(groups.map(({ id }) => id));
  const below = Map.groupBy(groups, ({ parent_id: parent }) => (parent !== null && ids.has(parent) ? parent : ""));
  const walk = (parent: string): Group[] => (below.get(parent) ?? []).flatMap((group) => [group, ...walk(group.id)]);
  return walk("");
}

export async function showGroup(session: Session, word: string): Promise<undefined> {
  const group = await findGroup(session, word);
  const above = await listAll<Group>(session, `${at(group.id)}/ancestors`);
  const nodes = (await session.rest({ method: "GET", path: `${at(group.id)}/nodes`, query: { limit: 1 } })) as {
    readonly total: number;
  };
  const thing: OneThing<Group> = {
    item: group,
    columns,
    json,
    details: [
      ["Group", group.name, "bold"],
      ["Id", group.id],
      ["Description", group.description],
      ["In", above.map(({ name }) => name).join(" / ")],
      ["Workflow", workflowText(group)],
      ["Auto-provision", said(group.auto_provision, group.effective_auto_provision)],
      ["Auto-promote", said(group.auto_promote, group.effective_auto_promote)],
      ["Nodes", String(nodes.total)],
    ],
  };
  await printOne(session, thing);
}

function workflowText({ default_workflow_id: own, effective_workflow_id: effective }: Group): string {
  if (own !== null) return own;
  return effective === null ? "none" : `${effective} (inherited)`;
}

const CHOSEN: Readonly<Record<Choice, boolean | null>> = { yes: true, no: false, inherit: null };
const chosen = (choice: Choice | undefined) => (choice === undefined ? undefined : CHOSEN[choice]);
const given = (text: string | undefined) => (text === "" ? null : text);

async function bodyOf(session: Session, options: GroupOptions) {
  const { parent } = options;
  return {
    description: given(options.description),
    parent_id: parent === undefined || parent === "" ? given(parent) : await groupIdOf(session, parent),
    default_workflow_id: given(options.workflow),
    auto_provision: chosen(options.autoProvision),
    auto_promote: chosen(options.autoPromote),
  };
}

export async function createGroup(session: Session, name: string, options: GroupOptions): Promise<undefined> {
  const body = { name, ...(await bodyOf(session, options)) };
  const { data } = (await session.rest({ method: "POST", path: GROUPS, body })) as { data: Group };
  await printDone(session, `Group ${data.name} created, as ${data.id}.`, { id: data.id, name: data.name });
}

export async function setGroup(session: Session, word: string, options: GroupOptions): Promise<undefined> {
  const id = await groupIdOf(session, word);
  const body = { name: options.name, ...(await bodyOf(session, options)) };
  const { data } = (await session.rest({ method: "PATCH", path: at(id), body })) as { data: Group };
  await printDone(session, `Group ${data.name} changed.`, { id, name: data.name });
}

export async function deleteGroup(session: Session, word: string, { yes }: ConfirmOptions): Promise<undefined> {
  const { id, name } = await findGroup(session, word);
  if (!yes) await confirm(session, { what: `Delete group ${name}?` });
  await session.rest({ method: "DELETE", path: at(id) });
  await printDone(session, `Group ${name} deleted.`, { id, name });
}
