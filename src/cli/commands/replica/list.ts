import { type Replica, ReplicaSchema, SystemService } from "../../../../contract/millwright/v1/system_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";

function stateOf({ living, stopping, draining, working }: Replica): string {
  if (!living) return "lost";
  if (stopping) return "stopping";
  if (!draining) return "at work";
  return Object.keys(working).length === 0 ? "drained" : "draining";
}

const workOf = ({ working }: Replica): string =>
  Object.entries(working)
    .sort()
    .map(([kind, things]) => `${kind}=${things}`)
    .join(" ");

const columns = (now: Date): readonly Column<Replica>[] => [
  { title: "REPLICA", cell: ({ id }) => id },
  { title: "HOST", cell: ({ host }) => host },
  {
    title: "STATE",
    cell: stateOf,
    tone: (replica) => (replica.living ? undefined : "bad"),
  },
  { title: "VERSION", cell: ({ version, commit }) => [version, commit.slice(0, 12)].filter(Boolean).join(" ") },
  { title: "SCHEMA", cell: ({ schema }) => schema },
  { title: "WORKS ON", cell: workOf },
  {
    title: "LOGS",
    cell: ({ logLevel, logLevelUntil }) => (logLevel === "" ? "" : `${logLevel} until ${clockTime(logLevelUntil)}`),
    plain: ({ logLevel }) => logLevel,
  },
  { title: "UP", cell: ({ startedAt }) => age(startedAt, now), plain: ({ startedAt }) => isoTime(startedAt) },
  { title: "SEEN", cell: ({ seenAt }) => `${age(seenAt, now)} ago`, plain: ({ seenAt }) => isoTime(seenAt) },
];

export async function listReplicas(session: Session): Promise<undefined> {
  const client = await session.client(SystemService);
  const { replicas } = await client.listReplicas({}, { signal: session.signal });
  await printReplicas(session, replicas);
  return undefined;
}

export const printReplicas = (session: Session, replicas: readonly Replica[]): Promise<void> =>
  printList(
    session,
    { items: replicas, columns: columns(session.style().now), json: (item) => jsonOf(ReplicaSchema, item) },
    "No replicas.",
  );
