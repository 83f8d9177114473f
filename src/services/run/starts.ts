import { type Batcher, createBatcher, runInHalves } from "../../kernel/batcher.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { ParentStep } from "../../runs/children/child-run.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import { findRunType } from "../../runs/model/plan/run-types.ts";
import type { Run } from "../../runs/model/run.ts";
import { findLiveNodes } from "../../store/fleet/nodes.ts";
import { createAll } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { machineStore } from "../../store/machine/machines.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { isDatabaseTrouble } from "../../store/postgres/database-errors.ts";
import { keepDocuments } from "../../store/run/run-documents.ts";
import { findByRequests, listRuns } from "../../store/run/runs.ts";
import { keepScripts } from "../../store/run/script-texts.ts";
import type { Caller } from "../call/caller.ts";
import { doneBy } from "../call/initiator.ts";
import type { ClusterVerdict } from "../catalog/cluster-gate.ts";
import { checkMediaTried, checkSeeds, startOnTriedMedia } from "../install/seed-checks.ts";
import { checkClusters, startOnTriedClusters } from "./cluster-checks.ts";
import {
  askedRun,
  checkRunRequestId,
  factsOfPlanRun,
  fingerprintOf,
  newJobId,
  newRunId,
  sameRequest,
} from "./creation.ts";
import { checkCredentials, findCredentials } from "./credentials.ts";
import type { RunDeps } from "./deps.ts";
import { checkIsPart, checkParent, findParents } from "./many/parents.ts";
import { findPlanForRun } from "./plans.ts";
import { checkReferences, documentsOf, holdReferences, versionIn, versionsOf } from "./references.ts";
import {
  type ChosenRun,
  checkMachineId,
  checkMeans,
  checkMoment,
  chooseRun,
  heldImagesIn,
  type MeansOfImages,
} from "./start-checks.ts";

