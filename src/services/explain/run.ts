import type { Cause, CauseCode } from "../../kernel/causes.ts";
import { causeInDetails } from "../../kernel/stored-cause.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { isActive, isDone, machineOf, type Run, type StepStatus } from "../../runs/model/run.ts";
import { loadInstalls } from "../../store/install/installs.ts";
import { listLastErrors } from "../../store/run/logs.ts";
import { listRuns } from "../../store/run/runs.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { viewNode } from "../fleet/nodes.ts";
import { type MachineView, viewMachine } from "../machine/view.ts";
import { getRun } from "../run/read.ts";
import { nameTrouble, type Trouble, troubleOf } from "./causes.ts";
import { findClaimsInTheWay } from "./claims-in-the-way.ts";
import {
  type ClaimLink,
  type Explanation,
  explainHolder,
  inOrder,
  type LastFailure,
  type NextCommand,
} from "./explanation.ts";
import { findNextPass, iso, type NextPass } from "./next-pass.ts";
import {
  type DecidingRuns,
  explainDeciding,
  explainParent,
  findDecidingRuns,
  headlineOfRuns,
  remediesOf,
  waitsForRuns,
} from "./run-children.ts";
import { runCommands } from "./run-commands.ts";
import { isSilentOverSsh } from "./run-remedies.ts";

const KIND = "run";

export interface SeenRun {
  readonly run: Run;
  /** The step that is being worked on, or that failed. */
  readonly step: StepStatus | undefined;
  readonly pass: NextPass;
  readonly claims: readonly ClaimLink[];
  readonly now: Date;
  /** What is wrong; its message is empty when nothing is. */
  readonly trouble: Trouble;
  /** A later run on the same target, which has the say now. */
  readonly newer: Run | undefined;
  /** What the script that failed said last; empty when it was none, or said nothing. */
  readonly lastWords: string;
  /** PassOutcome up only where what helps depends on it. */
  readonly machine: MachineView | undefined;
  /** The runs that it has started and waits for, or has failed by. */
  readonly parts: DecidingRuns | undefined;
  readonly isNamedByParent: boolean;
}

/** @param isNamedByParent Whoever asked about its parent knows already whose part it is. */
export async function explainRun(deps: ServiceDeps, id: string, isNamedByParent = false): Promise<Explanation> {
  const run = await getRun(deps, id);
  const key = { kind: KIND, id };
  const now = nowOf(deps);
  const pass = await findNextPass(deps.db, key, { now, isAtWork: isActive(run.phase) });
  const claims = run.phase === "PENDING" ? await findClaimsInTheWay(deps.db, deps.stores, key) : [];
  // A workflow goes on after a visit that failed.
  const isOpen = (visit: StepStatus, at: number) => visit.state !== "FAILED" || at === run.steps.length - 1;
  const step = run.steps.findLast((visit, at) => !isDone(visit) && isOpen(visit, at));
  const machineId = machineOf(run);
  const [newest] = await listRuns(deps.db, { target: run.target, limit: 1 });
  const newer = newest && newest.id !== id && newest.createdAt > run.createdAt ? newest : undefined;
  const installs = isActive(run.phase) && machineId !== null ? (await loadInstalls(deps.db, [machineId])).things : [];
  const install = installs.find(({ facts }) => facts.orderedBy === id);
  const trouble = troubleIn(run, step, pass);
  const lastWords = await lastWordsOf(deps, run, step, trouble.cause);
  const isAsked = dependsOnMachine(trouble.cause) || (run.phase === "CANCELED" && newer === undefined);
  const machine = isAsked && machineId !== null ? await viewMachine(deps, machineId) : undefined;
  const parts = await findDecidingRuns(deps, run, step, (part) => explainRun(deps, part, true));
  const seen: SeenRun = { run, step, pass, claims, now, trouble, newer, lastWords, machine, parts, isNamedByParent };
  return {
    headline: `run ${id} ${headlineOf(seen)}`,
    doing: doingOf(seen),
    waitingFor: [
      ...(parts && isActive(run.phase) ? waitsForRuns(run, parts) : []),
      ...(install ? [`install ${install.id}, which is ${install.state.name}`] : []),
      ...waitingFor(seen),
      ...(await silentBmcOf(deps, run)),
    ],
    since: sinceOf(seen),
    claims: [...claims, ...(parts?.first.claims ?? [])],
    lastFailure: lastFailureOf(seen),
    nextCommands: inOrder([
      ...(await nextOfFleetJob(deps, seen)),
      ...(parts ? [...remediesOf(parts), ...explainDeciding(parts)] : []),
      ...explainHolder(deps.stores, claims[0]?.holder ?? (install && { kind: "install", id: install.id })),
      ...runCommands(seen),
      ...(isNamedByParent ? [] : explainParent(run)),
    ]),
  };
}

