import type { OpenStream } from "../../../capabilities/stream.ts";
import { causeOf, messageOf } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { type Duration, milliseconds, seconds } from "../../../kernel/time/duration.ts";
import { polling } from "../../../kernel/time/retry.ts";
import { type Step, timeoutOf } from "../../model/plan/plan.ts";
import { type Acted, type ActingContext, type AnyStep, type ProbeReport, readProbe } from "../../model/step.ts";
import { isNotOfTheStep, mayHaveObeyed, mayPass } from "../failure-causes.ts";
import type { Proven } from "../progress.ts";
import { checkStream, openStream } from "./stream.ts";
import * as visits from "./visit.ts";
import { type PassOutcome, save, type Work } from "./work.ts";

/** The action of a step: how it begins, and what its end comes to. */

/** Where it is open whether a device heard of an action: how long it gets to show its effect before it counts as not begun. */
const SETTLES: Duration = seconds(30);

export type Acting = ActingContext<JsonObject, JsonObject>;

export async function act(work: Work, kind: AnyStep, acting: Acting): Promise<PassOutcome | Proven> {
  work.context.begun.note(actionOf(work));
  work.isActing = true;
  const streams = streamOptionsOf(kind, work.step);
  if (streams) return followStream(work, kind, acting, await openStream(work, kind, streams, acting));
  let came: Acted | undefined;
  try {
    came = await kind.act(acting);
  } catch (error) {
    return actFailed(work, error);
  }
  return actEnded(work, kind, acting, came);
}

/** What comes of a stream is judged as what comes of any other action. Until then it is only looked after. */
export async function followStream(
  work: Work,
  kind: AnyStep,
  acting: Acting,
  stream: OpenStream,
): Promise<PassOutcome | Proven> {
  work.isActing = true;
  const end = await checkStream(work, stream, kind);
  if ("type" in end) return end;
  return "error" in end ? actFailed(work, end.error) : actEnded(work, kind, acting, end.value as Acted | undefined);
}

function actFailed(work: Work, error: unknown): PassOutcome {
  const { step, visit, context, log } = work;
  const isCutOff = context.call.signal.aborted;
  if (isNotOfTheStep(error, context) || !(isCutOff || mayHaveObeyed(error))) throw error;
  // No failed attempt: the device may be at it. It is asked until the attempt's time is over.
  log.say(`step ${step.name}: the device may have obeyed; probing it: ${messageOf(error)}`, "stderr");
  const open = visits.unanswered(visit, messageOf(error), causeOf(error));
  return save(work, open, { reason: `${step.name}: ${messageOf(error)}`, after: polling.first });
}

async function actEnded(work: Work, kind: AnyStep, acting: Acting, came: Acted = {}): Promise<PassOutcome | Proven> {
  const { step, visit, context } = work;
  work.isActing = false; // what fails from here on is no refusal of the action
  const done = { ...work, visit: visits.acted(visit, context.clock.now(), came) };
  const proof = await askAtOnce(done, kind, acting, came);
  if (proof?.state === "done") return succeed(done, proof, came.effects);
  return save(done, done.visit, { reason: `${step.name}: under way`, after: polling.first, ...came });
}

/**
 * As long as the step itself may take, at most: its author knows how soon its effect shows. What a stream sent last may be on its
 * way for the longest chunk.
 */
export const settlesIn = (step: Step, kind: AnyStep): Duration =>
  milliseconds(Math.min(SETTLES, timeoutOf(step)) + (streamOptionsOf(kind, step)?.longestChunk ?? 0));

/** Undefined where the action of this step is no stream. */
export const streamOptionsOf = ({ streams, streamsFor = () => true }: AnyStep, { payload }: Step) =>
  streams && streamsFor(payload) ? streams : undefined;

/**
 * What is done in an instant is proven in the same look. Nobody answering, or not in a way that tells, is for the passes that follow:
 * that it was done must be written first. So is every failure where the action has left a receipt or has effects: the failed attempt
 * would else lose them.
 */
async function askAtOnce(
  { visit: { receipt }, context }: Work,
  kind: AnyStep,
  acting: Acting,
  came: Acted,
): Promise<ProbeReport | undefined> {
  // What acts by effects alone has done nothing before they are written.
  if (kind.reboots || kind.actsByEffectsOnly) return undefined;
  try {
    return readProbe(await kind.probe({ ...acting, receipt }));
  } catch (error) {
    const isToBeWritten = came.receipt !== undefined || came.effects !== undefined;
    if (isToBeWritten || mayPass(error) || isNotOfTheStep(error, context)) return undefined;
    throw error;
  }
}

/** One announcement: a new one has another time. */
const actionOf = ({ run, visit: { name, actingAt }, context: { instance } }: Work): string =>
  `${instance} ${run.id} ${name} ${actingAt?.toISOString() ?? ""}`;

/** Announced by this very process, which alone can know that it has not begun. */
export const hasSurelyNotBegun = (work: Work): boolean =>
  work.visit.actingBy === work.context.instance && !work.context.begun.has(actionOf(work));

export function succeed(
  { step, visit, context, log }: Work,
  report: ProbeReport,
  effects: Acted["effects"] = [],
): Proven {
  const { message = "" } = report;
  log.say(`step ${step.name} is done${message === "" ? "" : `: ${message}`}`);
  const succeeded = visits.succeeded(visit, context.clock.now(), message, report.verdict);
  return { type: "proven", visit: succeeded, report, said: [...log.effects(step.name), ...effects] };
}
