import {
  type FleetNode,
  type FleetNodeDetail,
  FleetNodeDetailSchema,
  FleetNodeSchema,
} from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column, Detail } from "../../terminal/output.ts";
import { printOne } from "../../terminal/printing.ts";
import type { Tone } from "../../terminal/table.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";

const TONES: { readonly [state: string]: Tone } = {
  active: "good",
  quarantined: "bad",
  offline: "bad",
  retired: "dim",
  deleted: "dim",
};
const toneOf = ({ state }: FleetNode): Tone => TONES[state] ?? "busy";

/** The inventory view: coarse states, and nothing finer. */
export const nodeColumns: readonly Column<FleetNode>[] = [
  { title: "HOSTNAME", cell: ({ hostname }) => hostname },
  { title: "STATE", cell: ({ state }) => state, tone: toneOf },
  {
    title: "SINCE",
    cell: ({ stateSince }, now) => age(stateSince, now),
    plain: ({ stateSince }) => isoTime(stateSince),
  },
  { title: "SITE", cell: ({ site }) => site },
  { title: "PROFILE", cell: ({ profile }) => profile },
  { title: "SKU", cell: ({ sku }) => sku, minor: true },
  { title: "MODE", cell: ({ mode }) => mode, minor: true },
  { title: "IPMI IP", cell: ({ ipmiIp }) => ipmiIp || "-", plain: ({ ipmiIp }) => ipmiIp },
  { title: "MACHINE", cell: ({ machineId }) => machineId, minor: true },
  { title: "ID", cell: ({ id }) => id, short: { cell: ({ id }) => `${id.slice(0, 11)}…`, least: 12 } },
];
export const nodeJson = (node: FleetNode) => jsonOf(FleetNodeSchema, node);
const detailJson = (detail: FleetNodeDetail) => jsonOf(FleetNodeDetailSchema, detail);

const jobTone = (state: string): Tone | undefined =>
  state.startsWith("failed") ? "bad" : state === "completed" || state === "reconciled" ? "good" : "busy";

function stageText({ stage, round, stageRetries }: NonNullable<FleetNodeDetail["job"]>): string {
  const more = [
    ...(round > 1 ? [`round ${round}`] : []),
    ...(stageRetries > 0 ? [`${stageRetries} ${stageRetries === 1 ? "try" : "tries"} failed`] : []),
  ];
  return more.length === 0 ? stage : `${stage} (${more.join(", ")})`;
}

/** The lifecycle detail view. */
function detailsOf({ node, job, maas, nextCommand, nextWhy, agent }: FleetNodeDetail, now: Date): Detail[] {
  if (!node) return [];
  return [
    ["Node", node.hostname, "bold"],
    ["Id", node.id],
    ["State", node.state, toneOf(node)],
    ["Since", node.stateSince ? `${clockTime(node.stateSince)}, ${age(node.stateSince, now)} ago` : ""],
    ["Quarantined", node.quarantineReason, "bad"],
    ["Site", `${node.site}, profile ${node.profile}, sku ${node.sku}, ${node.mode}`],
    ["Machine", node.ipmiIp === "" ? node.machineId : `${node.machineId}, BMC ${node.ipmiIp}`],
    ["Workflow", job ? [job.type, job.mode].filter(Boolean).join(" ") : "none so far"],
    ["Workflow state", job?.state ?? "", job && jobTone(job.state)],
    ["Stage", job ? stageText(job) : ""],
    ["Attempt", job ? String(job.attempt) : ""],
    ["Failure class", job?.failureClass ?? "", "bad"],
    ["Message", job?.message ?? ""],
    ["Run", job?.runId ?? ""],
    [
      "MAAS",
      maasText(maas, now) || (node.systemId === "" ? "not bound to a machine" : `${node.systemId}, not seen yet`),
    ],
    ["Agent", agentText(agent, now), agent?.health === "unhealthy" ? "bad" : undefined],
    ["Next", nextCommand === "" ? nextWhy : nextCommand, nextCommand === "" ? undefined : "bold"],
    ["Why", nextCommand === "" ? "" : nextWhy],
  ];
}

function maasText(maas: FleetNodeDetail["maas"], now: Date): string {
  if (!maas) return "";
  const words =
    maas.statusName === "" || maas.statusName === maas.state ? maas.state : `${maas.state} (${maas.statusName})`;
  return maas.seenAt ? `${words}, seen ${clockTime(maas.seenAt)}, ${age(maas.seenAt, now)} ago` : words;
}

function agentText(agent: FleetNodeDetail["agent"], now: Date): string {
  if (!agent) return "none has enrolled";
  const { seenAt, health, message, version } = agent;
  const heard = seenAt ? `heard ${clockTime(seenAt)}, ${age(seenAt, now)} ago` : "not heard since it enrolled";
  const said = message === "" ? health : `${health} (${message})`;
  return [said, heard, version === "" ? "" : `version ${version}`].filter((text) => text !== "").join(", ");
}

/** The one line of a node that is shown among several, and the columns of its CSV. */
const detailColumns: readonly Column<FleetNodeDetail>[] = [
  ...nodeColumns.map(
    ({ title, cell }): Column<FleetNodeDetail> => ({
      title,
      cell: ({ node }, now) => (node ? cell(node, now) : ""),
    }),
  ),
  { title: "WORKFLOW STATE", cell: ({ job }) => job?.state ?? "" },
  { title: "STAGE", cell: ({ job }) => job?.stage ?? "" },
  { title: "ATTEMPT", cell: ({ job }) => String(job?.attempt ?? "") },
  { title: "FAILURE CLASS", cell: ({ job }) => job?.failureClass ?? "" },
  { title: "MAAS", cell: ({ maas }) => maas?.state ?? "" },
  { title: "NEXT", cell: ({ nextCommand }) => nextCommand },
];

export const printDetail = (session: Session, item: FleetNodeDetail): Promise<void> =>
  printOne(session, { item, columns: detailColumns, json: detailJson, details: detailsOf(item, new Date()) });
