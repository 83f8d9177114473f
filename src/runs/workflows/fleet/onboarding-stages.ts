import type { Stage } from "../workflow.ts";
import type { StageRow } from "./stage-row.ts";

/** The most rounds of the stages that a failed deployment leads back to: as many retries as a profile can ask for, and those before and after. */
const ROUNDS = 12;

const READ = "GET machines/{system_id}/";
const GONE = "machine_deleted_in_maas";
const UNUSABLE = "machine_not_usable";

/**
 * The stages of an onboarding. Stages 12 and 13 are reached only where a deployment has failed.
 */
export const ONBOARDING_STAGES = {
  load_site_config: {
    doc: "Whether MAAS answers, accepts the key of the site, and has the image that the profile names.",
    calls: ["GET users/?op=whoami", "GET boot-resources/ (where the profile names a series)"],
    doneWhen: "MAAS has said who we are",
    failures: ["image_missing"],
    compensation: "nothing",
    isSafe: true,
  },
  resolve_power_credentials: {
    doc: "Whether an account for the management controller is in the secret store.",
    calls: [],
    doneWhen: "user and password for the IPMI address of the node are there",
    failures: ["credentials_missing"],
    compensation: "nothing",
  },
  create_or_find_in_maas: {
    doc: "Binds the node to the machine of its name or MAC address, to the one New machine where the profile claims it, or to a new one.",
    calls: [
      "GET machines/?hostname=",
      "GET machines/?mac_address=",
      "PUT machines/{system_id}/ (found without its power)",
      "POST machines/ (commission=false)",
    ],
    doneWhen: "exactly one machine is bound, and has its name and its power type",
    failures: ["conflicting_candidates", "identity_mismatch", "credentials_missing"],
    compensation: "undo",
    isSafe: true,
  },
  commission_node: {
    doc: "Has the machine commissioned. One that was commissioned before is taken as it is.",
    calls: [READ, "POST machines/{system_id}/?op=commission", "POST machines/{system_id}/?op=abort (canceled)"],
    doneWhen: "the machine is Commissioning, or further",
    failures: [UNUSABLE, GONE],
    compensation: "undo",
    isSafe: true,
  },
  wait_for_ready: {
    doc: "Waits for the end of the commissioning.",
    calls: [READ],
    doneWhen: "the machine is Ready, or further",
    failures: ["commissioning_failed", "commissioning_stuck", "testing_failed", UNUSABLE, GONE],
    compensation: "nothing",
  },
  configure_storage: {
    doc: "Has the system installed onto the BOSS disk.",
    calls: [
      READ,
      "POST nodes/{system_id}/blockdevices/{id}/?op=set_boot_disk",
      "POST machines/{system_id}/?op=set_storage_layout",
    ],
    doneWhen: "the machine boots from its BOSS disk, which has the flat layout",
    failures: ["boss_disk_not_found", "drift_not_adoptable", UNUSABLE, GONE],
    compensation: { stays: "the storage layout of the machine in MAAS" },
    isSafe: true,
  },
  apply_roce_phase2: {
    doc: "Gives RoCE ports the addresses that the site has assigned. Skipped unless the profile wants it.",
    calls: [READ, "GET subnets/", "POST nodes/{system_id}/interfaces/{id}/?op=link_subnet (STATIC)"],
    doneWhen: "every assigned port has its address",
    failures: ["roce_assignment_missing", GONE],
    compensation: { stays: "the addresses of the RoCE ports in MAAS" },
    isSafe: true,
  },
  ensure_pxe_interface_auto: {
    doc: "Links the boot port so that MAAS gives it an address.",
    calls: [
      READ,
      "GET subnets/",
      "POST nodes/{system_id}/interfaces/{id}/?op=unlink_subnet",
      "POST nodes/{system_id}/interfaces/{id}/?op=link_subnet (AUTO)",
    ],
    doneWhen: "the boot port has a link of mode auto",
    failures: ["pxe_interface_not_fixable", GONE],
    compensation: { stays: "the link of the boot port in MAAS" },
    isSafe: true,
    maxRounds: ROUNDS,
  },
  render_cloud_init: {
    doc: "Puts the single-use enrolment of the node on record, and makes its user data: the bundle of the site, then the agent.",
    calls: [],
    doneWhen: "the enrolment is on record, and user data can be made for it",
    failures: ["bundle_missing"],
    compensation: "nothing",
    isSafe: true,
    maxRounds: ROUNDS,
  },
  deploy_via_maas: {
    doc: "Orders the deployment. A machine whose deployment has failed is released first; one that others have deployed is not touched.",
    calls: [
      READ,
      "POST machines/{system_id}/?op=deploy",
      "POST machines/{system_id}/?op=release (before, where a deployment has failed; canceled)",
    ],
    doneWhen: "the machine is Deploying or Deployed",
    failures: ["deploy_failed", "image_missing", "drift_not_adoptable", UNUSABLE, GONE],
    compensation: "undo",
    maxRounds: ROUNDS,
  },
  wait_for_deployed: {
    doc: "Waits for the end of the deployment. A failed one leads to `classify_deploy_failure`.",
    calls: [READ],
    doneWhen: "the machine is Deployed",
    failures: ["deploy_stuck", "drift_not_adoptable", UNUSABLE, GONE],
    compensation: "nothing",
    leadsTo: ["classify_deploy_failure", "ensure_hardware_sync_configured"],
    maxRounds: ROUNDS,
  },
  classify_deploy_failure: {
    doc: "Finds out why a deployment failed. Only a datasource that was not found is retried, as often as the profile allows.",
    calls: [READ, "GET events/?op=query&id={system_id}", "GET nodes/{system_id}/results/?type=installation"],
    doneWhen: "the reason is on record: datasource, other, or deployed meanwhile",
    failures: ["datasource_failed_repeatedly", "deploy_failed", UNUSABLE, GONE],
    compensation: "nothing",
    leadsTo: ["recover_for_datasource_retry", "ensure_hardware_sync_configured"],
    isSafe: true,
    maxRounds: ROUNDS,
  },
  recover_for_datasource_retry: {
    doc: "Releases the machine, and goes back to `ensure_pxe_interface_auto`.",
    calls: [READ, "POST machines/{system_id}/?op=release"],
    doneWhen: "the machine is Ready again",
    failures: ["release_failed", "drift_not_adoptable", UNUSABLE, GONE],
    compensation: "nothing",
    leadsTo: ["ensure_pxe_interface_auto"],
    maxRounds: ROUNDS,
  },
  ensure_hardware_sync_configured: {
    doc: "Whether the machine was deployed with hardware sync. Skipped unless the profile requires it.",
    calls: [READ],
    doneWhen: "hardware sync is on",
    failures: ["hardware_sync_not_enabled", "drift_not_adoptable", GONE],
    compensation: "nothing",
    isSafe: true,
  },
  wait_for_hardware_sync_healthy: {
    doc: "Waits for a sync that is not older than one and a half intervals. Skipped unless the profile requires it.",
    calls: [READ],
    doneWhen: "now <= last_sync + 1.5 * sync_interval",
    failures: ["hardware_sync_unhealthy", "drift_not_adoptable", GONE],
    compensation: "nothing",
  },
  wait_for_agent_enrollment: {
    doc: "Waits until the agent has enrolled with the node's token and reports that the node is healthy. Its deadline is the life of the token. Where the profile has an `ssh_username`, the agent is installed over SSH after that, with a token of its own.",
    calls: [],
    doneWhen: "the token is used up, and the agent has said that the node is healthy",
    failures: ["enrollment_timed_out", "ssh_seed_failed"],
    compensation: "nothing",
  },
} as const satisfies Readonly<Record<string, StageRow & Omit<Stage, "name">>>;
export type OnboardingStage = keyof typeof ONBOARDING_STAGES;
