import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { type Duration, milliseconds, seconds } from "../../../kernel/time/duration.ts";
import type { Plan } from "../../model/plan/plan.ts";
import { parseOnboarding } from "../../steps/fleet/onboarding/on-onboarding.ts";
import {
  type Choice,
  defineWorkflow,
  type Given,
  giveUp,
  goTo,
  type PastVisit,
  type Stage,
  skip,
} from "../workflow.ts";
import { ONBOARDING_STAGES, type OnboardingStage } from "./onboarding-stages.ts";
import { FLEET_ONBOARDING } from "./words.ts";

const NAMES = Object.keys(ONBOARDING_STAGES) as readonly OnboardingStage[];

function stageOf(name: OnboardingStage): Stage<OnboardingStage> {
  const { doc: _, calls: _c, doneWhen: _d, failures: _f, ...rest } = ONBOARDING_STAGES[name];
  return { name, ...rest };
}

/** The onboarding of a GPU node: into MAAS, through its commissioning and deployment, until its agent has enrolled. */
export const fleetOnboarding = defineWorkflow<OnboardingStage>({
  kind: FLEET_ONBOARDING,
  doc: "Onboard a GPU node over MAAS",
  stages: NAMES.map(stageOf),
  next: nextInOnboarding,
});

type Past = readonly PastVisit<OnboardingStage>[];

function nextInOnboarding(history: Past, given: Given<OnboardingStage>): Choice<OnboardingStage> {
  const choice = unlessSkipped(history, given);
  if (choice.type !== "go") return choice;
  const why = whySkipped(choice.stage, given.payloads[choice.stage] ?? {});
  return why === undefined ? choice : skip(choice.stage, why);
}

/** Where the way forks. */
function unlessSkipped(history: Past, given: Given<OnboardingStage>): Choice<OnboardingStage> {
  const last = history.at(-1);
  if (last === undefined) return given.onwards;
  switch (last.stage) {
    case "wait_for_deployed":
      if (last.state === "FAILED")
        return last.cause === "deploy_failed" ? goTo("classify_deploy_failure") : given.onwards;
      return goTo("ensure_hardware_sync_configured");
    case "classify_deploy_failure":
      return last.state === "FAILED" ? given.onwards : afterVerdict(history, last, given);
    case "recover_for_datasource_retry":
      return last.state === "FAILED" ? given.onwards : goTo("ensure_pxe_interface_auto");
    default:
      return given.onwards;
  }
}

/**
 * By itself only a datasource failure is retried, within the bound of the profile. A person who enters this stage again has asked for
 * another deployment, whatever the last one failed of; the bound counts from there.
 */
function afterVerdict(
  history: Past,
  last: PastVisit<OnboardingStage>,
  { payloads }: Given<OnboardingStage>,
): Choice<OnboardingStage> {
  if (last.verdict === "deployed") return goTo("ensure_hardware_sync_configured");
  const { enable_deploy_retry_on_datasource_failure: isEnabled, max_deploy_retry_attempts: most } = parseOnboarding(
    payloads.classify_deploy_failure ?? {},
  ).policy;
  const isAskedFor = history.every((visit) => visit === last || visit.carriedOver) && history.length > 1;
  if (isAskedFor) return goTo("recover_for_datasource_retry");
  if (last.verdict !== "datasource") return giveUp(undefined, { needsPerson: true, cause: { code: "deploy_failed" } });
  const retries = history.filter(
    ({ stage, carriedOver }) => stage === "recover_for_datasource_retry" && !carriedOver,
  ).length;
  if (isEnabled && retries < most) return goTo("recover_for_datasource_retry");
  const why = isEnabled
    ? `no datasource was found after ${retries} of ${most} retries`
    : "no datasource was found, and the profile does not retry";
  return giveUp(why, { needsPerson: true, cause: { code: "datasource_failed_repeatedly" } });
}

/** Why the stage has nothing to do, by what is known before the job starts; undefined where it has. */
function whySkipped(stage: OnboardingStage, payload: JsonObject): string | undefined {
  const { node_mode: mode, policy } = parseOnboarding(payload);
  if (mode === "manual" && stage !== "wait_for_agent_enrollment") return "a manual node: MAAS has no part in it";
  switch (stage) {
    case "apply_roce_phase2":
      return policy.enable_phase2_roce ? undefined : "the profile assigns no RoCE addresses";
    case "ensure_hardware_sync_configured":
    case "wait_for_hardware_sync_healthy":
      return policy.require_hw_sync ? undefined : "the profile does not require hardware sync";
    default:
      return undefined;
  }
}

export interface PreviewedStage {
  readonly stage: string;
  /** Why it has nothing to do; empty: it has. */
  readonly skipped: string;
  /** What it takes for the job to come to it; empty: nothing. */
  readonly onlyIf: string;
  /** Of one try. */
  readonly deadline: Duration;
  /** How often it is tried again in one round. */
  readonly retries: number;
  /** How often the job enters it at most, unless people lead it back. */
  readonly rounds: number;
}

/** What a job of this plan comes through. */
export function previewOf({ steps }: Pick<Plan, "steps">): readonly PreviewedStage[] {
  return steps.map(({ name, payload, timeoutSeconds, maxRetries }) => ({
    stage: name,
    skipped: whySkipped(name as OnboardingStage, payload) ?? "",
    ...waysTo(name as OnboardingStage, payload),
    ...{ deadline: seconds(timeoutSeconds), retries: maxRetries },
  }));
}

/** Stages are entered again only where a deployment is. */
function waysTo(stage: OnboardingStage, payload: JsonObject): Pick<PreviewedStage, "onlyIf" | "rounds"> {
  const { enable_deploy_retry_on_datasource_failure: isEnabled, max_deploy_retry_attempts: most } =
    parseOnboarding(payload).policy;
  const repeats = isEnabled ? most : 0;
  switch (stage) {
    case "classify_deploy_failure":
      return { onlyIf: "the deployment has failed", rounds: repeats + 1 };
    case "recover_for_datasource_retry":
      return {
        onlyIf: repeats === 0 ? "a person retries a deployment that has failed" : "no datasource was found",
        rounds: repeats,
      };
    case "ensure_pxe_interface_auto":
    case "render_cloud_init":
    case "deploy_via_maas":
    case "wait_for_deployed":
      return { onlyIf: "", rounds: repeats + 1 };
    default:
      return { onlyIf: "", rounds: 1 };
  }
}

/** With every try of every round as long as its deadline. The pauses between tries come on top. */
export const longestOf = (stages: readonly PreviewedStage[]): Duration =>
  milliseconds(
    stages
      .filter(({ skipped }) => skipped === "")
      .reduce((total, { deadline, retries, rounds }) => total + deadline * (retries + 1) * rounds, 0),
  );
