import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import { ACTION_RULES, inheritFrom, mayFollowPhase, type NextAttempt } from "../../runs/model/next-attempt.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { findLiveNodes } from "../../store/fleet/nodes.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { machineStore } from "../../store/machine/machines.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findDocument } from "../../store/run/run-documents.ts";
import { getFrozenScripts } from "../../store/run/runs.ts";
import { findScripts, keepScripts } from "../../store/run/script-texts.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import type { ClusterVerdict } from "../catalog/cluster-gate.ts";
import { checkMediaTried, checkSeeds, startOnTriedMedia } from "../install/seed-checks.ts";
import { checkClusters, startOnTriedClusters } from "./cluster-checks.ts";
import { checkRunRequestId, createRun, factsOfPlanRun, findRepeated, fingerprintOf, newRunId } from "./creation.ts";
import { checkCredentials, findCredentials } from "./credentials.ts";
import type { RunDeps } from "./deps.ts";
import { checkLatest, loadRun } from "./latest-attempt.ts";
import { getRun } from "./read.ts";
import {
  checkReferences,
  documentsOf,
  holdReferences,
  type KnownReferences,
  versionIn,
  versionsOf,
} from "./references.ts";
import { checkFleetNode, checkMeans, checkMoment, checkRunId, heldImagesIn } from "./start-checks.ts";
import { actOnWorkflow, checkActions } from "./workflow-actions.ts";
import { workflowOf } from "./workflow-starts.ts";

const KIND = "run";
const runKey = (id: string) => ({ kind: KIND, id });
const LONGEST_COMMENT = 1_024;

export interface ActOnRun {
  readonly runId: string;
  readonly requestId: string;
  /** Scripts that changed since the run was started are taken as they are now. */
  readonly takeNewScripts?: boolean;
}

/**
 * Makes the next attempt at the job of a run that has ended, under the rules of StartRun: once for a request, one active run a
 * machine, whatever races. Only the latest attempt can be followed by another.
 */
export async function startNextAttempt(
  deps: RunDeps,
  caller: Caller,
  action: NextAttempt,
  input: ActOnRun,
): Promise<Run> {
  const { requestId, takeNewScripts = false } = input;
  const runId = checkRunId(input.runId);
  checkRunRequestId(requestId);
  const acted = await getRun(deps, runId);
  if (acted.plan.workflow !== undefined) return actOnWorkflow(deps, caller, action, { runId, requestId });
  const machineId = machineToActOn(acted); // a run never changes its target
  const fingerprint = fingerprintOf([action, runId, takeNewScripts]);
  const newId = newRunId();
  const attempt = async (tx: Transaction, verdicts: ReadonlyMap<string, ClusterVerdict>, mediaTried: boolean) => {
    await lockThings(tx, [{ kind: "machine", id: machineId }, runKey(runId), runKey(newId)]);
    const known = await findRepeated(tx, { machineId, requestId, fingerprint });
    if (known !== undefined) return known;
    const previous = await loadRun(tx, runId);
    await checkLatest(tx, previous, action);
    checkPhase(previous, action);
    const machine = await loadMachine(tx, machineId);
    checkMoment(machine);
    const findFleetNode = async (id: string) => (await findLiveNodes(tx, [id])).get(id);
    await checkFleetNode({ steps: deps.steps, findFleetNode }, { machineId, plan: previous.plan });
    const inherited = inheritFrom(previous, action);
    const carried = new Set(inherited.steps.filter(({ carriedOver }) => carriedOver).map(({ name }) => name));
    const remaining = { ...previous.plan, steps: previous.plan.steps.filter(({ name }) => !carried.has(name)) };
    const needs = await checkMeans(heldImagesIn(tx), deps, { machine, plan: remaining });
    checkCredentials(await findCredentials(tx, deps, [{ machine, needs }]), { machine, needs });
    const references = await holdReferences(tx, deps, [{ machine, plan: remaining }]);
    const choice = { previous, machine, remaining, references, action, takeNewScripts };
    const scripts = await chooseScripts(tx, deps, choice);
    await keepScripts(tx, versionsOf(scripts), versionIn(deps));
    // Who only looks needs no seed, and does nothing to a cluster.
    if (action !== "adopt") {
      checkClusters(deps, { machine, plan: remaining }, verdicts);
      const documents = await documentsOfJob(tx, deps, choice);
      asOfNow(() => checkSeeds(deps, { machine, needs }, documents));
      checkMediaTried(deps, { machine, needs }, mediaTried);
    }
    const { type, plan, params } = previous;
    await createRun(tx, deps, caller, {
      id: newId,
      target: previous.target,
      requestId,
      fingerprint,
      type,
      plan,
      params,
      facts: factsOfPlanRun(scripts, inherited),
      next: { of: previous, action },
    });
    await recordChange(tx, storeOf(deps.stores, KIND), {
      id: runId,
      ...doneBy(caller),
      type: "continued",
      reason: `${action} as ${newId}`,
      data: { action, run: newId },
      set: { next_run_id: newId },
      touchesBasis: false, // it has ended: nobody works on it
    });
    return newId;
  };
  const id = await startOnTriedClusters(deps, machineId, (verdicts) =>
    startOnTriedMedia(deps, (mediaTried) => deps.db.transaction((tx) => attempt(tx, verdicts, mediaTried))),
  );
  return getRun(deps, id);
}