export interface StartRun {
  readonly requestId: string;
  readonly machineId: string;
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Starts a run, or returns the one that the same request started before, under any race.
 *
 * @throws ParentOver when the run that it is to be a part of starts no others any more.
 */
export async function startRun(deps: RunDeps, caller: Caller, input: StartRun, parent?: ParentStep): Promise<Run> {
  const { requestId, type, planId, params } = input;
  checkRunRequestId(requestId);
  const machineId = checkMachineId(input.machineId);
  // A type that there is not is refused later, in its turn: until then it is as it was written.
  const asked = findRunType(type) ?? type;
  const fingerprint = fingerprintOf([asked, planId, Object.entries(params).sort()]);
  const started = { machineId, requestId, type, planId, params, fingerprint, id: newRunId(), caller };
  const run = parent ? { ...started, parent } : started;
  return startTried(deps, run);
}

const startTried = (deps: RunDeps, start: Start): Promise<Run> =>
  startOnTriedClusters(deps, start.machineId, (verdicts) =>
    startOnTriedMedia(deps, async (mediaTried) => {
      const started = await starterOf(deps).submit({ ...start, verdicts, mediaTried });
      if ("run" in started) return started.run;
      throw started.refused;
    }),
  );

/** What a call of its own starts, by a plan that is in no catalogue. */
export interface StartOwnPlan extends Pick<StartRun, "requestId" | "machineId"> {
  readonly plan: Plan;
}

/** As `startRun`, with a plan that only the server has. */
export async function startOwnPlan(deps: RunDeps, caller: Caller, input: StartOwnPlan): Promise<Run> {
  const { requestId, plan } = input;
  checkRunRequestId(requestId);
  const machineId = checkMachineId(input.machineId);
  const fingerprint = fingerprintOf([plan.planId, plan.steps.map(({ payload }) => payload)]);
  const { planId } = plan;
  const run = { machineId, requestId, type: "", planId, plan, params: {}, fingerprint, id: newRunId(), caller };
  return startTried(deps, run);
}

/** A start whose words were checked; what it needs of the database is not looked up yet. */
interface Start extends StartRun {
  readonly fingerprint: string;
  /** For the run, if it comes to be. */
  readonly id: string;
  readonly caller: Caller;
  /** Of those clusters that were tried for it. */
  readonly verdicts?: ReadonlyMap<string, ClusterVerdict>;
  /** Whether the machine's BMC was asked for the drives that the media need. */
  readonly mediaTried?: boolean;
  /** Absent: the plan of the id. */
  readonly plan?: Plan;
  readonly parent?: ParentStep;
}

/** Checked as far as it can be by itself; what is left is looked up for all of them at once. */
type CheckedRun = ChosenRun & { readonly needs: Awaited<ReturnType<typeof checkMeans>> };

type Started = { readonly run: Run } | { readonly refused: unknown };

const starters = new WeakMap<RunDeps, Batcher<Start, Started>>();

/**
 * Those who start runs while others are being started are served together, in one transaction: what is wrong with one of them is
 * its own affair. Each machine is locked, and the database holds one run a request and one active run a machine.
 */
function starterOf(deps: RunDeps): Batcher<Start, Started> {
  const known = starters.get(deps);
  if (known) return known;
  const starter = createBatcher<Start, Started>({
    most: 100,
    atOnce: 2,
    run: (starts) =>
      runInHalves<Start, Started>(starts, {
        run: (some) => startAll(deps, some),
        isOfTheItem: (error) => !isDatabaseTrouble(error),
        alone: async (_, refused) => ({ refused }),
      }),
  });
  starters.set(deps, starter);
  return starter;
}

async function startAll(deps: RunDeps, starts: readonly Start[]): Promise<Started[]> {
  const ids = new Map<Start, string | AppError>();
  for (const round of roundsOf(starts))
    for (const [start, id] of await deps.db.transaction((tx) => startRound(tx, deps, round))) ids.set(start, id);
  const made = [...new Set(ids.values())].filter((id) => typeof id === "string");
  const runs = new Map((await listRuns(deps.db, { ids: made })).map((run) => [run.id, run]));
  return starts.map((start) => {
    const id = ids.get(start);
    const run = typeof id === "string" ? runs.get(id) : undefined;
    return run ? { run } : { refused: id };
  });
}

/** Each machine once in a round: who comes second finds what the first has started. */
function roundsOf(starts: readonly Start[]): Start[][] {
  const rounds: Start[][] = [];
  const counts = new Map<string, number>();
  for (const start of starts) {
    const earlier = counts.get(start.machineId) ?? 0;
    counts.set(start.machineId, earlier + 1);
    rounds[earlier] ??= [];
    rounds[earlier].push(start);
  }
  return rounds;
}

/** The id of the run that each has come to, or why there is none. */
async function startRound(
  tx: Transaction,
  deps: RunDeps,
  starts: readonly Start[],
): Promise<Map<Start, string | AppError>> {
  const ids = starts.map(({ machineId }) => machineId);
  await lockThings(
    tx,
    starts.flatMap(({ id, machineId, parent }) => [
      { kind: "machine", id: machineId },
      { kind: "run", id },
      ...(parent ? [{ kind: "run", id: parent.runId }] : []),
    ]),
  );
  const earlier = new Map((await findByRequests(tx, starts)).map((run) => [run.machineId, run]));
  const parents = await findParents(tx, starts);
  const nodes = await findLiveNodes(tx, ids);
  const sources = sourcesOf(tx, deps, (await machineStore.load(tx, ids)).things, nodes);
  const results = new Map<Start, string | AppError>();
  const chosen = new Map<Start, CheckedRun>();
  for (const start of starts) {
    await refusing(results, start, async () => {
      const known = earlier.get(start.machineId);
      if (known) return results.set(start, sameRequest(checkIsPart(known, start), start));
      checkParent(parents, start);
      const run = await chooseRun(start, sources);
      checkMoment(run.machine);
      return chosen.set(start, { ...run, needs: await checkMeans(sources.meansOf, deps, run) });
    });
  }
  await createChosen(tx, deps, chosen, results);
  return results;
}

function sourcesOf(
  tx: Transaction,
  deps: RunDeps,
  machines: readonly Machine[],
  nodes: Awaited<ReturnType<typeof findLiveNodes>>,
) {
  const byId = new Map<string, Machine>(machines.map((machine) => [machine.id, machine]));
  const plans = new Map<string, Promise<Plan>>();
  const means = new Map<string, ReturnType<MeansOfImages>>();
  const meansOf: MeansOfImages = (names) => {
    const key = JSON.stringify(names);
    const found = means.get(key) ?? heldImagesIn(tx)(names);
    means.set(key, found);
    return found;
  };
  return {
    meansOf,
    steps: deps.steps,
    findMachine: async (id: string) => byId.get(id),
    findFleetNode: async (id: string) => nodes.get(id),
    findPlan(id: string) {
      const plan = plans.get(id) ?? findPlanForRun(tx, id);
      plans.set(id, plan);
      return plan;
    },
  };
}

async function createChosen(
  tx: Transaction,
  deps: RunDeps,
  chosen: ReadonlyMap<Start, CheckedRun>,
  results: Map<Start, string | AppError>,
): Promise<void> {
  const credentials = await findCredentials(tx, deps, [...chosen.values()]);
  const references = await holdReferences(tx, deps, [...chosen.values()]);
  const created: Start[] = [];
  const scripts = new Map<Start, Record<string, string>>();
  const jobs = new Map([...chosen.keys()].map((start) => [start, newJobId()] as const));
  for (const [start, run] of chosen) {
    await refusing(results, start, async () => {
      checkCredentials(credentials, run);
      scripts.set(start, checkReferences(references, deps, run));
      checkClusters(deps, run, start.verdicts ?? new Map());
      checkSeeds(deps, run, references.documents);
      checkMediaTried(deps, run, start.mediaTried === true);
      created.push(start);
    });
  }
  for (const ofCaller of Map.groupBy(created, ({ caller }) => JSON.stringify(doneBy(caller))).values()) {
    const [{ caller }] = ofCaller as [Start];
    const things = ofCaller.map((start) => {
      const { type, plan } = chosen.get(start) as ChosenRun;
      return askedRun(deps, caller, {
        ...start,
        jobId: jobs.get(start) ?? newJobId(),
        target: { kind: "machine", id: start.machineId },
        type,
        plan,
        facts: factsOfPlanRun(scripts.get(start) ?? {}),
      });
    });
    await createAll(tx, storeOf(deps.stores, "run"), things, doneBy(caller));
  }
  const begunWith = created.flatMap((start) => versionsOf(scripts.get(start) ?? {}));
  await keepScripts(tx, begunWith, versionIn(deps));
  for (const start of created) {
    const run = chosen.get(start) as CheckedRun;
    // Only installers that read a seed are given what a document says.
    if (readsSeed(run))
      await keepDocuments(tx, deps.secrets, jobs.get(start) ?? "", documentsOf(references, deps, run));
    results.set(start, start.id);
  }
}

const readsSeed = ({ needs }: CheckedRun): boolean =>
  [...needs.values()].some(({ images }) => images.some(({ seed }) => seed !== null));

/** A refusal is the answer of the one start that it is about; anything else is trouble for all of them. */
async function refusing(
  results: Map<Start, string | AppError>,
  start: Start,
  check: () => Promise<unknown>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof AppError) || isDatabaseTrouble(error)) throw error;
    results.set(start, error);
  }
}
