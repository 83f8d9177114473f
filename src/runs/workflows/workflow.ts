import type { Cause, CauseCode } from "../../kernel/causes.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { Plan, Step } from "../model/plan/plan.ts";
import { STEP_DEFAULTS, type StepShapes } from "../model/step.ts";

/** undo: its kind of step can. nothing: it changes nothing. stays: what it does is for good, and this is what people are told. */
export type Compensation = "undo" | "nothing" | { readonly stays: string };

/** One stage of a workflow: a typed step, and what the workflow has to know of it. */
export interface Stage<S extends string = string> {
  readonly name: S;
  /** The kind of step that it is; absent: a kind of the same name. */
  readonly step?: string;
  /** For one attempt. Absent: the default of its kind. */
  readonly timeout?: Duration;
  /** Attempts after the first one. Absent: the default of its kind. */
  readonly maxRetries?: number;
  /** The stages that may come next. Absent: the one after it. */
  readonly leadsTo?: readonly S[];
  /** The workflow may end after it, also where it is not the last. */
  readonly mayEnd?: true;
  /** How often it may be entered in one run; absent: once. A stage to which others lead back must say it. */
  readonly maxRounds?: number;
  /** What a cancel does about it once it is done. */
  readonly compensation: Compensation;
  /** It can be entered again at any time: a resume goes back to the last one of these. */
  readonly isSafe?: true;
}

/** A visit that has ended, as the workflow sees it. */
export interface PastVisit<S extends string = string> {
  readonly stage: S;
  /** From 1 on: how often the job had entered the stage by then. */
  readonly round: number;
  readonly state: "SUCCEEDED" | "FAILED" | "SKIPPED";
  /** Why it FAILED; null otherwise. */
  readonly cause: CauseCode | null;
  /** What a stage that SUCCEEDED found, where it is there to find something; empty otherwise. */
  readonly verdict: string;
  /** It was visited by an earlier attempt at the job. */
  readonly carriedOver: boolean;
}

/** What comes next. */
export type Choice<S extends string = string> =
  | { readonly type: "go"; readonly stage: S }
  /** Not needed: it is recorded as SKIPPED, with why. */
  | { readonly type: "skip"; readonly stage: S; readonly why: string }
  | { readonly type: "finish" }
  /** The run fails. Without a reason: with that of the last stage. */
  | ({ readonly type: "give_up"; readonly why?: string } & GivingUp<S>);

interface GivingUp<S extends string = string> {
  readonly needsPerson?: boolean;
  /** Why, for programs. Absent: that of the last stage. */
  readonly cause?: Cause;
  /** The stage that is not entered for it. Absent: it is the last one that has failed. */
  readonly stage?: S;
}

export const goTo = <const S extends string>(stage: S): Choice<S> => ({ type: "go", stage });
export const skip = <const S extends string>(stage: S, why: string): Choice<S> => ({ type: "skip", stage, why });
export const finish: Choice<never> = { type: "finish" };
export const giveUp = <const S extends string = never>(why?: string, more: GivingUp<S> = {}): Choice<S> => ({
  type: "give_up",
  ...(why !== undefined && { why }),
  ...more,
});

/** What `next` may go by beside the history: it never changes while the run lasts. */
export interface Given<S extends string = string> {
  readonly params: Readonly<Record<string, string>>;
  /** As each stage has it, frozen when the run was started. */
  readonly payloads: Readonly<Record<string, JsonObject>>;
  /** What comes next unless somebody knows better: the stage after the last one, the end after all, the failure of a failed one. */
  readonly onwards: Choice<S>;
}

/**
 * Stages in their usual order, and one pure function that says what is next. It goes by what was planned and what has been, and by
 * nothing else: so that any replica, after any crash, answers the same.
 */
export interface Workflow<S extends string = string> {
  readonly kind: string;
  readonly doc: string;
  readonly stages: readonly Stage<S>[];
  /** People only cancel its jobs: a new request is the retry. */
  readonly onlyCancel?: true;
  next(history: readonly PastVisit<S>[], given: Given<S>): Choice<S>;
}

const onwardsAlone = <S extends string>(_: readonly PastVisit<S>[], { onwards }: Given<S>): Choice<S> => onwards;

/**
 * Declares a workflow. A stage that there is not does not compile; what types cannot see is refused here, at load: a name that is
 * taken, an edge to nowhere, a stage that nothing reaches, a way back to a stage without a bound, an end that is never reached.
 */
export function defineWorkflow<const S extends string>(
  definition: Omit<Workflow<S>, "next"> & Partial<Pick<Workflow<S>, "next">>,
): Workflow<S> {
  const workflow = { next: onwardsAlone<S>, ...definition };
  const faults = faultsOf(workflow);
  if (faults.length > 0) throw new Error(`workflow ${workflow.kind}: ${faults.join("; ")}`);
  return workflow;
}

/** Where a stage may lead: what it says, else the one after it. */
export function waysFrom<S extends string>({ stages }: Pick<Workflow<S>, "stages">, name: S): readonly S[] {
  const at = stages.findIndex((stage) => stage.name === name);
  const after = stages[at + 1];
  return stages[at]?.leadsTo ?? (after === undefined ? [] : [after.name]);
}