/** Only runs that take a machine's run slot have a job that people act on; all others are parts of somebody else's work. */
function machineToActOn({ id, machineId, target }: Run): string {
  if (machineId !== null) return machineId;
  const why = `run ${id} on ${target.kind} ${target.id} is a part of other work and can only be canceled while it is active`;
  throw new AppError("failed_precondition", why, { next: `millwright run show ${id}` });
}

async function loadMachine(tx: Transaction, id: string): Promise<Machine> {
  const [machine] = (await machineStore.load(tx, [id])).things;
  if (machine) return machine;
  throw new AppError("not_found", `machine ${id} does not exist`, { next: "millwright machine list" });
}

function checkPhase(run: Run, action: NextAttempt): void {
  const { after, command } = ACTION_RULES[action];
  if (mayFollowPhase(action, run.phase)) return;
  if (isActive(run.phase)) {
    throw new AppError("failed_precondition", `run ${run.id} is ${run.phase}: wait for it or cancel it`, {
      next: `millwright run cancel ${run.id}`,
    });
  }
  const instead = (["resume", "rerun"] as const).find((one) => mayFollowPhase(one, run.phase)) ?? "rerun";
  throw new AppError(
    "failed_precondition",
    `run ${run.id} is ${run.phase}: ${command} is for runs that are ${after.join(" or ")}`,
    { next: `millwright run ${instead} ${run.id}` },
  );
}

interface Choice {
  readonly previous: Run;
  readonly machine: Machine;
  readonly remaining: Plan;
  /** Of what remains. */
  readonly references: KnownReferences;
  readonly action: NextAttempt;
  readonly takeNewScripts: boolean;
}

/**
 * Who begins everything anew begins with the scripts as they are now. Who goes on goes on with those of the start: the rest of a
 * plan done by other scripts than its beginning is nothing that anybody asked for, unless they say so.
 */
async function chooseScripts(
  tx: Transaction,
  deps: RunDeps,
  { previous, machine, remaining, references, action, takeNewScripts }: Choice,
): Promise<Readonly<Record<string, string>>> {
  const checked = (known: KnownReferences) => asOfNow(() => checkReferences(known, deps, { machine, plan: remaining }));
  if (!ACTION_RULES[action].carriesProven) return checked(references);
  const frozen = await getFrozenScripts(tx, previous.id);
  if (takeNewScripts) return { ...frozen, ...checked(references) };
  const kept = await findKept(tx, deps, frozen);
  // One that is kept need not be there any more.
  const now = checked({ ...references, script: new Set([...references.script, ...kept]) });
  const lost = Object.keys(now).find((ref) => isLost(ref));
  if (lost === undefined) return { ...now, ...frozen };
  throw new AppError(
    "failed_precondition",
    `script ${lost} is ${now[lost]} now, but was ${frozen[lost]} when run ${previous.id} was started, and that one is not kept any more: ` +
      "retry with the scripts of now (take_new_scripts), or rerun everything",
    { next: `millwright run retry ${previous.id} --new-scripts` },
  );

  function isLost(ref: string): boolean {
    return frozen[ref] !== undefined && frozen[ref] !== now[ref] && !kept.has(ref);
  }
}

