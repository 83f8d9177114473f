import type { Stage } from "../workflow.ts";
import { ONBOARDING_STAGES } from "./onboarding-stages.ts";
import type { StageRow } from "./stage-row.ts";

const READ = "GET machines/{system_id}/";

/** The stages of a decommission that are its own. */
const LEAVING_STAGES = {
  disable_node: {
    doc: "From here on nobody schedules anything on the node: it is draining.",
    calls: [],
    doneWhen: "the node is draining, or retired already",
    failures: [],
    compensation: "nothing",
    isSafe: true,
  },
  force_release_allocations: {
    doc: "Ends whatever use is made of the node.",
    calls: [],
    doneWhen: "no allocation of the node is open",
    failures: ["allocation_in_use"],
    compensation: { stays: "the allocations that were released" },
  },
  drain_node: {
    doc: "The agent takes the work off the node. Without an agent there is nothing to take off. A node that somebody uses is not drained.",
    calls: [],
    doneWhen: "the agent has said that the node is drained",
    failures: ["drain_failed", "allocation_in_use"],
    compensation: "nothing",
  },
  cleanup_storage: {
    doc: "The agent wipes the node's storage.",
    calls: [],
    doneWhen: "the agent has said of every device that it is wiped",
    failures: ["cleanup_failed"],
    compensation: { stays: "the storage that was wiped" },
  },
  scrub_gpu: {
    doc: "The agent scrubs the memory and the state of the GPUs.",
    calls: [],
    doneWhen: "the agent has said that the GPUs are scrubbed",
    failures: ["cleanup_failed"],
    compensation: { stays: "the GPUs that were scrubbed" },
  },
  validate_clean_node: {
    doc: "The agent looks for what others have left. A node that is not clean is quarantined.",
    calls: [],
    doneWhen: "the agent has found nothing",
    failures: ["validation_failed"],
    compensation: "nothing",
  },
  load_site_config: ONBOARDING_STAGES.load_site_config,
  retire_gpuaas_node: {
    doc: "The node is retired: out of scheduling on purpose, with its identity.",
    calls: [],
    doneWhen: "the node is retired",
    failures: [],
    compensation: { stays: "the node is retired; fleet reactivate brings it back" },
    isSafe: true,
  },
  remove_gpuaas_node_record: {
    doc: "The node is being removed, and its agent uninstalls itself while it can still answer. An agent that does not answer goes with the release in MAAS.",
    calls: [],
    doneWhen: "the agent has said that it is uninstalled, or does not answer and MAAS releases the machine",
    failures: ["uninstall_failed"],
    compensation: { stays: "the agent that was uninstalled" },
    isSafe: true,
  },
  release_maas_node: {
    doc: "Gives the machine back to MAAS, with its disks erased; without, where that fails and the profile says so.",
    calls: [READ, "POST machines/{system_id}/?op=release (erase=true; erase=false where the profile falls back)"],
    doneWhen: "the machine is Ready, or MAAS has none",
    failures: ["release_failed", "erase_failed", "machine_not_usable", "machine_deleted_in_maas"],
    compensation: { stays: "the machine that was released in MAAS" },
    isSafe: true,
  },
  power_off_maas_node: {
    doc: "Switches the machine off.",
    calls: [READ, "POST machines/{system_id}/?op=power_off"],
    doneWhen: "MAAS shows the machine as off",
    failures: ["power_off_failed"],
    compensation: { stays: "the machine that was switched off" },
    isSafe: true,
  },
  cleanup_secrets: {
    doc: "The agent's token is revoked; the enrolment and the account of the management controller are forgotten.",
    calls: [],
    doneWhen: "nobody can speak for the node",
    failures: [],
    compensation: { stays: "the credentials that were revoked" },
    isSafe: true,
  },
  remove_maas_record: {
    doc: "Deletes the machine in MAAS, unless the site keeps its machines. The end of this stage is the end of the node.",
    calls: [READ, "DELETE machines/{system_id}/"],
    doneWhen: "MAAS has no such machine, or the site keeps it",
    failures: [],
    compensation: { stays: "the machine that was deleted in MAAS" },
    isSafe: true,
  },
} as const satisfies Readonly<Record<string, StageRow & Omit<Stage, "name">>>;

/** A reimage deploys the machine again, as an onboarding does, from the link of its boot port on. */
export const DEPLOYMENT = [
  "ensure_pxe_interface_auto",
  "render_cloud_init",
  "deploy_via_maas",
  "wait_for_deployed",
  "classify_deploy_failure",
  "recover_for_datasource_retry",
  "ensure_hardware_sync_configured",
  "wait_for_hardware_sync_healthy",
  "wait_for_agent_enrollment",
] as const satisfies readonly (keyof typeof ONBOARDING_STAGES)[];
export type DeploymentStage = (typeof DEPLOYMENT)[number];

export type LeavingStage = keyof typeof LEAVING_STAGES;
export type DecommissionStage = LeavingStage | DeploymentStage;

/** All stages of all modes, in the order in which they may come. */
export const DECOMMISSION_STAGES: Readonly<
  Record<DecommissionStage, StageRow & Omit<Stage<DecommissionStage>, "name">>
> = {
  ...LEAVING_STAGES,
  ...(Object.fromEntries(DEPLOYMENT.map((name) => [name, ONBOARDING_STAGES[name]])) as {
    readonly [name in DeploymentStage]: (typeof ONBOARDING_STAGES)[name];
  }),
};
