import { CAUSES, type CauseCode, type CauseFacts, type CauseSpec } from "../../kernel/causes.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { FleetAction } from "./actions.ts";
import type { Lack } from "./lacks.ts";

interface FailureClassSpec {
  /** What has to happen for a job to fail with it. */
  readonly trigger: string;
  readonly jobState: "failed_retryable" | "failed_manual_intervention";
  /** What the operator does once the trigger is seen to. */
  readonly action: FleetAction;
  /** What is looked for on record before the action is recommended, in this order: the command that gives it comes first. */
  readonly lacks?: readonly Lack[];
}

/**
 * The closed list of what jobs of fleet nodes fail of: trigger, state of the job, first action. The key is the code of the cause, so that
 * runs, jobs, `explain` and metrics spell it alike. `lacks` is what has to be on record before the action helps; `helps` of the cause says in
 * words what people see to elsewhere.
 */
// biome-ignore format: a table is read by its columns
export const FAILURE_CLASSES = {
  maas_unavailable:             { jobState: "failed_retryable",           action: "retry-stage",          trigger: "MAAS does not answer, not in time, not now or with nonsense, for as long as the stage may take" },
  credentials_rejected:         { jobState: "failed_retryable",           action: "retry-stage",          lacks: ["accepted_site_key"], trigger: "MAAS refuses the API key of the site, or the key lacks a right" },
  site_unavailable:             { jobState: "failed_manual_intervention", action: "retry-stage",          lacks: ["enabled_site"], trigger: "the site is disabled, or not on record" },
  credentials_missing:          { jobState: "failed_manual_intervention", action: "retry-stage",          lacks: ["site_key", "bmc_address", "bmc_account"], trigger: "no API key of the site, or no account for the management controller of the node at its address, is on record" },
  bundle_missing:               { jobState: "failed_manual_intervention", action: "rerun",                lacks: ["bundle", "usable_bundle"], trigger: "the site bootstrap bundle of the profile is not there, or makes no valid user data" },
  image_missing:                { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "MAAS has no image of the series that the profile names" },
  conflicting_candidates:       { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "more than one machine of MAAS could be the node" },
  identity_mismatch:            { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "the machine in MAAS has another serial number, or belongs to another node" },
  machine_deleted_in_maas:      { jobState: "failed_manual_intervention", action: "restart-clean",        lacks: ["machine_to_deploy"], trigger: "the machine is gone from MAAS while the workflow needs it" },
  commissioning_failed:         { jobState: "failed_retryable",           action: "resume",               trigger: "MAAS reports Failed commissioning, or New again since somebody aborted it" },
  commissioning_stuck:          { jobState: "failed_retryable",           action: "restart-clean",        trigger: "the machine is Commissioning for longer than the stage may take" },
  testing_failed:               { jobState: "failed_retryable",           action: "resume",               trigger: "MAAS reports Failed testing" },
  machine_not_usable:           { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "MAAS has the machine Broken, Missing, Retired, in rescue mode or locked" },
  boss_disk_not_found:          { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "commissioning found no BOSS disk" },
  roce_assignment_missing:      { jobState: "failed_manual_intervention", action: "retry-stage",          lacks: ["roce_assignment", "other_roce_assignment"], trigger: "the profile wants RoCE addresses, and the site has no assignment for the node, or the machine lacks the port" },
  pxe_interface_not_fixable:    { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "the boot port has no automatic link, and none can be made" },
  deploy_failed:                { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "MAAS reports Failed deployment, or refuses the order, for another reason than the datasource" },
  deploy_stuck:                 { jobState: "failed_retryable",           action: "restart-clean",        trigger: "the machine is Deploying for longer than the stage may take" },
  datasource_failed_repeatedly: { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "cloud-init finds no datasource, as often as max_deploy_retry_attempts allows" },
  hardware_sync_not_enabled:    { jobState: "failed_manual_intervention", action: "restart-clean",        trigger: "the machine is Deployed without hardware sync, and the profile requires it" },
  hardware_sync_unhealthy:      { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "the last sync is older than one and a half intervals for as long as the stage may take" },
  enrollment_timed_out:         { jobState: "failed_retryable",           action: "retry-stage",          trigger: "the agent does not enrol, or is not healthy, before its token expires" },
  ssh_seed_failed:              { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "the enrolment timed out, and installing the agent over SSH failed twice" },
  drift_not_adoptable:          { jobState: "failed_manual_intervention", action: "rerun",                trigger: "MAAS has the machine where neither the workflow led it nor automation may take it over" },
  allocation_in_use:            { jobState: "failed_manual_intervention", action: "retry-stage",          lacks: ["released_allocation", "released_node", "ended_allocation"], trigger: "an allocation on the node is not released" },
  drain_failed:                 { jobState: "failed_retryable",           action: "resume",               trigger: "the agent reports that it could not drain, or its task expired" },
  cleanup_failed:               { jobState: "failed_retryable",           action: "retry-stage",          trigger: "the agent reports that storage or GPUs could not be cleaned" },
  validation_failed:            { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "the agent reports that the node is not clean" },
  uninstall_failed:             { jobState: "failed_retryable",           action: "resume",               trigger: "the agent reports that it could not uninstall itself" },
  release_failed:               { jobState: "failed_retryable",           action: "retry-stage",          trigger: "MAAS reports Releasing failed, or never ends the release" },
  erase_failed:                 { jobState: "failed_manual_intervention", action: "retry-stage",          trigger: "MAAS reports Failed disk erasing, and the profile does not release without" },
  power_off_failed:             { jobState: "failed_retryable",           action: "retry-stage",          trigger: "MAAS does not report the machine as off after the command to switch it off" },
  other:                        { jobState: "failed_retryable",           action: "retry-stage",          trigger: "anything else: the message says what" },
} as const satisfies Readonly<Record<string, FailureClassSpec>>;
export type FailureClass = keyof typeof FAILURE_CLASSES;

/** Those that a stage can fail with by its own judgement: each is a cause of the same name. */
export type JudgedClass = Extract<FailureClass, CauseCode>;

/** With the columns that few rows have. */
export const specOf = (name: FailureClass): FailureClassSpec => FAILURE_CLASSES[name];
const isCause = (code: string): code is CauseCode => Object.hasOwn(CAUSES, code);
const specOfCause = (code: CauseCode): CauseSpec => CAUSES[code];
const isClass = (code: string): code is FailureClass => Object.hasOwn(FAILURE_CLASSES, code);

/** Which class a cause belongs to: its own, or that of what the way to MAAS, or MAAS itself, did wrong. */
export function failureClassOf({ code }: { readonly code: string }): FailureClass {
  if (isClass(code)) return code;
  const family = isCause(code) ? specOfCause(code).family : undefined;
  switch (family) {
    case "silent":
    case "busy":
    case "odd":
    case "unproven":
      return "maas_unavailable";
    case "keeps_out":
    case "forbids":
      return "credentials_rejected";
    default:
      return "other";
  }
}

/** That a stage has failed with this class, and whether a person is needed. */
export const failedAs = (name: JudgedClass, message: string, facts: CauseFacts = {}): StepFailure =>
  StepFailure.of(
    { code: name, facts },
    message,
    specOf(name).jobState === "failed_manual_intervention" ? "intervene" : "fail",
  );