/** People act on the latest job of a fleet node by the node, as `fleet show` says. */
async function nextOfFleetJob(deps: ServiceDeps, { run, newer }: SeenRun): Promise<NextCommand[]> {
  const { target, parent, phase } = run;
  if (target.kind !== fleetNodeLifecycle.kind || parent || isActive(phase) || newer) return [];
  const { next } = await viewNode(deps, target.id);
  return next.command === "" ? [] : [next];
}

/** The BMC may be silent while a step waits for something else: who waits for the run must know, since its end needs the BMC. */
async function silentBmcOf(deps: ServiceDeps, run: Run): Promise<string[]> {
  const machineId = machineOf(run);
  if (!isActive(run.phase) || machineId === null) return [];
  const { machine } = await viewMachine(deps, machineId);
  const reachable = machine.conditions.find(({ type }) => type === "BMCReachable");
  if (machine.spec.bmc === null || reachable === undefined || reachable.status) return [];
  const { lastTransition, message, reason } = reachable;
  return [`the BMC of machine ${machineId}, which is not reached since ${iso(lastTransition)}: ${message || reason}`];
}

/** Causes of which it depends on the machine what helps. */
const dependsOnMachine = (cause: Cause | null): boolean =>
  cause?.code === "not_drained" || cause?.code === "no_effect" || isSilentOverSsh(cause);

const LONGEST_WORDS = 300;
const NEWEST_PIECES = 8;
/** netplan shows the place in the file after what is wrong with it. */
const COMPLAINS = /error|invalid|malformed|unknown|failed/i;
/** Causes of which a script on the machine knows more than we do. */
const OF_SCRIPTS: ReadonlySet<CauseCode> = new Set([
  "script_failed",
  "not_drained",
  "join_failed",
  "net_refused",
  "net_reverted",
]);

/** An exit code alone tells nobody anything; the last line on its error stream usually does. */
async function lastWordsOf(
  { db }: ServiceDeps,
  { id, phase }: Run,
  step: StepStatus | undefined,
  cause: Cause | null,
): Promise<string> {
  if (phase !== "FAILED" || step === undefined || cause === null || !OF_SCRIPTS.has(cause.code)) return "";
  const pieces = await listLastErrors(db, id, step.name, NEWEST_PIECES);
  const lines = pieces
    .toReversed()
    .join("")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const complaint = cause.code === "net_refused" ? lines.findLast((line) => COMPLAINS.test(line)) : undefined;
  const said = complaint ?? lines.at(-1);
  return (said ?? "").trim().slice(0, LONGEST_WORDS);
}

function troubleIn(run: Run, step: StepStatus | undefined, { lastError, lastCause }: NextPass): Trouble {
  if (!isActive(run.phase)) return troubleOf(run.error?.message ?? "", causeInDetails(run.error?.details ?? {}));
  return lastError === null ? troubleOf(step?.message ?? "", step?.cause) : troubleOf(lastError, lastCause);
}

/** Between two attempts. */
const isPausing = ({ step, now }: Pick<SeenRun, "step" | "now">): boolean =>
  step?.nextAttemptAt != null && step.nextAttemptAt > now;

function headlineOf(seen: SeenRun): string {
  const { run, step, pass, claims, trouble } = seen;
  const on = `on ${run.target.kind} ${run.target.id}${run.parent && !seen.isNamedByParent ? ` for run ${run.parent.runId}` : ""}`;
  const [holder] = claims;
  if (isActive(run.phase) && run.cancelRequestedAt !== null) return `${on} is being canceled${awaitText(seen)}`;
  switch (run.phase) {
    case "SUCCEEDED":
      return `${on} SUCCEEDED: every step was proved`;
    case "CANCELED":
      return `${on} was CANCELED${run.residue.length > 0 ? `, and left behind: ${run.residue.join("; ")}` : ""}`;
    case "FAILED":
      return `${on} FAILED${step === undefined ? "" : ` in step ${step.name}`}: ${nameTrouble(trouble)}${manualText(run)}`;
    case "PENDING":
      if (holder) return `${on} is PENDING behind ${holder.holder.kind} ${holder.holder.id}, which ${holder.reason}`;
      return pass.isStranded ? `${on} is PENDING and waits for ${pass.waits}` : `${on} is PENDING: about to begin`;
    case "RUNNING":
      if (pass.lastError !== null) return `${on} is RUNNING, but ${nameTrouble(trouble)}`;
      if (pass.isStranded) return `${on} is RUNNING and waits for ${pass.waits}`;
      if (seen.parts) return `${on} ${stepText(seen)}${awaitText(seen)}`;
      return `${on} ${stepText(seen)}${trouble.cause === null ? "" : `, but ${nameTrouble(trouble)}`}`;
  }
}

const awaitText = ({ parts }: SeenRun): string => (parts ? `, and waits for ${headlineOfRuns(parts)}` : "");

