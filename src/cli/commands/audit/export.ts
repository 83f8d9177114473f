import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { AuditService } from "../../../../contract/millwright/v1/audit_pb.js";
import { EventSchema } from "../../../../contract/millwright/v1/event_pb.js";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { jsonText } from "../../terminal/printable.ts";
import { parseDuration } from "../../terminal/times.ts";

export interface ExportOptions {
  readonly since?: string;
  readonly until?: string;
  readonly after?: string;
}

/** One page is in memory at a time, however long the journal is. */
export async function exportAudit(
  session: Session,
  { since, until, after: from = "" }: ExportOptions,
): Promise<undefined> {
  const { terminal, signal } = session;
  const client = await session.client(AuditService);
  const range = {
    ...(since !== undefined && { since: timestampFromDate(timeOf(since, "--since", terminal.now())) }),
    ...(until !== undefined && { until: timestampFromDate(timeOf(until, "--until", terminal.now())) }),
  };
  for (let [after, isEnd] = [from, false]; !isEnd; ) {
    const page = await client.exportJournal({ ...range, after, pageSize: 500 }, { signal });
    terminal.stdout.write(page.events.map((event) => `${jsonText(jsonOf(EventSchema, event))}\n`).join(""));
    [after, isEnd] = [page.nextCursor, page.end];
  }
}

function timeOf(text: string, option: string, now: Date): Date {
  if (/^\d+(ms|[smhd])$/.test(text)) return new Date(now.getTime() - parseDuration(text, option));
  const isTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text);
  const time = new Date(text);
  if (isTime && !Number.isNaN(time.getTime())) return time;
  throw new UsageError(
    `${option}: ${JSON.stringify(text)} is neither a duration such as 7d, nor a time such as 2026-01-31T08:00:00Z`,
  );
}
