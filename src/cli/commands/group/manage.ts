import { CliError, EXIT } from "../../client/errors.ts";
import type { Json } from "../../client/proto-json.ts";
import { listAll, restCollection } from "../../client/rest-collection.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column, OneThing } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";
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

const groups = restCollection<Group>("/api/v1/groups");
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
  const all = await groups.list(session);
  const found = all.find(({ id }) => id === word) ?? all.find(({ name }) => name === word);
  if (found) return found;
  throw new CliError(EXIT.notFound, `there is no group ${word}`, "millwright group list");
}
export const groupNameOf = async (session: Session, id: string): Promise<string> =>
  (await groups.get(session, id)).name;
export const groupIdOf = async (session: Session, word: string): Promise<string> => (await findGroup(session, word)).id;

export async function listGroups(
  session: Session,
  { parent, roots }: { readonly parent?: string; readonly roots?: boolean },
): Promise<undefined> {
  const parentId = parent === undefined ? undefined : await groupIdOf(session, parent);
  const items = await groups.list(session, {
    parent_id: parentId,
    root_only: roots === true ? "true" : undefined,
  });
  await printList(session, { items: inTreeOrder(items), columns, json }, "No groups.");
}

/** Each right below its parent, as people draw trees. */
function inTreeOrder(all: readonly Group[]): Group[] {
  const ids = new Set(all.map(({ id }) => id));
  const below = Map.groupBy(all, ({ parent_id: parent }) => (parent !== null && ids.has(parent) ? parent : ""));
  const walk = (parent: string): Group[] => (below.get(parent) ?? []).flatMap((group) => [group, ...walk(group.id)]);
  return walk("");
}

export async function showGroup(session: Session, word: string): Promise<undefined> {
  const group = await findGroup(session, word);
  const above = await listAll<Group>(session, `${groups.at(group.id)}/ancestors`);
  const nodes = (await session.rest({ method: "GET", path: `${groups.at(group.id)}/nodes`, query: { limit: 1 } })) as {
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
  const { id, name: made } = await groups.create(session, body);
  await printDone(session, `Group ${made} created, as ${id}.`, { id, name: made });
}

export async function setGroup(session: Session, word: string, options: GroupOptions): Promise<undefined> {
  const id = await groupIdOf(session, word);
  const body = { name: options.name, ...(await bodyOf(session, options)) };
  const { name } = await groups.change(session, id, "PATCH", body);
  await printDone(session, `Group ${name} changed.`, { id, name });
}

export async function deleteGroup(session: Session, word: string, { yes }: ConfirmOptions): Promise<undefined> {
  const { id, name } = await findGroup(session, word);
  if (!yes) await confirm(session, { what: `Delete group ${name}?` });
  await groups.remove(session, id);
  await printDone(session, `Group ${name} deleted.`, { id, name });
}
