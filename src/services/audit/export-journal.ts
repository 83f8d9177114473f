import { AppError } from "../../kernel/errors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { isCursor, type JournalRow, OLDEST_CURSOR, readAfter } from "../../store/lifecycle/journal.ts";
import { lastSealBefore } from "../../store/lifecycle/seals/journal-seals.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { checkPageSize } from "../call/paging.ts";

/** An entry has the time at which its transaction began. No transaction takes as long as this, so that none that comes later is older. */
const OUT_OF_ORDER = minutes(5);
const PAGE = 500;

export interface ExportRequest {
  readonly since: Date | null;
  readonly until: Date | null;
  readonly after: string;
  readonly pageSize: number;
}

export interface ExportedPage {
  readonly rows: readonly JournalRow[];
  readonly next: string;
  readonly isEnd: boolean;
}

/** The next entries of the journal, of all things. */
export async function exportJournal(deps: ServiceDeps, request: ExportRequest): Promise<ExportedPage> {
  const { since, until } = request;
  const size = request.pageSize === 0 ? PAGE : checkPageSize(request.pageSize);
  if (request.after !== "" && !isCursor(request.after))
    throw new AppError("invalid_argument", "after: must be a cursor that this server gave out", { field: "after" });
  if (since && until && since >= until)
    throw new AppError("invalid_argument", "until: must be later than since", { field: "until" });
  const after = request.after === "" ? await beginningOf(deps, since) : request.after;
  const db = deps.lists ?? deps.db;
  const rows = await readAfter(db, after, size);
  const last = rows.at(-1);
  const isPast = until !== null && last !== undefined && last.at.getTime() > until.getTime() + OUT_OF_ORDER;
  return {
    rows: rows.filter(({ at }) => (since === null || at >= since) && (until === null || at < until)),
    next: last?.cursor ?? after,
    isEnd: isPast || rows.length < size,
  };
}

/** Seals have times, and are fewer than entries: what one of them covers was written before it was made. */
async function beginningOf({ db }: ServiceDeps, since: Date | null): Promise<string> {
  if (since === null) return OLDEST_CURSOR;
  return (await lastSealBefore(db, since))?.to ?? OLDEST_CURSOR;
}
