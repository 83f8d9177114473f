import {
  type Choice,
  defineWorkflow,
  finish,
  type Given,
  goTo,
  type PastVisit,
  type Stage,
  skip,
} from "../workflow.ts";
import {
  DECOMMISSION_STAGES,
  DEPLOYMENT,
  type DecommissionStage,
  type DeploymentStage,
} from "./decommission-stages.ts";
import { fleetOnboarding } from "./fleet-onboarding.ts";
import type { OnboardingStage } from "./onboarding-stages.ts";
import { type DecommissionParam, FLEET_DECOMMISSION } from "./words.ts";

const TO_RETIRED = ["disable_node", "force_release_allocations", "drain_node"] as const;
const CLEANED = ["cleanup_storage", "scrub_gpu", "validate_clean_node"] as const;

/**
 * Which stages each mode has, in their order. The uninstall comes before the release in MAAS: it needs the system that the release ends. Everything
 * that MAAS does comes when the node is retired, or being removed, so that what fails there leaves a node that nobody schedules on.
 */
export const STAGES_OF: Readonly<Record<DecommissionParam, readonly DecommissionStage[]>> = {
  soft_reset: [...TO_RETIRED, ...CLEANED],
  storage_cleanup: ["disable_node", "drain_node", "cleanup_storage", "validate_clean_node"],
  retire: ["disable_node", "drain_node", "retire_gpuaas_node"],
  reimage: [...TO_RETIRED, "load_site_config", "retire_gpuaas_node", "release_maas_node", ...DEPLOYMENT],
  full_decommission: [
    ...TO_RETIRED,
    ...CLEANED,
    ...(["load_site_config", "retire_gpuaas_node", "remove_gpuaas_node_record", "release_maas_node"] as const),
    ...(["power_off_maas_node", "cleanup_secrets", "remove_maas_record"] as const),
  ],
};

const NAMES = Object.keys(DECOMMISSION_STAGES) as readonly DecommissionStage[];
const isDeployment = (name: DecommissionStage): name is DeploymentStage => DEPLOYMENT.some((each) => each === name);

function stageOf(name: DecommissionStage): Stage<DecommissionStage> {
  const { doc: _, calls: _c, doneWhen: _d, failures: _f, ...rest } = DECOMMISSION_STAGES[name];
  if (isDeployment(name)) return { name, ...rest };
  const sequences = Object.values(STAGES_OF).filter((stages) => stages.includes(name));
  const after = sequences.map((stages) => stages[stages.indexOf(name) + 1]);
  return {
    ...{ name, ...rest },
    leadsTo: [...new Set(after.filter((next) => next !== undefined))],
    ...(after.includes(undefined) && { mayEnd: true }),
  };
}

/** A node leaves the service, for good or to come back clean. Its mode says how far. */
export const fleetDecommission = defineWorkflow<DecommissionStage>({
  kind: FLEET_DECOMMISSION,
  doc: "Decommission a GPU node",
  stages: NAMES.map(stageOf),
  next: nextInDecommission,
});

type Past = readonly PastVisit<DecommissionStage>[];

function nextInDecommission(history: Past, given: Given<DecommissionStage>): Choice<DecommissionStage> {
  const last = history.at(-1);
  // What a deployment fails of, and how often it is repeated, is the same as in an onboarding.
  if (last !== undefined && isDeployment(last.stage))
    return fleetOnboarding.next(history as readonly PastVisit<string>[] as readonly PastVisit<OnboardingStage>[], {
      ...given,
      onwards: given.onwards as Choice<OnboardingStage>,
    }) as Choice<DeploymentStage>;
  if (last?.state === "FAILED") return given.onwards;
  const stages = STAGES_OF[given.params.mode as DecommissionParam] ?? [];
  const stage = stages[last === undefined ? 0 : stages.indexOf(last.stage) + 1];
  if (stage === undefined) return finish;
  const why = whySkipped(stage, given.params);
  return why === undefined ? goTo(stage) : skip(stage, why);
}

const OF_MAAS: readonly DecommissionStage[] = [
  "load_site_config",
  "release_maas_node",
  "power_off_maas_node",
  "remove_maas_record",
];
const OF_AGENT: readonly DecommissionStage[] = ["drain_node", ...CLEANED];
const BEFORE_RETIRED: readonly DecommissionStage[] = [...TO_RETIRED, ...CLEANED, "retire_gpuaas_node"];

/** Why the stage has nothing to do, by what is known before the job starts; undefined where it has. */
function whySkipped(stage: DecommissionStage, params: Readonly<Record<string, string>>): string | undefined {
  const { node_mode, node_state, agent } = params;
  if (node_state === "retired" && BEFORE_RETIRED.includes(stage)) return "the node is retired already";
  if (node_mode === "manual" && OF_MAAS.includes(stage)) return "a manual node: MAAS has no part in it";
  if (agent === "gone" && OF_AGENT.includes(stage)) return "the caller says that the agent is gone";
  return undefined;
}

/** What a job with these parameters comes through where all goes well, and what it leaves out. */
export const previewOf = (
  params: Readonly<Record<string, string>> & { readonly mode: DecommissionParam },
): readonly { readonly stage: DecommissionStage; readonly skipped: string }[] =>
  STAGES_OF[params.mode]
    .filter((stage) => stage !== "classify_deploy_failure" && stage !== "recover_for_datasource_retry")
    .map((stage) => ({ stage, skipped: whySkipped(stage, params) ?? "" }));
