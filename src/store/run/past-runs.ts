import type { JsonObject } from "../../kernel/lifecycle.ts";
import { isActive, RUN_PHASES, type Run, type RunPhase } from "../../runs/model/run.ts";
import { type JournalRow, listHistory } from "../lifecycle/journal.ts";
import type { Queryable } from "../postgres/database.ts";
import { parseRunFacts } from "./facts.ts";

/** Runs as they were right after events of theirs, worked out from the journal. */
export interface PastRuns {
  /** `run` is as it is by now: what came after the event is taken off it again. */
  after(run: Run, event: JournalRow): Promise<Run>;
}

/** Remembers the events of one run: who replays a run asks for one after the other. */
export function createPastRuns(db: Queryable): PastRuns {
  let known: { readonly run: Run; readonly from: number; readonly rows: readonly JournalRow[] } | undefined;
  const rowsAfter = async (run: Run, event: JournalRow): Promise<readonly JournalRow[]> => {
    const isKnown = known?.run.id === run.id && known.from <= event.version && known.run.version >= run.version;
    if (!known || !isKnown) known = { run, from: event.version, rows: await listAfter(db, event) };
    // What was committed after the run was read is not in it.
    return known.rows.filter(({ version }) => version > event.version && version <= run.version);
  };
  return {
    async after(run, event) {
      const later = event.version < run.version ? await rowsAfter(run, event) : [];
      const past = later.reduceRight(runBefore, run);
      const told = later.length === 0 ? {} : await outcomeAfter(db, past, event);
      return { ...past, ...told, ...ownOf(event, past), version: event.version };
    },
  };
}

const keyOf = ({ kind, id }: JournalRow) => ({ kind, id });

/** All that is kept of it after the event, the oldest first. */
const listAfter = (db: Queryable, event: JournalRow): Promise<JournalRow[]> =>
  listHistory(db, {
    key: keyOf(event),
    after: event.cursor,
    newestFirst: false,
    types: [],
    limit: Number.MAX_SAFE_INTEGER,
  });

const isPhase = (state: string | null): state is RunPhase => RUN_PHASES.some((phase) => phase === state);

/** The run before the event, but for what it was waiting for. */
export function runBefore(run: Run, { type, from, data }: Pick<JournalRow, "type" | "from" | "data">): Run {
  const phase = isPhase(from) ? from : run.phase;
  const { facts, was } = data as { readonly facts?: JsonObject; readonly was?: JsonObject };
  const past = { ...run, phase, ...(facts && factsBefore(run, facts, was ?? {})) };
  return {
    ...past,
    finishedAt: isActive(phase) ? null : past.finishedAt,
    ...(type === "cancel_requested" && { cancelRequestedAt: null }),
    ...(type === "marked_manual" && { manual: null }),
    ...(type === "continued" && { nextRunId: null }),
  };
}

type ToldFacts = Pick<Run, "steps" | "startedAt" | "finishedAt" | "error" | "residue">;

function factsBefore(run: Run, facts: JsonObject, was: JsonObject): Partial<ToldFacts> {
  const { steps, startedAt, finishedAt, error, residue } = parseRunFacts(was);
  return {
    ...("startedAt" in facts && { startedAt }),
    ...("finishedAt" in facts && { finishedAt }),
    ...("error" in facts && { error }),
    ...("residue" in facts && { residue }),
    ...("steps" in facts && { steps: stepsBefore(run, parseRunFacts({ steps: facts.steps ?? [] }).steps, steps) }),
  };
}

/** Only those that changed are told; one that was not there before is one that was reached by the event. */
function stepsBefore(run: Run, changed: Run["steps"], were: Run["steps"]): Run["steps"] {
  const keyOf = ({ name, round }: Run["steps"][number]) => `${name} ${round}`;
  const keys = new Set(changed.map(keyOf));
  const past = new Map(were.map((step) => [keyOf(step), step]));
  return run.steps.flatMap((step) => (keys.has(keyOf(step)) ? (past.get(keyOf(step)) ?? []) : step));
}

const OUTCOMES = ["waiting", "failing", "needs_intervention"] as const;
/** Each of these says of the outcome what it is from then on; a move ends it. */
const TELLS_OUTCOME = [...OUTCOMES, "recovered", "created", "transition"];

/** What the run says of itself, which the last event that told it tells. */
async function outcomeAfter(db: Queryable, run: Run, event: JournalRow): Promise<Pick<Run, "message" | "waitingFor">> {
  const tells = ({ type }: JournalRow) => TELLS_OUTCOME.includes(type);
  const earlier = { key: keyOf(event), after: event.cursor, newestFirst: true, types: TELLS_OUTCOME, limit: 1 };
  const [last] = tells(event) ? [event] : await listHistory(db, earlier);
  const reason = OUTCOMES.some((type) => type === last?.type) ? (last?.reason ?? null) : null;
  return {
    message: reason ?? run.error?.message ?? "",
    waitingFor: run.phase === "PENDING" ? (reason ?? "") : "",
  };
}

/** What the event itself says; a mark was perhaps made anew since. */
const ownOf = ({ type, to, at, actor, reason }: JournalRow, { manual }: Run): Partial<Run> => ({
  ...(isPhase(to) && { phase: to }),
  ...(type === "marked_manual" && manual === null && { manual: { at, by: actor, comment: reason ?? "" } }),
});
