import { isDeepStrictEqual } from "node:util";
import { isForbidden } from "../../capabilities/device-failure.ts";
import type { Cause } from "../../kernel/causes.ts";
import { causeOf, messageOf, StepFailure } from "../../kernel/errors.ts";
import { type Residue, residueFacts, residueLine, type WhatIsLeft } from "../../kernel/residue.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { LeftByStep, VisitKey } from "../model/next-attempt.ts";
import type { Step } from "../model/plan/plan.ts";
import { isNotOfTheStep, isShutOut, lacksCredentials } from "./failure-causes.ts";
import { withoutUndone } from "./residue.ts";
import { checkCapable, type RunContext, residueOnTarget, stepContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";

const UNDO_WITHIN: Duration = seconds(8);

/** What a step of the run's plan has begun. */
export type Begun = LeftByStep & {
  readonly run: RunThing;
};

/** What stays behind of a step that was begun. */
export interface Remains {
  readonly left: Residue;
  /**
   * open: nobody has said no, and the device may obey later. shut_out: the same, but only once somebody gives the right credentials
   * or accepts the certificate. going_on: the device undoes it, and is not done yet. refused: it, or we, cannot, or may not.
   * for_good: there is nothing to undo.
   */
  readonly is: "open" | "shut_out" | "going_on" | "refused" | "for_good";
  /** Why it was not undone. */
  readonly cause: Cause;
  /** What somebody has to do first, where that is not in its line. */
  readonly remedy?: string;
}

/** What became of a step that was begun. */
export interface UndoResult {
  /** Null when nothing stays. */
  readonly left: Residue | null;
  /** Nobody need try again. */
  readonly isSettled: boolean;
}

/** What a step has done for good, although it was undone; null when nothing is left of it. */
export function staysAnyway({ run, step: name, round }: Begun, { steps }: RunContext): Residue | null {
  const step = run.plan.steps.find((one) => one.name === name);
  const kind = step && steps.get(step.kind);
  return step && kind?.undoIsPartial && kind.residue
    ? { ...visitOf(name, round), what: kind.residue(step.payload) }
    : null;
}

/** What was tried to be undone, and what of it remains. */
export interface Tried {
  readonly left: LeftByStep;
  readonly remains: Remains | null;
}

/** What an attempt has left, one after the other, up to the first that is in the way of those after it. */
export async function undoAll(
  run: RunThing,
  left: readonly LeftByStep[],
  context: RunContext,
  log: RunLog,
  isInTheWay: (tried: Tried) => boolean = () => false,
): Promise<readonly Tried[]> {
  const all: Tried[] = [];
  for (const each of left) {
    const tried = { left: each, remains: await undoStep({ run, ...each }, context, log) };
    all.push(tried);
    if (isInTheWay(tried)) break;
  }
  return all;
}

/** For a step that is not begun anew: what it leaves, whether or not it could be undone. */
export async function undoFinally(begun: Begun, context: RunContext, log: RunLog): Promise<UndoResult> {
  const remains = await undoStep(begun, context, log);
  return { left: remains?.left ?? staysAnyway(begun, context), isSettled: isSettled(remains) };
}

/** What is listed, once these steps of it were undone after all. */
export const residueWithout = (
  undone: readonly VisitKey[],
  run: RunThing,
  context: RunContext,
  residue: readonly Residue[],
): Residue[] => {
  const kindOf = (name: string) => context.steps.get(run.plan.steps.find((step) => step.name === name)?.kind ?? "");
  const isWhole = (name: string) => kindOf(name)?.undoIsPartial !== true;
  return withoutUndone(
    undone.flatMap((visit) =>
      whatIsLeftBy([visit], run, context).map((left) => ({ ...left, isWhole: isWhole(visit.step) })),
    ),
    residue,
  );
};

/** The step has no undo, or was done for good. */
const NO_WAY_BACK: Cause = { code: "no_undo" };

const GOES_ON: Cause = { code: "undo_in_progress" };

const LEFT_UNSAID = "may have left something behind";

/** What the target lists of steps that were undone after all is no more. */
export function forgetResidueOf(undone: readonly VisitKey[], run: RunThing, context: RunContext, log: RunLog): void {
  const before = residueOnTarget(run, context);
  const known = residueWithout(undone, run, context, before);
  if (!isDeepStrictEqual(known, before)) log.learn(run.target.kind, run.target.id, residueFacts(known));
}

/** What these visits may have left. */
export const whatIsLeftBy = (visits: readonly VisitKey[], { plan }: RunThing, { steps }: RunContext): WhatIsLeft[] =>
  plan.steps.flatMap(({ name, kind, payload }) => {
    const rounds = new Set(visits.filter(({ step }) => step === name).map(({ round }) => round));
    const what = steps.get(kind)?.residue?.(payload) ?? LEFT_UNSAID;
    return [...rounds].map((round) => ({ ...visitOf(name, round), what }));
  });

const visitOf = (step: string, round: number | undefined): VisitKey => ({
  step,
  ...(round !== undefined && round > 1 && { round }),
});

/** Nobody has said no to it: it is tried again before anything is begun. */
export const isStillToDo = (remains: Remains | null): boolean =>
  remains?.is === "open" || remains?.is === "shut_out" || remains?.is === "going_on";

/** For people, where it is in the way of an attempt. */
export const inTheWay = ({ left, remedy }: Remains): string =>
  `${residueLine(left)}${remedy === undefined ? "" : `; ${remedy}`}`;

export const isSettled = (remains: Remains | null): boolean => remains === null || remains.is === "for_good";

/**
 * Undoes what a step began, in bounded time. Returns what stays behind; null when nothing does. Doing it again is harmless, so
 * that a crash in the middle of it costs nothing. What is no fault of the device, such as a database that is away, is thrown: then
 * it was not tried.
 */
export async function undoStep(
  { run, step: name, evidence, receipt, round }: Begun,
  context: RunContext,
  log: RunLog,
): Promise<Remains | null> {
  const step = run.plan.steps.find((one) => one.name === name);
  const kind = step && context.steps.get(step.kind);
  const said = step && kind?.residue?.(step.payload);
  const left = { ...visitOf(name, round), what: said ?? LEFT_UNSAID };
  if (kind && !kind.undo) return said === undefined ? null : { left, is: "refused", cause: NO_WAY_BACK };
  const timeUp = AbortSignal.timeout(UNDO_WITHIN);
  try {
    if (!step) throw new StepFailure("misfit", `the plan has no step ${name}`);
    if (!kind?.undo) throw unknownKind(step);
    checkCapable(kind, step, context.provider);
    const signal = AbortSignal.any([context.call.signal, timeUp]);
    const base = stepContext(run, step, { ...context, call: { ...context.call, signal } }, log, round);
    const undone = await kind.undo({ ...base, evidence, receipt: receipt ?? null });
    if (undone?.facts) log.learn(run.target.kind, run.target.id, undone.facts);
    if (undone?.effects) log.cause(undone.effects);
    if (undone?.goesOn !== undefined) {
      const notUndone = { how: "goes_on", why: "", cause: GOES_ON } as const;
      return { left: { ...left, found: undone.goesOn, notUndone }, is: "going_on", cause: GOES_ON };
    }
    if (undone?.stays !== undefined)
      return { left: { ...left, found: undone.stays }, is: "for_good", cause: NO_WAY_BACK };
    log.say(`step ${name}: what it had begun was undone`);
    return null;
  } catch (error) {
    if (isNotOfTheStep(error, context)) throw error;
    const is = whatSays(error, timeUp);
    const cause = causeOf(error);
    const notUndone = { how: is === "refused" ? "refused" : "failed", why: messageOf(error), cause } as const;
    const remedy = lacksCredentials(error) ? context.target.signInRemedy?.(run.target) : undefined;
    return {
      left: { ...left, notUndone },
      is,
      cause,
      ...(remedy !== undefined && { remedy }),
    };
  }
}

/** Another replica may have it. */
const unknownKind = ({ kind }: Step): StepFailure =>
  new StepFailure("not_on_this_server", `this server does not know the step kind ${kind}`, {
    facts: { what: "step kind", name: kind },
  });

function whatSays(error: unknown, timeUp: AbortSignal): "open" | "shut_out" | "refused" {
  // Who forbids one thing has heard it, and may allow all others.
  if (isShutOut(error) && !isForbidden(error)) return "shut_out";
  const isAnswer = error instanceof StepFailure ? error.disposition !== "retry" : !timeUp.aborted;
  return isAnswer ? "refused" : "open";
}