/** Of the scripts that a run was started with, those whose text is there as it was. */
async function findKept(
  tx: Transaction,
  deps: RunDeps,
  frozen: Readonly<Record<string, string>>,
): Promise<ReadonlySet<string>> {
  const versions = versionsOf(frozen);
  const kept = await findScripts(tx, versions);
  const isKnown = versionIn(deps);
  return new Set(versions.filter((version, at) => (isKnown(version) ?? kept[at]) !== undefined).map(({ ref }) => ref));
}

/** What installers are told: as it was when the job began, and as it is now where no copy was kept. */
async function documentsOfJob(
  tx: Transaction,
  deps: RunDeps,
  { previous, machine, remaining, references }: Choice,
): Promise<ReadonlyMap<string, string>> {
  const documents = new Map(documentsOf(references, deps, { machine, plan: remaining }));
  for (const name of documents.keys()) {
    const kept = await findDocument(tx, deps.secrets, previous.jobId, name);
    if (kept !== undefined) documents.set(name, kept);
  }
  return documents;
}

/** Here nobody named a plan: what is missing is missing now, and was there when the job began. */
function asOfNow<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof AppError) || error.detail.field !== "plan_id") throw error;
    const { next, why = error.message } = error.detail;
    throw new AppError("failed_precondition", why, next === undefined ? {} : { next });
  }
}

/** Says that people take over. Saying it again is harmless; with another comment, the newer one stands. */
export async function markRunManual(
  deps: ServiceDeps & Pick<RunDeps, "workflows">,
  caller: Caller,
  input: { readonly runId: string; readonly comment: string },
): Promise<Run> {
  const runId = checkRunId(input.runId);
  const comment = checkComment(input.comment);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [runKey(runId)]);
    const run = await loadRun(tx, runId);
    if (run.plan.workflow === undefined) machineToActOn(run);
    else checkActions(workflowOf(deps, run.plan), run, "mark_manual");
    await checkLatest(tx, run, "mark_manual");
    checkMayTakeOver(run);
    if (run.manual?.comment === comment) return;
    const { actor, address } = doneBy(caller);
    await recordChange(tx, storeOf(deps.stores, KIND), {
      id: runId,
      actor,
      address,
      type: "marked_manual",
      reason: comment,
      set: { manual_at: nowOf(deps), manual_by: actor, manual_comment: comment },
      // Whoever works on it goes by that; one that has ended is worked on by nobody.
      touchesBasis: isActive(run.phase),
    });
    if (!isActive(run.phase)) return;
    await work.wake(tx, [runKey(runId)]);
    announce(tx);
  });
  return getRun(deps, runId);
}

/** A workflow that is under way stops after its present stage; plans are canceled instead. */
function checkMayTakeOver(run: Run): void {
  const isLive = isActive(run.phase) && run.cancelRequestedAt === null && run.compensateFirst === null;
  if (run.phase === "FAILED" || (isLive && run.plan.workflow !== undefined)) return;
  const of = run.plan.workflow === undefined ? "of a run that FAILED" : "of a run that FAILED, or goes on,";
  throw new AppError(
    "failed_precondition",
    `run ${run.id} is ${jobStateOf(run) === "compensating" ? "compensating" : run.phase}: only the job ${of} can be marked manual`,
    { next: `millwright run show ${run.id}` },
  );
}

function checkComment(text: string): string {
  const comment = text.trim();
  const refuse = (why: string) => new AppError("invalid_argument", `comment: ${why}`, { field: "comment" });
  if (comment === "") throw refuse("is required: what is wrong, and who sees to it");
  if (comment.length > LONGEST_COMMENT) throw refuse(`at most ${LONGEST_COMMENT} characters`);
  if (!isPrintable(comment)) throw refuse("must be printable, so without control or direction characters");
  return comment;
}
