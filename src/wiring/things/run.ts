import { PlanService, RunService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { PlanCatalogService } from "../../../contract/millwright/v1/plan_pb.js";
import { RunService as AllRunsService, RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { ScriptService } from "../../../contract/millwright/v1/script_pb.js";
import { planCatalog, plans } from "../../api/baremetal/plans.ts";
import { runs } from "../../api/baremetal/runs.ts";
import { runActions } from "../../api/millwright/run/run-actions.ts";
import { allRuns } from "../../api/millwright/run/runs.ts";
import { scripts } from "../../api/millwright/scripts.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import { type RunContext, runHandlers } from "../../runs/executor/executor.ts";
import { BegunActions } from "../../runs/executor/step/begun-actions.ts";
import type { RunThing } from "../../runs/model/lifecycle.ts";
import { allWorkflows } from "../../runs/workflows/index.ts";
import { explainRun } from "../../services/explain/run.ts";
import { runListing } from "../../store/run/run-list.ts";
import { runStore } from "../../store/run/runs.ts";
import { collectRunTargets } from "../run-targets.ts";
import { defineThing, type HandlerTools, type MethodDeps } from "./thing.ts";
import { withContext } from "./with-context.ts";

function handlers({ clock, runs: tools, runTargets }: HandlerTools) {
  if (!tools) return undefined;
  const { steps, workflows = allWorkflows, instance, stepFailed } = tools;
  const begun = new BegunActions();
  const targets = collectRunTargets(runTargets);
  const contextOf = (thing: RunThing): Omit<RunContext, "call"> => ({
    clock,
    steps,
    workflows,
    instance,
    begun,
    ...(stepFailed && { stepFailed }),
    ...targets.contextOf(thing),
  });
  return withContext(runHandlers, contextOf, targets.asSeen);
}

function methods({ services, runs: more, events }: MethodDeps) {
  const ofPlans = [partOf(PlanService, plans(services)), partOf(PlanCatalogService, planCatalog(services, more))];
  if (!more) return ofPlans;
  const deps = { ...services, ...more };
  return [
    ...ofPlans,
    partOf(RunService, runs(deps, events)),
    partOf(AllRunsService, allRuns(deps, events)),
    partOf(RunActionsService, runActions(deps)),
    partOf(ScriptService, scripts(deps)),
  ];
}

export const run = defineThing({
  store: runStore,
  handlers,
  explain: explainRun,
  methods,
  listing: runListing,
  words: { idLength: "run-0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d".length },
  methodGroup: "runs",
  // biome-ignore format: a table is read by its columns
  things: {
    "baremetal.v1.RunService/GetRun":                                    "run run_id",
    "baremetal.v1.RunService/ListRuns":                                  "list",
    "baremetal.v1.RunService/CancelRun":                                 "run run_id",
    "baremetal.v1.RunService/WatchRuns":                                 "list",
    "baremetal.v1.RunService/StreamRunLogs":                             "run run_id",
    "millwright.v1.RunService/GetRun":                                   "run run_id",
    "millwright.v1.RunService/ListRuns":                                 "list",
    "millwright.v1.RunService/CancelRun":                                "run run_id",
    "millwright.v1.RunService/WatchRuns":                                "list",
    "millwright.v1.RunService/StreamRunLogs":                            "run run_id",
    "millwright.v1.RunService/ReadRunLog":                               "run run_id",
    "millwright.v1.RunService/ListUsualDurations":                       "run run_id",
    "baremetal.v1.RunService/StartRun":                                  "machine machine_id",
    "millwright.v1.RunActionsService/PreviewRun":                        "machine machine_id",
    "millwright.v1.RunActionsService/StartRuns":                         "list",
    "millwright.v1.RunActionsService/RetryRun":                          "run run_id",
    "millwright.v1.RunActionsService/ResumeRun":                         "run run_id",
    "millwright.v1.RunActionsService/RerunRun":                          "run run_id",
    "millwright.v1.RunActionsService/RestartRunClean":                   "run run_id",
    "millwright.v1.RunActionsService/AdoptRun":                          "run run_id",
    "millwright.v1.RunActionsService/MarkRunManual":                     "run run_id",
    "millwright.v1.RunActionsService/CancelJob":                         "run run_id",
  },
  // biome-ignore format: a table is read by its columns
  roles: {
    "baremetal.v1.PlanService/GetPlan":                   ["viewer"],
    "baremetal.v1.PlanService/ListPlans":                 ["viewer"],
    "baremetal.v1.RunService/StartRun":                   ["operator"],
    "baremetal.v1.RunService/GetRun":                     ["viewer"],
    "baremetal.v1.RunService/ListRuns":                   ["viewer"],
    "baremetal.v1.RunService/CancelRun":                  ["operator"],
    "baremetal.v1.RunService/WatchRuns":                  ["viewer"],
    "baremetal.v1.RunService/StreamRunLogs":              ["viewer"],
    "millwright.v1.PlanCatalogService/CreatePlan":        ["operator"],
    "millwright.v1.PlanCatalogService/ListPlans":         ["viewer"],
    "millwright.v1.PlanCatalogService/DeletePlan":        ["admin"],
    "millwright.v1.RunService/GetRun":                    ["viewer"],
    "millwright.v1.RunService/ListRuns":                  ["viewer"],
    "millwright.v1.RunService/CancelRun":                 ["operator"],
    "millwright.v1.RunService/WatchRuns":                 ["viewer"],
    "millwright.v1.RunService/StreamRunLogs":             ["viewer"],
    "millwright.v1.RunService/ReadRunLog":                ["viewer"],
    "millwright.v1.RunService/ListUsualDurations":        ["viewer"],
    "millwright.v1.RunActionsService/PreviewRun":         ["viewer"],
    "millwright.v1.RunActionsService/StartRuns":          ["operator"],
    "millwright.v1.RunActionsService/RetryRun":           ["operator"],
    "millwright.v1.RunActionsService/ResumeRun":          ["operator"],
    "millwright.v1.RunActionsService/RerunRun":           ["operator"],
    "millwright.v1.RunActionsService/RestartRunClean":    ["operator"],
    "millwright.v1.RunActionsService/AdoptRun":           ["operator"],
    "millwright.v1.RunActionsService/MarkRunManual":      ["operator"],
    "millwright.v1.RunActionsService/CancelJob":          ["operator"],
    "millwright.v1.ScriptService/ListScripts":            ["viewer"],
    "millwright.v1.ScriptService/GetScript":              ["viewer"],
  },
});
