import { AppError } from "../../kernel/errors.ts";
import { isActive } from "../../runs/model/run.ts";
import { type LogPart, type LogRow, listLogBackwards, listLogs } from "../../store/run/logs.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { EventSource } from "../system/watch.ts";
import type { RunScope } from "./filter.ts";
import { getRun } from "./read.ts";

export type { LogRow } from "../../store/run/logs.ts";

const KIND = "run";
const MOST_CHUNKS = 1_000;
const USUAL_CHUNKS = 100;
const LONGEST_SEARCH = 200;
const STREAMS = ["", "stdout", "stderr"];

export interface ReadLogPart {
  /** In the order in which they were written. */
  readonly rows: readonly LogRow[];
  readonly hasMore: boolean;
}

/** A part of a log, from its end or any place in it backwards. */
export async function readRunLog(deps: ServiceDeps, part: LogPart, scope: RunScope): Promise<ReadLogPart> {
  const { runId, before, limit, stream, contains } = part;
  const refuse = (field: string, why: string) => new AppError("invalid_argument", `${field}: ${why}`, { field });
  if (before < 0) throw refuse("before", `must be the seq of a chunk, or 0 for the end, got ${before}`);
  if (limit < 0 || limit > MOST_CHUNKS) throw refuse("limit", `at most ${MOST_CHUNKS}, and not below 0, got ${limit}`);
  if (!STREAMS.includes(stream)) throw refuse("stream", "must be stdout or stderr");
  const length = Buffer.byteLength(contains);
  if (length > LONGEST_SEARCH) throw refuse("contains", `at most ${LONGEST_SEARCH} bytes, got ${length}`);
  await getRun(deps, runId, scope);
  const size = limit === 0 ? USUAL_CHUNKS : limit;
  const { lists = deps.db } = deps;
  const newest = await listLogBackwards(lists, { ...part, limit: size + 1 });
  return { rows: newest.slice(0, size).reverse(), hasMore: newest.length > size };
}

const LOG_PAGE = 500;

/** From the first chunk, or after the one named; ends when the run has ended and all was sent. */
export async function* streamRunLogs(
  deps: ServiceDeps,
  events: EventSource,
  query: { readonly runId: string; readonly after: number; readonly follow: boolean; readonly scope?: RunScope },
  signal: AbortSignal,
): AsyncGenerator<LogRow> {
  await getRun(deps, query.runId, query.scope);
  if (query.after < 0) {
    const why = `after: must be the seq of a chunk, or 0 for the first, got ${query.after}`;
    throw new AppError("invalid_argument", why, { field: "after" });
  }
  let after = Math.min(query.after, Number.MAX_SAFE_INTEGER); // beyond it the database knows no number
  const drain = async function* (): AsyncGenerator<LogRow> {
    for (;;) {
      const rows = await listLogs(deps.db, query.runId, after, LOG_PAGE);
      yield* rows;
      after = rows.at(-1)?.seq ?? after;
      if (rows.length < LOG_PAGE) return;
    }
  };
  const items = events.follow("now", { kinds: [KIND], ids: [query.runId] }, signal);
  for await (const _ of items) {
    // Whether it has ended is asked before the log is read: what it said last is then there.
    const { phase } = await getRun(deps, query.runId);
    yield* drain();
    if (!query.follow || !isActive(phase)) return;
  }
}
