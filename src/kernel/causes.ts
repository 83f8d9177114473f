import type { CauseFacts, FactName, Peer } from "./causes/facts.ts";
import { FLEET_CAUSES } from "./causes/fleet-causes.ts";
import { RESTORE_CAUSES } from "./causes/restore-causes.ts";

export { type CauseFacts, FACTS, type FactName, PEERS, type Peer } from "./causes/facts.ts";

/** What should happen after work on a device failed: try again, give up along the table's failure row, or wait for a person. */
export type Disposition = "retry" | "fail" | "intervene";

/**
 * What a failure tells of the device, as far as retries and undoing go by it. silent: no answer at all. busy: answered, but not now.
 * odd: the answer makes no sense to us. declines: understood, and refused. keeps_out: the sign-in was refused. forbids: we were let
 * in, and this one request is not for our account. unproven: the device did not prove who it is.
 */
export type DeviceFamily = "silent" | "busy" | "odd" | "declines" | "keeps_out" | "forbids" | "unproven";

export interface CauseSpec {
  /** The meaning, in one sentence. */
  readonly doc: string;
  /** What an operator can do. */
  readonly helps: string;
  /** Unless the thrower knows better. */
  readonly disposition: Disposition;
  /** What a failure of this cause may say besides. */
  readonly facts: readonly FactName[];
  /** Absent for causes that are no device's. */
  readonly family?: DeviceFamily;
  /** Wrong only once the time is over: until then the device may still be at it, or a claim be released. */
  readonly onlyWhenLate?: true;
}

const OF_PEER = ["at", "address"] as const;
const OF_ANSWER = ["at", "address", "status"] as const;
const OF_SIGN_IN = ["at", "address", "status", "name"] as const;

/**
 * The closed list of causes. The key is the one spelling: in the database, JSON, metrics, filters and on the command line. A new
 * cause is added here, with what helps; a cause is never renamed, since stored rows and dashboards name it.
 */
