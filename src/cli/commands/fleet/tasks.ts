import { FleetNodeService, type FleetTask, FleetTaskSchema } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import type { Tone } from "../../terminal/table.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";
import type { ListOptions } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";

const TONES: { readonly [state: string]: Tone } = {
  completed: "good",
  failed: "bad",
  expired: "bad",
  cancelled: "dim",
};

const columns: readonly Column<FleetTask>[] = [
  { title: "TASK", cell: ({ taskType }) => taskType },
  { title: "NODE", cell: ({ hostname, nodeId }) => hostname || nodeId },
  { title: "STATE", cell: ({ state }) => state, tone: ({ state }) => TONES[state] ?? "busy" },
  {
    title: "SINCE",
    cell: ({ stateSince }, now) => age(stateSince, now),
    plain: ({ stateSince }) => isoTime(stateSince),
  },
  { title: "CREATED", cell: ({ createdAt }) => clockTime(createdAt), plain: ({ createdAt }) => isoTime(createdAt) },
  { title: "MESSAGE", cell: ({ message }) => message },
  { title: "RUN", cell: ({ runId }) => runId, minor: true },
  { title: "ID", cell: ({ id }) => id },
];

/** What agents were asked to do: of one node, or of all. */
export async function listTasks(session: Session, node: string | undefined, options: ListOptions): Promise<undefined> {
  const client = await session.client(FleetNodeService);
  const items = await readList(
    session,
    options,
    (query) => client.listNodeTasks({ ...query, node: node ?? "" }, { signal: session.signal }),
    ({ tasks }) => tasks,
  );
  await printList(session, { items, columns, json: (task) => jsonOf(FleetTaskSchema, task) }, "No tasks.");
}
