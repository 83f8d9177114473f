import { CliError, EXIT, UsageError } from "../../client/errors.ts";
import type { Json } from "../../client/proto-json.ts";
import { listAll, listPlaces, restCollection } from "../../client/rest-collection.ts";
import type { Session } from "../../client/session.ts";
import { confirm } from "../../terminal/confirm.ts";
import type { Column, OneThing, Style } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";
import { type Tone, tableOf } from "../../terminal/table.ts";
import { ageOf, clockTime } from "../../terminal/times.ts";
import { groupIdOf, groupNameOf } from "../group/manage.ts";
import { type ListOptions, limitOf, printTotal } from "../options/list-options.ts";
import type { MoveOptions } from "./node.ts";

/** As the API sends it. */
interface Node {
  readonly id: string;
  readonly mac_address: string;
  readonly hostname: string | null;
  readonly ip_address: string | null;
  readonly state: string;
  readonly workflow_id: string | null;
  /** Its own, or that of the nearest group that names one. */
  readonly effective_workflow_id: string | null;
  readonly group_id: string | null;
  readonly tags: readonly string[];
  readonly arch: string;
  readonly boot_mode: string;
  readonly install_attempts: number;
  readonly last_install_error: string | null;
  readonly installation_progress: number | null;
  readonly state_changed_at: string;
  readonly last_seen_at: string | null;
  readonly erased_disks: readonly { readonly disk: string; readonly method: string; readonly verified: boolean }[];
  /** Absent in the answers of servers before steps. */
  readonly installation_steps?: readonly InstallationStep[];
}

interface InstallationStep {
  readonly sequence: number;
  readonly name: string;
  readonly type: string;
  readonly state: string;
  readonly attempts: number;
  readonly message: string | null;
}

interface Transition {
  readonly id: string;
  readonly from_state: string;
  readonly to_state: string;
  readonly triggered_by: string;
  readonly user_id: string | null;
  readonly comment: string | null;
  readonly metadata: Readonly<Record<string, Json>> | null;
  readonly created_at: string;
}

const TONES: Readonly<Record<string, Tone>> = { install_failed: "bad", active: "good", installing: "busy" };
const jsonOfNode = (node: Node): Json => structuredClone(node) as unknown as Json;
const BEGUN = new Set(["running", "retrying", "rebooting"]);
const progressOf = ({ state, installation_progress: progress, install_attempts: failed, ...node }: Node): string => {
  if (state !== "installing") return failed > 0 ? `${failed} failed` : "";
  const steps = node.installation_steps ?? [];
  const step = steps.find((each) => BEGUN.has(each.state));
  const where = step === undefined ? "" : `, ${step.name} (${steps.indexOf(step) + 1} of ${steps.length})`;
  return `${progress ?? 0} %${where}${failed > 0 ? `, ${failed} failed` : ""}`;
};

const workflowOf = ({ workflow_id: own, effective_workflow_id: effective }: Node): string =>
  own ?? (effective === null ? "" : `${effective} (inherited)`);

const nodeColumns: readonly Column<Node>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "MAC", cell: ({ mac_address }) => mac_address },
  { title: "HOSTNAME", cell: ({ hostname }) => hostname ?? "" },
  { title: "STATE", cell: ({ state }) => state, tone: ({ state }) => TONES[state] },
  {
    title: "SINCE",
    cell: (node, now) => ageOf(new Date(node.state_changed_at), now),
    plain: (node) => node.state_changed_at,
  },
  { title: "PROGRESS", cell: progressOf },
  { title: "WORKFLOW", cell: workflowOf, plain: ({ effective_workflow_id }) => effective_workflow_id ?? "" },
  { title: "TAGS", cell: ({ tags }) => tags.join(",") },
];

const nodes = restCollection<Node>("/api/v1/nodes");
const { at } = nodes;

async function getNode(session: Session, id: string): Promise<Node> {
  const data = await nodes.get(session, id);
  return data;
}

export async function listNodes(
  session: Session,
  options: ListOptions & { readonly state?: string; readonly group?: string; readonly tag?: string },
): Promise<undefined> {
  const { state, group, tag, filter, orderBy } = options;
  const groupId = group === undefined ? undefined : await groupIdOf(session, group);
  const query = { state, group_id: groupId, tag };
  const limit = limitOf(options);
  const isPlain = filter === undefined && orderBy === undefined && limit === undefined && !options.total;
  const asked = { ...query, filter, order_by: orderBy };
  const { items, total } = isPlain
    ? { items: await nodes.list(session, query), total: undefined }
    : await listPlaces<Node>(session, "/api/v1/nodes", asked, limit);
  await printList(session, { items, columns: nodeColumns, json: jsonOfNode }, "No nodes.");
  printTotal(session, items.length, options.total ? total : undefined);
}

