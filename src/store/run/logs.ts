import type { LogLine } from "../../kernel/effects.ts";
import type { ThingLog } from "../lifecycle/things.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { storableText } from "../postgres/json-text.ts";

const MOST_LOG_BYTES = 4 * 1_024 * 1_024;
const CAPPED = "[the log of this run is full; what follows was not kept]\n";

/** The last line of a run's log: what comes next counts on from it. */
interface LogEnd {
  readonly seq: number;
  readonly bytes: number;
  /** It ends within a line. */
  readonly open: boolean;
}

interface NewLine {
  readonly runId: string;
  readonly seq: number;
  readonly line: LogLine;
  readonly data: Buffer;
  readonly bytesSoFar: number;
}

/** Appends to the logs of many runs under their locks, in two statements. A full log says so once, and then keeps nothing more. */
export async function appendLogs(tx: Transaction, logs: readonly ThingLog[]): Promise<void> {
  const ends = await readEnds(
    tx,
    logs.map(({ id }) => id),
  );
  const added = logs.flatMap(({ id, lines }) =>
    linesAfter(id, ends.get(id) ?? { seq: 0, bytes: 0, open: false }, lines),
  );
  if (added.length === 0) return;
  await tx.query({
    hot: true,
    text: `insert into run_logs (run_id, seq, at, step, stream, data, bytes_so_far, ours)
           select * from unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::bytea[], $7::bigint[], $8::boolean[])`,
    values: [
      added.map(({ runId }) => runId),
      added.map(({ seq }) => seq),
      added.map(({ line }) => line.at),
      added.map(({ line }) => line.step),
      added.map(({ line }) => line.stream),
      added.map(({ data }) => data),
      added.map(({ bytesSoFar }) => bytesSoFar),
      added.map(({ line }) => typeof line.text === "string"),
    ],
  });
  failPoint("run-logs:appended", [{ kind: "run" }]);
}

/** From the index, one row a run, however long its log is. */
async function readEnds(tx: Transaction, runIds: readonly string[]): Promise<ReadonlyMap<string, LogEnd>> {
  const rows = await tx.query<LogEnd & { id: string }>({
    hot: true,
    text: `select i.id, l.seq, l.bytes_so_far as bytes, substring(l.data from length(l.data)) <> '\\x0a' as open
             from unnest($1::text[]) as i(id)
            cross join lateral (select seq, bytes_so_far, data from run_logs where run_id = i.id order by seq desc limit 1) as l`,
    values: [runIds],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

function linesAfter(runId: string, end: LogEnd, lines: readonly LogLine[]): NewLine[] {
  const added: NewLine[] = [];
  let { bytes: size, open } = end;
  for (const line of lines) {
    if (size > MOST_LOG_BYTES) break;
    const whole = bytesOf(line.text, open);
    const isFull = size + whole.length > MOST_LOG_BYTES;
    const data = isFull ? bytesOf(CAPPED, open) : whole;
    size = isFull ? MOST_LOG_BYTES + 1 : size + data.length;
    open = data.at(-1) !== NEW_LINE;
    added.push({ runId, seq: end.seq + added.length + 1, line, data, bytesSoFar: size });
  }
  return added;
}

const NEW_LINE = 10;

/** What a script wrote is kept as it is; a line of our own does not go on with what it left unfinished. */
const bytesOf = (text: LogLine["text"], open: boolean): Buffer =>
  typeof text === "string" ? Buffer.from(`${open ? "\n" : ""}${storableText(text)}`, "utf8") : Buffer.from(text);

export interface LogRow {
  readonly seq: number;
  readonly at: Date;
  readonly step: string;
  readonly stream: string;
  readonly data: Buffer;
}

/** The newest pieces that a step wrote to its error stream, the newest first. */
export async function listLastErrors(db: Queryable, runId: string, step: string, limit: number): Promise<string[]> {
  const rows = await db.query<Pick<LogRow, "data">>(
    `select data from run_logs where run_id = $1 and step = $2 and stream = 'stderr' and ours is not true order by seq desc limit ${Math.floor(limit)}`,
    [runId, step],
  );
  return rows.map(({ data }) => data.toString("utf8"));
}

export interface LogPart {
  readonly runId: string;
  /** 0: from the end. */
  readonly before: number;
  readonly limit: number;
  readonly step: string;
  readonly stream: string;
  readonly contains: string;
}

/** Bytes as text that every database can compare, whatever a script wrote; small letters where they are A to Z. */
const escaped = (bytes: string): string => `lower(encode(${bytes}, 'escape') collate "C")`;

/** The newest of a part of a log, the newest first. A log is never longer than a few megabytes. */
export async function listLogBackwards(db: Queryable, part: LogPart): Promise<LogRow[]> {
  const { runId, before, limit, step, stream, contains } = part;
  const values: unknown[] = [runId];
  const also = [
    ...(before === 0 ? [] : [`and seq < $${values.push(before)}`]),
    ...(step === "" ? [] : [`and step = $${values.push(step)}`]),
    ...(stream === "" ? [] : [`and stream = $${values.push(stream)}`]),
    ...(contains === ""
      ? []
      : [`and strpos(${escaped("data")}, ${escaped(`$${values.push(Buffer.from(contains))}::bytea`)}) > 0`]),
  ];
  return db.query<LogRow>(
    `select seq, at, step, stream, data from run_logs where run_id = $1 ${also.join(" ")} order by seq desc limit ${Math.floor(limit)}`,
    values,
  );
}

export async function listLogs(db: Queryable, runId: string, after: number, limit: number): Promise<LogRow[]> {
  return db.query<LogRow>(
    `select seq, at, step, stream, data from run_logs where run_id = $1 and seq > $2 order by seq limit ${Math.floor(limit)}`,
    [runId, after],
  );
}