const manualText = ({ manual }: Run): string =>
  manual === null ? "" : `; ${manual.by} took it over: ${manual.comment}`;

/** The first pass over a machine that is slow to answer takes its time, and the step counts as begun only after it. */
function nextStepText({ plan, steps }: Run): string {
  const next = plan.steps.find(({ name }) => steps.every((done) => done.name !== name));
  return next === undefined ? "its next step" : `step ${next.name}`;
}

function stepText({ run, step, now }: SeenRun): string {
  if (step === undefined) return `is RUNNING, about to begin ${nextStepText(run)}`;
  const name = `step ${step.name}${step.round > 1 ? `, round ${step.round}` : ""}`;
  if (isPausing({ step, now })) return `pauses before attempt ${step.retryCount + 1} of ${name}`;
  return `carries out ${name}`;
}

function doingOf({ run, step, now, parts }: SeenRun): string {
  if (!isActive(run.phase)) return "";
  if (run.cancelRequestedAt !== null) return "undoing what can be undone";
  if (run.phase === "PENDING") return "";
  if (step === undefined) return `asking the ${run.target.kind} how it is, before ${nextStepText(run)}`;
  const place = `step ${run.plan.steps.findIndex(({ name }) => name === step.name) + 1} of ${run.plan.steps.length}`;
  if (parts) return `${place}, ${step.name}: waiting for the runs that it has started`;
  if (isPausing({ step, now })) return `${place}, ${step.name}: pausing`;
  return `${place}, ${step.name}: ${phaseOf(step)}${step.retryCount > 0 ? `, attempt ${step.retryCount + 1}` : ""}`;
}

function phaseOf({ actedAt, streamedAt }: StepStatus): string {
  if (actedAt !== null) return "waiting for its proof";
  return streamedAt === null ? "preparing" : "sending";
}

function waitingFor({ run, step, pass, claims, now }: SeenRun): string[] {
  if (!isActive(run.phase)) return run.phase === "FAILED" ? ["a person: it does nothing more by itself"] : [];
  const holders = claims.map(
    ({ holder, thing, reason }) => `${holder.kind} ${holder.id}, which ${reason} (${thing.kind} ${thing.id})`,
  );
  const pause =
    step && isPausing({ step, now }) ? [`attempt ${step.retryCount + 1} at ${iso(step.nextAttemptAt as Date)}`] : [];
  const proof = step !== undefined && pause.length === 0 && step.message !== "" ? [step.message] : [];
  const ends = deadlineOf(run, step, now);
  return [...holders, ...pause, ...proof, ...(pass.waits === "" ? [] : [pass.waits]), ...ends];
}

/** When the present attempt counts as failed. */
function deadlineOf({ plan, phase }: Run, step: StepStatus | undefined, now: Date): string[] {
  const planned = plan.steps.find(({ name }) => name === step?.name);
  if (phase !== "RUNNING" || !planned || !step?.attemptStartedAt || isPausing({ step, now })) return [];
  const at = new Date(step.attemptStartedAt.getTime() + planned.timeoutSeconds * 1_000);
  const left = planned.maxRetries - step.retryCount;
  return [
    `at the latest its timeout at ${iso(at)}, ${left > 0 ? `after which it is tried again` : "after which the run fails"}`,
  ];
}

function sinceOf({ run, step }: SeenRun): Date | null {
  if (run.finishedAt !== null) return run.finishedAt;
  if (run.cancelRequestedAt !== null) return run.cancelRequestedAt;
  if (run.phase === "PENDING") return run.createdAt;
  return step?.attemptStartedAt ?? step?.startedAt ?? run.startedAt ?? run.createdAt;
}

/** Of a run that failed by others, that of the first of them: there is what to put right. */
function lastFailureOf(seen: SeenRun): LastFailure | null {
  const { run, parts } = seen;
  const ofPart = parts?.first.lastFailure ?? null;
  return run.phase === "FAILED" ? (ofPart ?? ownFailureOf(seen)) : (ownFailureOf(seen) ?? ofPart);
}

function ownFailureOf({ run, step, now, pass, lastWords }: SeenRun): LastFailure | null {
  const base = { runId: run.id, step: step?.name ?? "" };
  if (run.phase === "FAILED")
    return {
      ...base,
      at: run.finishedAt,
      attempt: Math.max(1, step?.retryCount ?? 1),
      message: `${run.error?.message ?? run.message}${lastWords === "" ? "" : `; it said: ${lastWords}`}`,
    };
  if (pass.lastError !== null) return { ...base, at: null, attempt: pass.failures, message: pass.lastError };
  if (!isActive(run.phase) || step === undefined || step.retryCount === 0) return null;
  const message = isPausing({ step, now })
    ? step.message
    : `attempt ${step.retryCount} of step ${step.name} failed; its log says why`;
  return { ...base, at: step.attemptStartedAt, attempt: step.retryCount, message };
}
