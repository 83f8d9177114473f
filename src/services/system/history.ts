import { AppError } from "../../kernel/errors.ts";
import { isCursor, type JournalRow, listHistory } from "../../store/lifecycle/journal.ts";
import { findRemoval, type Removal } from "../../store/lifecycle/journal-retention.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { checkKind } from "../call/known-kinds.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "../call/paging.ts";

export { alarmOf } from "../../store/lifecycle/alarms.ts";
export type { JournalRow } from "../../store/lifecycle/journal.ts";

export interface HistoryQuery {
  readonly kind: string;
  readonly id: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly types: readonly string[];
  readonly newestFirst: boolean;
}

export interface HistoryOfThing extends Page<JournalRow> {
  /** What retention has removed of it; undefined while its history is whole. */
  readonly removal: Removal | undefined;
}

/** The journal of one thing, also of one that is gone. */
export async function pageHistory(deps: ServiceDeps, request: HistoryQuery): Promise<HistoryOfThing> {
  const { pageSize, pageToken, ...query } = request;
  const { kind, id, types, newestFirst } = query;
  checkKind(deps, kind, "kind");
  if (id === "") throw new AppError("invalid_argument", "id: is required", { field: "id" });
  const size = checkPageSize(pageSize);
  const after = parsePageToken(deps.secrets, pageToken, query, 1, ([cursor = ""]) => isCursor(cursor))?.[0] ?? null;
  const rows = await listHistory(deps.db, { key: { kind, id }, types, newestFirst, after, limit: size + 1 });
  const removal = await findRemoval(deps.db, { kind, id });
  return { ...cutPage(deps.secrets, rows, size, query, ({ cursor }) => [cursor]), removal };
}