export async function listStalledNodes(session: Session): Promise<undefined> {
  const items = await listAll<Node>(session, "/api/v1/nodes/stalled");
  await printList(session, { items, columns: nodeColumns, json: jsonOfNode }, "No node is stalled.");
}

async function historyOf(session: Session, id: string, limit: string): Promise<Transition[]> {
  const { data } = (await session.rest({ method: "GET", path: `${at(id)}/history`, query: { limit } })) as {
    data: Transition[];
  };
  return data;
}

const timeOf = (text: string) => clockTime({ seconds: BigInt(Math.floor(Date.parse(text) / 1_000)), nanos: 0 });

const transitionColumns: readonly Column<Transition>[] = [
  { title: "TIME", cell: ({ created_at }) => timeOf(created_at), plain: ({ created_at }) => created_at },
  { title: "FROM", cell: ({ from_state }) => from_state },
  { title: "TO", cell: ({ to_state }) => to_state, tone: ({ to_state }) => TONES[to_state] },
  {
    title: "BY",
    cell: ({ triggered_by, user_id }) => (user_id === null ? triggered_by : `${triggered_by} ${user_id}`),
  },
  { title: "WHY", cell: ({ comment, metadata }) => comment ?? wordsOf(metadata ?? {}) },
];

function wordsOf(metadata: Readonly<Record<string, Json>>): string {
  const told = (value: Json) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(metadata)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${told(value)}`)
    .join(", ");
}

export async function listNodeHistory(session: Session, id: string, limit: string): Promise<undefined> {
  const items = await historyOf(session, id, limit);
  const json = (each: Transition): Json => structuredClone(each) as unknown as Json;
  await printList(session, { items, columns: transitionColumns, json }, "Nothing has happened yet.");
}

const erasedWords = ({ disk, method, verified }: Node["erased_disks"][number]): string =>
  `${disk} (${method}, ${verified ? "read back" : "not blank when read back"})`;

function nodeThing(node: Node, group: string, history: readonly Transition[], style: Style): OneThing<Node> {
  const rows = history.map((each) =>
    transitionColumns.map((column) => ({ text: column.cell(each, style.now), tone: column.tone?.(each) })),
  );
  return {
    item: node,
    columns: nodeColumns,
    json: jsonOfNode,
    details: [
      ["Node", node.id, "bold"],
      ["State", `${node.state}, for ${ageOf(new Date(node.state_changed_at), style.now)}`, TONES[node.state]],
      ["Progress", progressOf(node)],
      ["Last error", node.last_install_error ?? "", "bad"],
      ["Erased", node.erased_disks.map(erasedWords).join(", ")],
      ["MAC", node.mac_address],
      ["Hostname", node.hostname ?? ""],
      ["Address", node.ip_address ?? ""],
      ["Boots with", `${node.arch}, ${node.boot_mode}`],
      ["Workflow", workflowOf(node)],
      ["Group", group],
      ["Tags", node.tags.join(", ")],
      ["Last seen", node.last_seen_at === null ? "never" : `${ageOf(new Date(node.last_seen_at), style.now)} ago`],
    ],
    sections: [
      ...stepsSection(node.installation_steps ?? [], style),
      ...(rows.length === 0
        ? []
        : [
            {
              title: "History",
              body: tableOf(
                transitionColumns.map(({ title }) => title),
                rows,
                style,
              ),
            },
          ]),
    ],
  };
}

const STEP_TONES: Readonly<Record<string, Tone>> = {
  completed: "good",
  failed: "bad",
  running: "busy",
  retrying: "busy",
};

function stepsSection(steps: readonly InstallationStep[], style: Style) {
  if (steps.length === 0) return [];
  const rows = steps.map((step) => [
    ...[String(step.sequence), step.name, step.type].map((text) => ({ text, tone: undefined })),
    { text: step.state, tone: STEP_TONES[step.state] },
    ...[step.attempts > 0 ? String(step.attempts) : "", step.message ?? ""].map((text) => ({ text, tone: undefined })),
  ]);
  return [{ title: "Steps", body: tableOf(["NO", "NAME", "TYPE", "STATE", "ATTEMPTS", "MESSAGE"], rows, style) }];
}

export async function showNode(session: Session, id: string): Promise<undefined> {
  const node = await getNode(session, id);
  const group = node.group_id === null ? "" : await groupNameOf(session, node.group_id);
  await printOne(session, nodeThing(node, group, await historyOf(session, id, "10"), session.style()));
}

const given = (text: string | undefined): string | null | undefined => (text === "" ? null : text);
const groupGiven = async (session: Session, text: string | undefined): Promise<string | null | undefined> =>
  text === undefined || text === "" ? given(text) : groupIdOf(session, text);

export async function registerNode(session: Session, options: Readonly<Record<string, string>>): Promise<undefined> {
  const body = {
    mac_address: options.mac,
    hostname: options.hostname,
    arch: options.arch,
    boot_mode: options.bootMode,
    group_id: await groupGiven(session, options.group),
  };
  const data = await nodes.create(session, body);
  await printDone(session, `Node ${data.id} is on record, as ${data.state}.`, { id: data.id, state: data.state });
}

export async function setNode(
  session: Session,
  id: string,
  { workflow, group, hostname }: Readonly<Record<string, string>>,
): Promise<undefined> {
  if (workflow === undefined && group === undefined && hostname === undefined)
    throw new UsageError("nothing to change: give --workflow, --group or --hostname");
  const group_id = await groupGiven(session, group);
  const body = { workflow_id: given(workflow), group_id, hostname: given(hostname) };
  await nodes.change(session, id, "PATCH", body);
  await printDone(session, `Node ${id} changed.`, { id });
}

export async function moveNode(
  session: Session,
  id: string,
  state: string,
  { comment, force, workflow, replacement, from, asks, yes }: MoveOptions,
): Promise<undefined> {
  if (asks && !yes) await confirm(session, asks(id));
  if (from !== undefined) await refuseOthers(session, id, from);
  const body = { state, comment, force, replacement_id: replacement, workflow_id: given(workflow) };
  const { data } = (await session.rest({ method: "PATCH", path: `${at(id)}/state`, body })) as { data: Node };
  await printDone(session, `Node ${id} is ${state}.${nextFor(data)}`, { id, state });
}

export async function confirmErased(
  session: Session,
  id: string,
  { comment, asks, yes }: MoveOptions,
): Promise<undefined> {
  if (asks && !yes) await confirm(session, asks(id));
  await session.rest({ method: "POST", path: `${at(id)}/confirm-erased`, body: { comment } });
  await printDone(session, `Node ${id} is retired: confirmed as erased.`, { id, state: "retired" });
}

export async function armNodes(session: Session, ids: readonly string[]): Promise<undefined> {
  for (const id of ids) {
    await session.rest({ method: "POST", path: `${at(id)}/arm`, body: {} });
    await printDone(session, `Node ${id} is armed: its next boot from the network is expected.`, { id });
  }
}

async function refuseOthers(session: Session, id: string, from: string): Promise<void> {
  const { state } = await getNode(session, id);
  if (state !== from)
    throw new CliError(
      EXIT.precondition,
      `node ${id} is ${state}; this is for one that is ${from}`,
      `millwright explain node ${id}`,
    );
}

/** Where it would wait for something that people may think is done. */
function nextFor({ id, state, effective_workflow_id: workflow }: Node): string {
  if (state === "pending" && workflow === null)
    return ` It waits for a workflow: millwright node set ${id} --workflow <id>`;
  if (state === "reprovision") return ` To let it install: millwright node requeue ${id}`;
  return "";
}

export async function changeTag(session: Session, verb: "tag" | "untag", id: string, tag: string): Promise<undefined> {
  await session.rest(
    verb === "tag"
      ? { method: "POST", path: `${at(id)}/tags`, body: { tag } }
      : { method: "DELETE", path: `${at(id)}/tags/${encodeURIComponent(tag)}` },
  );
  await printDone(session, `Node ${id} ${verb === "tag" ? "has" : "no longer has"} the tag ${tag}.`, { id, tag });
}

export async function showNodeStats(session: Session): Promise<undefined> {
  const { data } = (await session.rest({ method: "GET", path: "/api/v1/nodes/stats" })) as {
    data: { readonly by_state: Readonly<Record<string, number>> };
  };
  const items = Object.entries(data.by_state).map(([state, count]) => ({ state, count }));
  await printList(
    session,
    {
      items,
      columns: [
        { title: "STATE", cell: ({ state }) => state },
        { title: "NODES", cell: ({ count }) => String(count) },
      ],
      json: (each) => each,
    },
    "No nodes.",
  );
}
