import { AppError } from "../../kernel/errors.ts";
import { alarmOf } from "../../store/lifecycle/alarms.ts";
import { type Doing, type JournalRow, listAlarms, listDoings } from "../../store/lifecycle/journal.ts";
import { listCallingMachines } from "../../store/machine/conditions.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";

export type { Doing } from "../../store/lifecycle/journal.ts";

/** What happened in a time that somebody is to hear of, from the journal. */
export interface Report {
  readonly since: Date;
  readonly until: Date;
  /** The oldest first. */
  readonly failures: readonly JournalRow[];
  readonly interventions: readonly JournalRow[];
  readonly doings: readonly Doing[];
  /** Of the machines that called for somebody: those that still do. */
  readonly openMachineIds: readonly string[];
  /** There were more alarms or doings than fit into one answer: the report shows the first. */
  readonly isCut: boolean;
}

const MOST_ALARMS = 1_000;
const MOST_DOINGS = 500;

export async function makeReport(deps: ServiceDeps, since: Date | null): Promise<Report> {
  const until = nowOf(deps);
  if (since === null || Number.isNaN(since.getTime()) || since >= until)
    throw new AppError("invalid_argument", "since: a time in the past is required", { field: "since" });
  const { lists = deps.db } = deps;
  const alarms = await listAlarms(lists, { since, until }, MOST_ALARMS + 1);
  const doings = await listDoings(lists, { since, until }, MOST_DOINGS + 1);
  const shown = alarms.slice(0, MOST_ALARMS);
  const interventions = shown.filter((row) => alarmOf(row) === "needs_intervention");
  const machines = [...new Set(interventions.filter(({ kind }) => kind === "machine").map(({ id }) => id))];
  return {
    since,
    until,
    failures: shown.filter((row) => alarmOf(row) === "failed"),
    interventions,
    doings: doings.slice(0, MOST_DOINGS),
    openMachineIds: await listCallingMachines(lists, machines),
    isCut: alarms.length > MOST_ALARMS || doings.length > MOST_DOINGS,
  };
}
