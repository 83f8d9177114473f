import { AuditService, type RefusedCalls, RefusedCallsSchema } from "../../../../contract/millwright/v1/audit_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { clockTime, isoTime, parseDuration } from "../../terminal/times.ts";
import { joinFilters, type ListOptions, valueText } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";

export interface ListAuditOptions extends ListOptions {
  readonly since: string;
  readonly who?: string;
  readonly address?: string;
  readonly outcome?: "denied" | "sign_in_failed" | "refused";
}

const columns: readonly Column<RefusedCalls>[] = [
  { title: "LAST", cell: ({ lastAt }) => clockTime(lastAt), plain: ({ lastAt }) => isoTime(lastAt) },
  { title: "WHO", cell: ({ who }) => who },
  { title: "ADDRESS", cell: ({ address }) => address },
  { title: "OUTCOME", cell: ({ outcome }) => outcome },
  { title: "CALLS", cell: ({ calls }) => String(calls) },
  { title: "METHOD", cell: ({ method }) => method },
];

export async function listAudit(session: Session, options: ListAuditOptions): Promise<undefined> {
  const { since, who, address, outcome } = options;
  const from = new Date(session.terminal.now().getTime() - parseDuration(since, "--since"));
  const is = (field: string, value: string | undefined) =>
    value === undefined ? undefined : `${field}=${value === "" ? '""' : valueText(value)}`;
  const filter = joinFilters(
    `last_at>=${from.toISOString()}`,
    is("who", who),
    is("address", address),
    is("outcome", outcome === "denied" ? undefined : outcome),
    options.filter,
  );
  const client = await session.client(AuditService);
  const items = await readList(
    session,
    { ...options, filter },
    (query) => client.listRefusedCalls(query, { signal: session.signal }),
    ({ refusedCalls }) => refusedCalls,
  );
  await printList(session, { items, columns, json: (row) => jsonOf(RefusedCallsSchema, row) }, "No refused calls.");
}