export const CAUSES = {
  unreachable: {
    doc: "Nobody answers at the address: no route, connection refused, or the connection is cut.",
    helps: "Check power, cabling and the address on record; work goes on by itself once the device answers.",
    disposition: "retry",
    facts: ["at", "address", "progress"],
    family: "silent",
  },
  timed_out: {
    doc: "The device takes the connection and does not answer in time.",
    helps: "The device is slow, overloaded or hangs; wait, or restart its BMC.",
    disposition: "retry",
    facts: OF_PEER,
    family: "silent",
  },
  address_not_allowed: {
    doc: "The address is outside the networks that may be called. Nothing was sent.",
    helps: "Add the network to bmc.allowed_networks, or correct the address.",
    disposition: "retry",
    facts: OF_PEER,
    family: "silent",
  },
  plain_http_not_allowed: {
    doc: "The address is plain HTTP, where everybody on the way reads the password. Nothing was sent.",
    helps: "Give the https address of the device; for gear that has no TLS, set bmc.plain_http.",
    disposition: "retry",
    facts: OF_PEER,
    family: "silent",
  },
  busy: {
    doc: "The device answered that it cannot do it now, or with an error of its own.",
    helps: "Wait: the request is sent again. A device that stays so needs a restart of its BMC.",
    disposition: "retry",
    facts: OF_ANSWER,
    family: "busy",
  },
  protocol: {
    doc: "The answer makes no sense: it is not what the protocol says.",
    helps: "Check that the address is that of a device of the configured provider, and its firmware.",
    disposition: "retry",
    facts: OF_ANSWER,
    family: "odd",
  },
  not_found_there: {
    doc: "The device does not have what was asked of it.",
    helps: "Check that the address is that of a device of the configured provider, and its firmware.",
    disposition: "fail",
    facts: OF_ANSWER,
    family: "odd",
  },
  refused_by_device: {
    doc: "The device understood the command and refused it.",
    helps: "Read what the device said in the message; do it at the rack if the device never accepts it.",
    disposition: "fail",
    facts: OF_ANSWER,
    family: "declines",
  },
  unsupported: {
    doc: "The device, or its driver, has no way to do this.",
    helps: "Choose another plan, image or provider, or do it at the rack.",
    disposition: "fail",
    facts: OF_PEER,
    family: "declines",
  },
  credentials_rejected: {
    doc: "The sign-in was refused: the user or the secret is wrong.",
    helps: "Give the right credentials (of a cluster: cluster update --kubeconfig); changed ones are tried at once.",
    disposition: "fail",
    facts: OF_SIGN_IN,
    family: "keeps_out",
  },
  sign_in_stopped: {
    doc: "The credentials were rejected so often that they are tried only rarely, so that the account is not locked.",
    helps: "Give the right credentials; changed ones are tried at once.",
    disposition: "fail",
    facts: ["at", "address", "since"],
    family: "keeps_out",
  },
  credentials_missing: {
    doc: "There are no credentials to sign in with, or none that can be read or used.",
    helps: "Store the credentials: machine set-credentials, power-shelf set-credentials, cluster update --kubeconfig.",
    disposition: "fail",
    facts: ["at", "name"],
  },
  credentials_not_for_this_address: {
    doc: "The credentials on record were given for another address, or for another trust in who answers there. Nothing was sent.",
    helps:
      "Compare the address; then give the credentials for it: machine set-credentials, power-shelf set-credentials, or the expected row with address and password.",
    disposition: "fail",
    facts: ["at", "name", "expected", "shown"],
  },
  forbidden: {
    doc: "The sign-in was accepted, and the account lacks the right for this request.",
    helps: "Give the account the right, or give credentials of an account that has it.",
    disposition: "fail",
    facts: OF_SIGN_IN,
    family: "forbids",
  },
  certificate_changed: {
    doc: "The BMC shows another certificate than the pinned one. Nothing was sent.",
    helps: "If the BMC was replaced or given a new certificate, forget the pinned one; else find out who answers.",
    disposition: "fail",
    facts: ["at", "address", "expected", "shown"],
    family: "unproven",
  },
  certificate_untrusted: {
    doc: "The BMC, the API of a cluster or the rack manager shows a certificate that is not trusted. Nothing was sent.",
    helps:
      "BMC: add its CA to bmc.ca_file, or set the trust of this BMC to pin. Cluster: cluster update --kubeconfig. Rack manager: rack_manager.ca_file.",
    disposition: "fail",
    facts: ["at", "address", "name"],
    family: "unproven",
  },
  host_key_changed: {
    doc: "The machine, or a host on the way, shows another SSH host key than the pinned one.",
    helps: "If it was installed again, check the key at the machine and accept it; else find out who answers.",
    disposition: "intervene",
    facts: ["at", "address", "expected", "shown", "accept"],
    family: "unproven",
  },
  host_key_unknown: {
    doc: "The host key is not known, so no password is sent to it.",
    helps: "Pin the host key, or sign in with a private key.",
    disposition: "fail",
    facts: OF_PEER,
  },
  wrong_identity: {
    doc: "Another device answers at the address: its serial number, UUID or name is another one.",
    helps: "Correct the address or the serial number on record.",
    disposition: "retry",
    facts: ["at", "address", "expected", "shown"],
  },
  endpoint_missing: {
    doc: "It is not on record where the device is reached.",
    helps: "Give the machine the endpoint: machine update.",
    disposition: "fail",
    facts: ["at"],
  },
  reference_missing: {
    doc: "The plan names something that the server does not have.",
    helps: "Create what is missing (cluster create, image create), or start a run that names another.",
    disposition: "fail",
    facts: ["what", "name"],
  },
  target_gone: {
    doc: "The thing that the run works on does not exist any more.",
    helps: "Nothing: there is nothing left to work on.",
    disposition: "fail",
    facts: ["what", "name"],
  },
  not_on_this_server: {
    doc: "This server lacks what the work needs: a provider, a workflow, a step kind or a program.",
    helps: "Start a server that has it, or install what is missing.",
    disposition: "retry",
    facts: ["what", "name"],
  },
  invalid_input: {
    doc: "What the caller or the plan gave cannot be used.",
    helps: "Start a run with other parameters, or another plan.",
    disposition: "fail",
    facts: [],
  },
  script_changed: {
    doc: "A script is another one now than when the run was started, and the earlier one is not kept any more.",
    helps: "Retry with the new scripts: run retry --new-scripts.",
    disposition: "fail",
    facts: ["script"],
  },
  script_failed: {
    doc: "A script failed on the machine, could not be started or was cut off.",
    helps: "Read its output: run logs.",
    disposition: "retry",
    facts: ["script", "exit_code"],
  },
  not_drained: {
    doc: "The machine's node is not drained.",
    helps: "Drain the node: machine enter-maintenance; then retry.",
    disposition: "retry",
    facts: ["script", "exit_code"],
  },
  net_refused: {
    doc: "netplan refuses the network settings; the machine has the former ones again.",
    helps: "Start a run with other settings.",
    disposition: "retry",
    facts: ["exit_code"],
  },
  net_reverted: {
    doc: "The network change was undone, since the machine was not reached afterwards.",
    helps: "Start a run with other settings, or mend the network.",
    disposition: "retry",
    facts: ["exit_code"],
  },
  net_unclear: {
    doc: "It is not known which network settings are in force on the machine.",
    helps: "Look at the settings on the machine: the former ones lie beside 90-millwright.yaml.",
    disposition: "intervene",
    facts: ["exit_code"],
  },
  install_failed: {
    doc: "The installation did not come up, or another system did.",
    helps: "Look at the machine's screen; check the image and the boot order; then retry.",
    disposition: "retry",
    facts: ["progress", "expected", "shown"],
    onlyWhenLate: true,
  },
  join_failed: {
    doc: "Joining the cluster failed on the machine.",
    helps: "Read the output of kubeadm: run logs.",
    disposition: "retry",
    facts: ["exit_code"],
  },
  node_not_ready: {
    doc: "The cluster does not show the machine as a Ready node.",
    helps: "Look at the node with kubectl; join the machine if it was never joined.",
    disposition: "retry",
    facts: ["name"],
  },
  no_effect: {
    doc: "The device accepts the command, and nothing changes.",
    helps: "Restart the BMC, force the reset, or do it at the rack.",
    disposition: "retry",
    facts: ["at", "progress"],
    onlyWhenLate: true,
  },
  meter_contradicts: {
    doc: "The shelf's meter contradicts what its BMC reports, so its power state cannot be believed.",
    helps: "Look at the shelf; restart its BMC.",
    disposition: "retry",
    facts: ["at", "progress"],
  },
  no_evidence: {
    doc: "Nothing can be read by which success could be proved.",
    helps: "Make the machine reachable over SSH, or use a BMC that reports its resets.",
    disposition: "retry",
    facts: [],
  },
  children_failed: {
    doc: "Runs that the step started on other things have failed, or were canceled.",
    helps: "Find them with run show, and read why with explain run; then ask for the work again.",
    disposition: "fail",
    facts: [],
  },
  firmware_unknown: {
    doc: "The request names a firmware that is not in the catalogue.",
    helps: "Request one that rack-firmware list shows, or create it: rack-firmware create.",
    disposition: "fail",
    facts: ["name"],
  },
  firmware_mismatch: {
    doc: "The firmware is for another type of rack hardware.",
    helps: "Request a firmware of the rack's hardware type: rack-firmware list.",
    disposition: "fail",
    facts: ["name", "expected", "shown"],
  },
  firmware_unavailable: {
    doc: "The firmware is in the catalogue, and its files are not all there.",
    helps: "See what its download waits for: rack-firmware get; then request the upgrade again.",
    disposition: "fail",
    facts: ["name"],
  },
  firmware_task_failed: {
    doc: "The device reports that its firmware update failed.",
    helps: "Read what the device said in the message; check that the firmware fits the device; then request it again.",
    disposition: "fail",
    facts: ["at", "name", "progress"],
  },
  firmware_not_applied: {
    doc: "The device reports that its firmware update is complete, and still shows another version.",
    helps: "Restart the device, and read its version with refresh; then request the upgrade again.",
    disposition: "fail",
    facts: ["at", "name", "expected", "shown"],
  },
  firmware_unproven: {
    doc: "A firmware update was begun, and neither its end nor the installed version can be read.",
    helps: "Wait until the device answers; if it never will, cancel its run once more to release the device.",
    disposition: "fail",
    facts: ["at", "name", "expected", "shown", "since"],
  },
  artifact_missing: {
    doc: "The firmware file is not in the firmware directory of this server, nor can it be downloaded again.",
    helps:
      "Share firmware.directory between all replicas, or mend what the message says of the place that the file is downloaded from.",
    disposition: "retry",
    facts: ["name"],
  },
  no_room: {
    doc: "The firmware directory of this server has no room for the file.",
    helps: "Make room in firmware.directory, or delete firmware that nobody needs: rack-firmware delete.",
    disposition: "retry",
    facts: ["name"],
  },
  image_unfit: {
    doc: "No seed can be written into the image, or the image is another one than when the installation began.",
    helps: "Read in the message what is wrong with it; mend the image or its digest, then retry.",
    disposition: "fail",
    facts: ["expected", "shown"],
  },
  artifact_wrong: {
    doc: "The firmware file is not the one that the catalogue describes: its size or digest differs.",
    helps: "Create the firmware again with the right digest, or mend the place that it is downloaded from.",
    disposition: "fail",
    facts: ["name", "expected", "shown"],
  },
  fabric_not_configured: {
    doc: "The switches do not report a configured fabric.",
    helps: "Read the status of each switch with switch show; then request configure-nmx-cluster again.",
    disposition: "fail",
    facts: ["at", "name", "shown"],
  },
  fabric_index_missing: {
    doc: "A switch has no tray index, or two have the same one, so that no primary can be chosen.",
    helps: "Give the switch the label tray_index, or mend its location; then request configure-nmx-cluster again.",
    disposition: "fail",
    facts: ["name"],
  },
  power_capacity: {
    doc: "The power shelves that are on cannot deliver what the devices take.",
    helps: "Switch more shelves on, or request fewer devices.",
    disposition: "fail",
    facts: ["expected", "shown"],
  },
  devices_missing: {
    doc: "The rack has fewer devices, or fewer ready ones, than its profile says.",
    helps: "Add or mend the devices that the message names; the rack goes on by itself.",
    disposition: "retry",
    facts: ["what"],
    onlyWhenLate: true,
  },
  component_failed: {
    doc: "A device of the rack is in error.",
    helps: "Mend the device that the message names; the rack recovers with it.",
    disposition: "fail",
    facts: ["what", "name"],
  },
  device_unfit: {
    doc: "A device does not pass the validation of its rack: it does not answer, is off, unhealthy or at another version.",
    helps: "Mend the device that the message names; then request maintenance again.",
    disposition: "fail",
    facts: ["what", "name", "expected", "shown"],
  },
  terminated: {
    doc: "A person terminated the maintenance of the rack.",
    helps: "Read in the message how each device was left; then request maintenance again, or clear the error.",
    disposition: "fail",
    facts: ["name"],
  },
  ...FLEET_CAUSES,
  taken_over: {
    doc: "A person took the job over while it ran.",
    helps: "Ask that person; then resume the run, or cancel it.",
    disposition: "intervene",
    facts: ["name"],
  },
  not_done: {
    doc: "What is there does not prove that the step is done.",
    helps: "Do the step: run retry instead of run adopt.",
    disposition: "fail",
    facts: [],
  },
  not_done_in_time: {
    doc: "The step was not done within its time, and nothing more is known.",
    helps: "Read the log: run logs; give the step more time.",
    disposition: "retry",
    facts: [],
  },
  undo_in_progress: {
    doc: "The device is still undoing the step.",
    helps: "Wait: the device is asked again.",
    disposition: "retry",
    facts: [],
  },
  no_undo: {
    doc: "The step was done for good: there is no way to undo it.",
    helps: "Look at the machine before it is used.",
    disposition: "fail",
    facts: [],
  },
  ...RESTORE_CAUSES,
  changed_meanwhile: {
    doc: "Somebody else changed the same thing in the middle of the work.",
    helps: "Find out who else works on the device; then retry.",
    disposition: "retry",
    facts: [],
  },
  misfit: {
    doc: "The recorded steps do not match the plan.",
    helps: "Begin again: run rerun.",
    disposition: "fail",
    facts: [],
  },
  in_use: {
    doc: "The work would disturb a machine that somebody uses, or may use: its cluster was not checked, or did not answer.",
    helps: "Put the machine into maintenance and drain it (machine enter-maintenance), then ask again.",
    disposition: "fail",
    facts: ["name"],
  },
  claimed: {
    doc: "Another thing works on the device.",
    helps: "Wait: work goes on when the claim is released.",
    disposition: "retry",
    facts: ["holder"],
    onlyWhenLate: true,
  },
  maintenance_limit: {
    doc: "As many racks are in maintenance as may be at the same time.",
    helps: "Wait: racks follow by themselves; rack.maintenance_at_once and rack.ingestion_at_once say how many may.",
    disposition: "retry",
    facts: ["name"],
    onlyWhenLate: true,
  },
  maintenance_stopped: {
    doc: "Maintenance that nobody asked for failed on too many racks, so that no further one begins by itself.",
    helps: "Look at the racks that failed, and mend them; or let it go on: rack maintenance resume.",
    disposition: "intervene",
    facts: ["name"],
  },
  stopped: {
    doc: "The work was cut off from our side: the server stops, the lease ended, or the work was canceled.",
    helps: "Nothing: another pass goes on.",
    disposition: "retry",
    facts: [],
  },
  server_trouble: {
    doc: "The server could not read something of its own.",
    helps: "Read the message and the server's log.",
    disposition: "retry",
    facts: [],
  },
  quarantined: {
    doc: "The outcome of a pass cannot be written, or the row cannot be read; the thing is set aside and tried again.",
    helps: "Read the message and the server's log; report it.",
    disposition: "retry",
    facts: [],
  },
  bug: {
    doc: "Millwright itself met with something unexpected.",
    helps: "Read the server's log; report it.",
    disposition: "retry",
    facts: [],
  },
  unknown: {
    doc: "The failure was recorded by a version that did not name causes.",
    helps: "Read the message.",
    disposition: "retry",
    facts: [],
  },
} as const satisfies Readonly<Record<string, CauseSpec>>;
export type CauseCode = keyof typeof CAUSES;

/** For filters: with the empty word for what has none. */
export const CAUSE_WORDS: readonly string[] = [...Object.keys(CAUSES), ""];

/** Why something failed, for programs; messages are for people. Plain JSON, as it is stored and sent. */
export type Cause = { readonly code: CauseCode; readonly facts?: CauseFacts };

type FactNameOf<C extends CauseCode> = (typeof CAUSES)[C]["facts"][number];

/** The facts of a cause. Who failed is always known where a cause is somebody's. */
export type FactsOf<C extends CauseCode> = Pick<CauseFacts, Exclude<FactNameOf<C>, "at">> &
  ("at" extends FactNameOf<C> ? { readonly at: Peer } : unknown);
