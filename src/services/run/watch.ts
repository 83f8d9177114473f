import type { Reach } from "../../kernel/access/scope.ts";
import type { Run } from "../../runs/model/run.ts";
import { findOutside } from "../../store/lifecycle/places.ts";
import { createPastRuns } from "../../store/run/past-runs.ts";
import { listRuns, listRunsWithKeys, type RunKey } from "../../store/run/runs.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { eventsWithin } from "../call/reach.ts";
import type { EventSource } from "../system/watch.ts";
import {
  ALL_RUNS,
  concerns,
  mayConcern,
  parseRunFilter,
  type RunFilter,
  type RunScope,
  runCondition,
} from "./filter.ts";

const KIND = "run";

export interface RunEvent {
  readonly at: Date;
  /** Right after the change, however late it is told. */
  readonly run: Run;
  readonly message: string;
  /** That of the snapshots at the beginning is where they were taken. */
  readonly cursor: string;
}

/**
 * Without a cursor: one snapshot of each matching active run, then every change; with one: what came after it. The change by which
 * a run ceases to match is told as well.
 */
export async function* watchRuns(
  deps: ServiceDeps,
  events: EventSource,
  query: {
    readonly filter: string;
    readonly cursor: string;
    readonly scope?: RunScope;
    readonly reach?: Reach | undefined;
  },
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const filter = [...(query.scope ?? ALL_RUNS), ...parseRunFilter(query.filter, () => nowOf(deps))];
  const past = createPastRuns(deps.db);
  // By the version that its snapshot showed: what led up to that comes after the cursor as well, and would take the run back.
  const shown = new Map<string, number>();
  let needsSnapshots = query.cursor === "";
  const from = needsSnapshots ? ("now" as const) : { cursor: query.cursor };
  const { reach } = query;
  for await (const item of eventsWithin(deps, events, reach).follow(from, { kinds: [KIND] }, signal)) {
    if (item.type === "bookmark") {
      // The first one says where "now" is; later ones only say that nothing happened.
      if (needsSnapshots) yield* snapshots(deps, filter, { cursor: item.cursor, reach }, shown);
      needsSnapshots = false;
      continue;
    }
    const { row } = item;
    const snapshot = shown.get(row.id);
    if (snapshot !== undefined && row.version <= snapshot) continue;
    shown.delete(row.id);
    const [now] = await listRuns(deps.db, { ids: [row.id] });
    if (!now || !mayConcern(filter, now)) continue;
    const run = await past.after(now, row);
    if (concerns(filter, row, { after: run, now }))
      yield { at: row.at, run, message: row.reason ?? row.type, cursor: row.cursor };
  }
}

const SNAPSHOT_PAGE = 200;

/** Page by page, since a fleet may have as many active runs as machines. What changes meanwhile is told after them. */
async function* snapshots(
  deps: ServiceDeps,
  filter: RunFilter,
  { cursor, reach }: { readonly cursor: string; readonly reach: Reach | undefined },
  shown: Map<string, number>,
): AsyncGenerator<RunEvent> {
  let before: RunKey | undefined;
  do {
    const page = await listRunsWithKeys(deps.db, {
      where: runCondition(filter),
      activeOnly: true,
      limit: SNAPSHOT_PAGE,
      ...(before && { before }),
    });
    const keys = page.map(({ run: { id } }) => ({ kind: KIND, id }));
    const outside = new Set(reach ? (await findOutside(deps.db, deps.stores, reach, keys)).map(({ id }) => id) : []);
    for (const { run } of page) {
      if (outside.has(run.id)) continue;
      shown.set(run.id, run.version);
      yield { at: nowOf(deps), run, message: "snapshot", cursor };
    }
    before = page.length < SNAPSHOT_PAGE ? undefined : page.at(-1)?.key;
  } while (before !== undefined);
}
