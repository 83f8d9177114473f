import {
  type GetSystemResponse,
  GetSystemResponseSchema,
  SystemService,
} from "../../../contract/millwright/v1/system_pb.js";
import type { Column } from "../output.ts";
import { printOne } from "../printing.ts";
import { jsonOf } from "../proto-json.ts";
import type { Session } from "../session.ts";
import { age, clockTime, isoTime } from "../times.ts";

const columns: readonly Column<GetSystemResponse>[] = [
  { title: "VERSION", cell: ({ version }) => version },
  { title: "REPLICA", cell: ({ replicaId }) => replicaId },
  { title: "STARTED", cell: ({ startedAt }) => isoTime(startedAt) },
  { title: "DATABASE", cell: ({ databaseVersion }) => databaseVersion },
  { title: "CALLER", cell: ({ caller }) => caller?.name ?? "" },
  { title: "ROLES", cell: ({ caller }) => (caller?.roles ?? []).join(" ") },
];

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
      ["Replica", system.replicaId],
      [
        "Started",
        system.startedAt ? `${clockTime(system.startedAt)}, ${age(system.startedAt, session.style().now)} ago` : "",
      ],
      ["Database", system.databaseVersion],
      ["You are", system.caller?.name || "nobody in particular"],
      ["Your roles", (system.caller?.roles ?? []).join(", ") || "none"],
    ],
  });
}
