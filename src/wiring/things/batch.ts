import { AppError } from "../../kernel/errors.ts";
import { nothingToDo } from "../../kernel/outcome.ts";
import type { Batch } from "../../lifecycles/batch/batch.ts";
import type { StartOnMachine } from "../../runs/steps/batch-runs.ts";
import type { OnNodeBatch } from "../../runs/steps/fleet/onboard-batch.ts";
import { batchTarget } from "../../runs/targets/batch.ts";
import type { RunOn } from "../../runs/targets/target-kind.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { onboardingsOf } from "../../services/fleet/jobs.ts";
import { onboardNode } from "../../services/fleet/onboard.ts";
import { ParentOver } from "../../services/run/many/parents.ts";
import { startRun } from "../../services/run/starts.ts";
import { batchStore } from "../../store/batch/batches.ts";
import { fleetNodeStore } from "../../store/fleet/nodes.ts";
import { hostReprovisionStore } from "../../store/host-reprovision/host-reprovisions.ts";
import { collectThingStores, type ThingStores } from "../../store/lifecycle/things.ts";
import { machineStore } from "../../store/machine/machines.ts";
import { isDatabaseTrouble } from "../../store/postgres/database-errors.ts";
import { runStore } from "../../store/run/runs.ts";
import type { WiredTarget } from "../run-targets.ts";
import { defineThing, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

/** Runs are started as by any caller, with all checks of StartRun: what is refused is refused for that machine alone. */
function startsRuns({ db, secrets, clock, runs: { starting } }: TargetTools) {
  const stores = collectThingStores([runStore, machineStore]);
  const deps = { ...starting, db, secrets, clock, stores, maxFindByIds: 1 };
  return ({ id, target, plan }: RunOn<Batch>, step: string): StartOnMachine =>
    async (machineId) => {
      const { type, plan_id, params } = (plan.steps.find(({ name }) => name === step)?.payload ?? {}) as {
        readonly type: string;
        readonly plan_id: string;
        readonly params: Readonly<Record<string, string>>;
      };
      const caller = { name: target.thing.initiator, roles: [], address: null };
      try {
        const asked = { requestId: `of ${id}`, machineId, type, planId: plan_id, params };
        await startRun(deps, caller, asked, { runId: id, step, round: 1 });
        return "started";
      } catch (error) {
        if (error instanceof ParentOver) return "over";
        if (!(error instanceof AppError) || isDatabaseTrouble(error)) throw error;
        return { refused: error.message };
      }
    };
}

/** Nodes are onboarded as by any caller, in the name of whoever started the batch. */
function onboardsNodes({ db, secrets, clock, runs: { starting } }: TargetTools, stores: ThingStores) {
  const deps = { ...starting, db, secrets, clock, stores, maxFindByIds: 1 };
  return ({ thing }: RunOn<Batch>["target"]): Pick<OnNodeBatch, "onboard" | "jobsOf"> => ({
    jobsOf: (nodeIds) => onboardingsOf(db, nodeIds),
    async onboard({ ipmi_ip: ipmiIp, ...node }, requestId) {
      const caller = { name: thing.initiator, roles: [], address: null };
      try {
        return { id: (await onboardNode(deps, caller, { ...node, ipmiIp, requestId })).id };
      } catch (error) {
        if (!(error instanceof AppError) || isDatabaseTrouble(error)) throw error;
        return { refused: error.message };
      }
    },
  });
}

const runTarget = (tools: TargetTools): WiredTarget<Batch> => {
  const starting = startsRuns(tools);
  const onboarding = onboardsNodes(
    tools,
    collectThingStores([runStore, machineStore, fleetNodeStore, hostReprovisionStore]),
  );
  return {
    kind: batchTarget,
    providerOf: () => ({ name: "batch", can: {} }),
    partsOf: (run, { name }) => ({
      target: run.target.thing,
      startOn: starting(run, name),
      ...onboarding(run.target),
    }),
  };
};

export const batch = defineThing<Batch>({
  store: batchStore,
  handlers: () => withContext<Batch, object>({ frozen: async () => nothingToDo(null) }, () => ({})),
  runTarget,
  explain: (deps, id) =>
    explainAnyThing(deps, batchStore.lifecycle.kind, id, "millwright run list --target-kind batch"),
  words: { idLength: "batch-0123456789abcdef0123456789abcdef".length },
});
