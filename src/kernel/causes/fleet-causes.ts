import type { CauseSpec } from "../causes.ts";

/** What goes wrong with nodes over MAAS, beside what goes wrong with every device. `fleet action` is what leads on. */
export const FLEET_CAUSES = {
  site_unavailable: {
    doc: "The MAAS site of the node is disabled, or not on record.",
    helps: "Enable the site: fleet site update SITE --enable; then retry the stage.",
    disposition: "intervene",
    facts: ["what", "name"],
  },
  bundle_missing: {
    doc: "The bootstrap bundle that the profile names is not on this server, or makes no valid user data.",
    helps:
      "Create the bundle under the name that the profile had when the job began: cloud-init create NAME --file -; then rerun.",
    disposition: "intervene",
    facts: ["name"],
  },
  image_missing: {
    doc: "MAAS has no image of the series that the profile names.",
    helps:
      "Import the image in MAAS; then retry the stage. A job keeps the distro_series that its profile had when it began.",
    disposition: "intervene",
    facts: ["name"],
  },
  conflicting_candidates: {
    doc: "MAAS has more than one machine that could be the node.",
    helps: "Delete or rename the wrong ones in MAAS (fleet candidates --all lists them); then retry the stage.",
    disposition: "intervene",
    facts: ["name", "shown"],
  },
  identity_mismatch: {
    doc: "The machine in MAAS is not the one on record: its serial number is another one, or another node has it.",
    helps:
      "Find out which is right: correct the address or the name of the node, or the machine in MAAS; then retry the stage.",
    disposition: "intervene",
    facts: ["name", "expected", "shown"],
  },
  machine_deleted_in_maas: {
    doc: "Somebody deleted the machine in MAAS while the workflow needed it.",
    helps:
      "Find out who deleted it, and why; then begin an onboarding again from clean: the machine is created again. A reimage has nothing to deploy: remove the node (full_decommission), and onboard the server as a new one.",
    disposition: "intervene",
    facts: ["name"],
  },
  commissioning_failed: {
    doc: "Commissioning failed in MAAS, or somebody aborted it.",
    helps: "Read the events of the machine in MAAS; then resume: the machine is commissioned again.",
    disposition: "fail",
    facts: ["shown"],
  },
  commissioning_stuck: {
    doc: "MAAS has been commissioning the machine for longer than the stage may take.",
    helps: "Look at the screen of the machine; then begin again from clean: the commissioning is aborted first.",
    disposition: "fail",
    facts: ["shown"],
  },
  testing_failed: {
    doc: "The hardware tests of MAAS failed.",
    helps: "Read the test results in MAAS, mend the hardware; then resume: the machine is commissioned again.",
    disposition: "fail",
    facts: ["shown"],
  },
  machine_not_usable: {
    doc: "MAAS has the machine in a status that nothing can be built on, such as Broken, Missing or Retired.",
    helps: "Mend the machine, and lead it out of that status in MAAS; then retry the stage.",
    disposition: "intervene",
    facts: ["shown"],
  },
  boss_disk_not_found: {
    doc: "The machine has no BOSS disk to install the system on.",
    helps: "Mend the BOSS card and commission the machine again in MAAS; then retry the stage.",
    disposition: "intervene",
    facts: [],
  },
  roce_assignment_missing: {
    doc: "The profile assigns RoCE addresses, and the site has none for this node, or the machine lacks the port.",
    helps: "Import the assignments of the site: fleet roce import --site SITE --file -; then retry the stage.",
    disposition: "intervene",
    facts: ["name", "shown"],
  },
  pxe_interface_not_fixable: {
    doc: "The port that boots from the network has no automatic address, and the server cannot give it one.",
    helps: "Link the boot port to its subnet in MAAS (mode Auto assign); then retry the stage.",
    disposition: "intervene",
    facts: ["shown"],
  },
  deploy_failed: {
    doc: "The deployment failed in MAAS, for another reason than the datasource of cloud-init.",
    helps:
      "Read the installation log in MAAS and mend what it names; then retry the stage: the machine is released and deployed again.",
    disposition: "intervene",
    facts: ["shown"],
  },
  deploy_stuck: {
    doc: "MAAS has been deploying the machine for longer than the stage may take.",
    helps: "Look at the screen of the machine; then begin again from clean: the machine is released first.",
    disposition: "fail",
    facts: ["shown"],
  },
  datasource_failed_repeatedly: {
    doc: "The installed system found no cloud-init datasource, as often as the profile lets a deployment be repeated.",
    helps:
      "Mend the network between the machine and MAAS; then retry the stage: the machine is released and deployed again.",
    disposition: "intervene",
    facts: [],
  },
  hardware_sync_not_enabled: {
    doc: "The machine was deployed without hardware sync, which only a deployment can switch on.",
    helps:
      "Begin again from clean: the machine is released and deployed again. One that people have deployed, they release in MAAS first.",
    disposition: "intervene",
    facts: [],
  },
  hardware_sync_unhealthy: {
    doc: "The machine does not sync its hardware with MAAS in time.",
    helps: "Mend the network between the machine and MAAS; then retry the stage.",
    disposition: "intervene",
    facts: ["since"],
  },
  enrollment_timed_out: {
    doc: "The agent of the node did not enrol in time, or enrolled and never reported that it is healthy.",
    helps: "Look at the node's cloud-init log; then retry the stage: the enrolment is open again.",
    disposition: "fail",
    facts: [],
  },
  ssh_seed_failed: {
    doc: "The agent could not be installed over SSH either, after its enrolment timed out.",
    helps: "Install the agent by hand, or mend the way to the node; then retry the stage.",
    disposition: "intervene",
    facts: [],
  },
  drift_not_adoptable: {
    doc: "MAAS has the machine in another status than the workflow left it in, and nothing says that this is safe.",
    helps: "Look at the machine in MAAS; then rerun, which takes it as it is, or begin again from clean.",
    disposition: "intervene",
    facts: ["expected", "shown"],
  },
  allocation_in_use: {
    doc: "An allocation on the node could not be released.",
    helps:
      "Release the allocation: fleet allocation release, or force-release where that failed; then retry the stage.",
    disposition: "intervene",
    facts: ["name"],
  },
  drain_failed: {
    doc: "The agent could not drain the node.",
    helps: "Read what the agent said; then resume: the node is drained again.",
    disposition: "fail",
    facts: ["shown"],
  },
  cleanup_failed: {
    doc: "The agent could not clean the node's storage or GPUs.",
    helps: "Read what the agent said, mend it; then retry the stage.",
    disposition: "fail",
    facts: ["shown"],
  },
  validation_failed: {
    doc: "The node is not clean after its cleanup.",
    helps: "Look at what the agent found on the node; then begin again.",
    disposition: "intervene",
    facts: ["shown"],
  },
  uninstall_failed: {
    doc: "The agent could not uninstall itself.",
    helps: "Read what the agent said; then resume: it is asked again.",
    disposition: "fail",
    facts: ["shown"],
  },
  release_failed: {
    doc: "MAAS could not release the machine.",
    helps: "Read the events of the machine in MAAS; then retry the stage.",
    disposition: "fail",
    facts: ["shown"],
  },
  erase_failed: {
    doc: "MAAS could not erase the disks of the machine.",
    helps:
      "Mend the disks; then retry the stage. To release without erasing, set release_fallback_no_erase in the profile, and decommission the node again.",
    disposition: "intervene",
    facts: ["shown"],
  },
  power_off_failed: {
    doc: "MAAS could not switch the machine off.",
    helps: "Switch it off at the rack, or mend its BMC; then retry the stage.",
    disposition: "fail",
    facts: ["shown"],
  },
} as const satisfies Readonly<Record<string, CauseSpec>>;
