import {
  type GetSystemResponse,
  GetSystemResponseSchema,
  SystemService,
} from "../../../../contract/millwright/v1/system_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printOne } from "../../terminal/printing.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";

const columns: readonly Column<GetSystemResponse>[] = [
  { title: "VERSION", cell: ({ version }) => version },
  { title: "COMMIT", cell: ({ commit }) => commit.slice(0, 12) },
  { title: "SCHEMA", cell: ({ schema }) => schema },
  { title: "REPLICA", cell: ({ replicaId }) => replicaId },
  { title: "STARTED", cell: ({ startedAt }) => isoTime(startedAt) },
  { title: "DATABASE", cell: ({ databaseVersion }) => databaseVersion },
  { title: "CLOCK AHEAD", cell: ({ clockAheadSeconds: ahead }) => (ahead === undefined ? "" : `${ahead}s`) },
  { title: "CALLER", cell: ({ caller }) => caller?.name ?? "" },
  { title: "ROLES", cell: ({ caller }) => (caller?.roles ?? []).join(" ") },
];

/** How the server's host tells the time against the database, by whose clock work is timed; nothing before it is known. */
function clockText({ clockAheadSeconds: ahead, clockTrouble: trouble }: GetSystemResponse): string {
  if (ahead === undefined) return "";
  if (ahead === 0) return "as the database's";
  const compared = `${Math.abs(ahead)}s ${ahead < 0 ? "behind" : "ahead of"} the database's`;
  return trouble === "" ? compared : `${compared}; have both set by NTP`;
}

/** Nothing unless the database was restored from a backup, and nobody has said what is true. */
const restoreText = ({ restoreReview: review, parked }: GetSystemResponse): string =>
  review === "" ? "" : `${review} has not ended: ${parked} parked, devices take no commands; millwright restore review`;

/** Which server answers, and who it takes us for. */
export async function showSystem(session: Session): Promise<undefined> {
  const client = await session.client(SystemService);
  const system = await client.getSystem({}, { signal: session.signal });
  await printOne(session, {
    item: system,
    columns,
    json: (item) => jsonOf(GetSystemResponseSchema, item),
    details: [
      ["Version", system.version],
      ["Commit", system.commit],
      ["Schema", system.schema],
      ["Replica", system.replicaId],
      [
        "Started",
        system.startedAt ? `${clockTime(system.startedAt)}, ${age(system.startedAt, session.style().now)} ago` : "",
      ],
      ["Database", system.databaseVersion],
      ["Server clock", clockText(system), system.clockTrouble === "" ? undefined : "bad"],
      ["Restore", restoreText(system), system.restoreReview === "" ? undefined : "bad"],
      ["You are", system.caller?.name || "nobody in particular"],
      ["Your roles", (system.caller?.roles ?? []).join(", ") || "none"],
    ],
  });
}