/** Whether the workflow may be at its end after the stage. */
export const mayEndAfter = ({ stages }: Pick<Workflow, "stages">, name: string): boolean =>
  stages.at(-1)?.name === name || stages.some((stage) => stage.name === name && stage.mayEnd === true);

export const roundsOf = ({ maxRounds = 1 }: Stage): number => maxRounds;

function faultsOf(workflow: Workflow): string[] {
  const { stages } = workflow;
  const names = stages.map(({ name }) => name);
  if (names.length === 0) return ["it has no stages"];
  const twice = names.filter((name, at) => names.indexOf(name) !== at);
  const unbounded = stages.filter((stage) => !Number.isInteger(roundsOf(stage)) || roundsOf(stage) < 1);
  const edges = names.flatMap((from) => waysFrom(workflow, from).map((to) => ({ from, to })));
  const isBack = ({ from, to }: { readonly from: string; readonly to: string }) =>
    names.indexOf(to) <= names.indexOf(from);
  const isBounded = (name: string) => stages.some((stage) => stage.name === name && stage.maxRounds !== undefined);
  const reached = reachedFrom(names[0] as string, (name) => waysFrom(workflow, name));
  return [
    ...twice.map((name) => `there are two stages called ${name}`),
    ...unbounded.map(({ name }) => `maxRounds of ${name} must be a whole number of at least 1`),
    ...edges.filter(({ to }) => !names.includes(to)).map(({ from, to }) => `${from} leads to ${to}, which is no stage`),
    ...names.filter((name) => !reached.has(name)).map((name) => `nothing leads to ${name}`),
    ...edges
      .filter((edge) => names.includes(edge.to) && isBack(edge) && !isBounded(edge.to))
      .map(({ from, to }) => `${from} leads back to ${to}, which has no maxRounds`),
    ...([...reached].some((name) => mayEndAfter(workflow, name)) ? [] : ["no stage leads to its end"]),
  ];
}

function reachedFrom(first: string, waysOn: (name: string) => readonly string[]): ReadonlySet<string> {
  const reached = new Set([first]);
  for (const name of reached) for (const next of waysOn(name)) reached.add(next);
  return reached;
}

/** Workflows by their kind. */
export type Workflows = ReadonlyMap<string, Workflow>;

/** Workflows whose stages are all of kinds that this server has; one that is to be undone must be of a kind that can be. */
export function collectWorkflows(
  workflows: readonly { readonly kind: string }[],
  steps: ReadonlyMap<string, { readonly undo?: unknown }>,
): Workflows {
  const all = workflows as readonly Workflow[];
  const byKind = new Map(all.map((workflow) => [workflow.kind, workflow]));
  if (byKind.size !== all.length) throw new Error("two workflows are of the same kind");
  for (const { kind, stages } of all)
    for (const stage of stages) {
      const step = steps.get(kindOf(stage));
      if (!step) throw new Error(`workflow ${kind}: ${stage.name} is a ${kindOf(stage)}, which is no kind of step`);
      if (stage.compensation === "undo" && step.undo === undefined)
        throw new Error(`workflow ${kind}: ${stage.name} is to be undone, and a ${kindOf(stage)} has no undo`);
    }
  return byKind;
}

const kindOf = ({ name, step = name }: Stage): string => step;

/** The plan of a run of the workflow: its stages with their payloads, frozen like those of every run. */
export function planOfWorkflow<S extends string>(
  workflow: Workflow<S>,
  steps: StepShapes,
  { displayName = workflow.doc, payloads = {}, kinds = {} }: WorkflowInput<S> = {},
): Plan {
  return {
    planId: `workflow/${workflow.kind}`,
    displayName,
    workflow: workflow.kind,
    steps: workflow.stages.map((stage): Step => {
      const kind = kinds[stage.name] ?? kindOf(stage);
      const shape = steps.get(kind);
      const { timeout, maxRetries } = { ...STEP_DEFAULTS, ...shape?.defaults };
      const payload = payloads[stage.name] ?? {};
      const own = isSettled(payload) ? undefined : shape?.timeoutFor?.(payload);
      const timeoutSeconds = (stage.timeout ?? own ?? timeout) / seconds(1);
      return {
        name: stage.name,
        kind,
        timeoutSeconds,
        maxRetries: stage.maxRetries ?? maxRetries,
        payload: shape && !isSettled(payload) ? shape.parse(payload, `stages.${stage.name}`, timeoutSeconds) : payload,
      };
    }),
  };
}

/** A stage that is never entered has nothing that its kind of step could read: its payload says why. */
const isSettled = (payload: JsonObject): boolean => "skip" in payload || "refuse" in payload;

export interface WorkflowInput<S extends string> {
  readonly displayName?: string;
  readonly payloads?: { readonly [name in S]?: JsonObject };
  /** Stages that this run does by another kind of step. */
  readonly kinds?: { readonly [name in S]?: string };
}
