import { CAUSES, type Cause, type CauseCode, type CauseSpec, type Peer } from "../../kernel/causes.ts";

type Sentence = string | { readonly [P in Peer]?: string };

const SSH_SILENT = "the machine does not answer over SSH";
const CLUSTER_SILENT = "the cluster's API does not answer";

/**
 * What is wrong, in words that go on from "because". By who failed where that changes the words. A cause without words here is told
 * by its message, which then says more than any words that hold for all of its kind.
 */
const SENTENCES: { readonly [C in CauseCode]?: Sentence } = {
  unreachable: {
    bmc: "its BMC cannot be reached",
    ssh: SSH_SILENT,
    jump_host: "a jump host on the way to the machine does not answer",
    cluster: CLUSTER_SILENT,
    rack_manager: "the rack manager cannot be reached",
  },
  timed_out: {
    bmc: "its BMC takes connections and does not answer in time: it is slow, overloaded or hangs",
    ssh: SSH_SILENT,
    jump_host: "a jump host on the way to the machine does not answer",
    cluster: CLUSTER_SILENT,
    rack_manager: "the rack manager takes connections and does not answer in time",
  },
  address_not_allowed: "its address is outside the networks that may be called",
  plain_http_not_allowed: "its address is plain HTTP, and bmc.plain_http does not allow that",
  busy: {
    bmc: "its BMC answers with an error of its own",
    cluster: "the cluster's API answers with an error of its own",
  },
  protocol: {
    bmc: "its BMC answers with something that makes no sense",
    cluster: "the cluster's API answers with something that makes no sense",
  },
  not_found_there: { bmc: "its BMC does not have what was asked of it" },
  refused_by_device: { bmc: "its BMC refuses the command", cluster: "the cluster refuses the request" },
  unsupported: { bmc: "its BMC has no way to carry out the command" },
  credentials_rejected: {
    bmc: "its BMC rejects the credentials",
    ssh: "SSH on the machine refuses the user or the key",
    jump_host: "a jump host on the way to the machine refuses the user or the key",
    cluster: "the cluster refuses the kubeconfig",
  },
  sign_in_stopped:
    "its BMC keeps rejecting the credentials, so they are tried only rarely and the account is not locked",
  credentials_missing: {
    bmc: "there are no credentials to sign in with",
    ssh: "there are no credentials to sign in with",
    jump_host: "there are no credentials to sign in with",
    cluster: "the kubeconfig on record cannot be used",
  },
  credentials_not_for_this_address: {
    bmc: "the credentials of its BMC were given for another address, so nothing is sent to this one",
    ssh: "its SSH credentials were given for another address, so nothing is sent to this one",
    switch_os: "the credentials of its operating system were given for another address, so nothing is sent to this one",
  },
  forbidden: {
    bmc: "its BMC accepts the credentials, and forbids the account this request",
    cluster: "the cluster forbids the kubeconfig's user this request",
  },
  certificate_changed: "its BMC shows another certificate than the one that is pinned",
  certificate_untrusted: {
    bmc: "its BMC shows a certificate that is not trusted",
    cluster: "the cluster's API shows a certificate that its kubeconfig does not trust",
    rack_manager: "the rack manager shows a certificate that is not trusted",
  },
  host_key_changed: {
    ssh: "the machine shows another SSH host key than the one that is pinned",
    jump_host: "a jump host on the way to the machine shows another SSH host key than the one that is pinned",
  },
  wrong_identity: {
    bmc: "another device answers at its address: the serial number is wrong",
    ssh: "another machine answers at its address",
  },
  endpoint_missing: "it is not on record where it is reached",
  reference_missing: "something that the plan names is not there",
  script_changed: "a script is another one now than when the run was started",
  script_failed: "a script failed on the machine",
  not_drained: "its node is not drained",
  net_refused: "netplan refuses the settings, so they were undone",
  net_reverted: "the network change was undone",
  install_failed: "the installation did not come up",
  join_failed: "joining the cluster failed on the machine",
  node_not_ready: "the cluster does not show the machine as a Ready node",
  no_effect: "its BMC accepts the command, and nothing changes",
  meter_contradicts: "its meter contradicts what its BMC reports, so its power state cannot be believed",
  quarantined: "what was worked out cannot be kept, so it is set aside and tried again",
  bug: "Millwright itself met with something unexpected",
};

/** What is wrong with a thing: for people, and, where it is known, for programs. */
export interface Trouble {
  readonly message: string;
  readonly cause: Cause | null;
}

export const NO_TROUBLE: Trouble = { message: "", cause: null };

export const troubleOf = (message: string, cause: Cause | null | undefined): Trouble => ({
  message,
  cause: cause ?? null,
});

/** The cause in a sentence; without one, the message itself. */
export function nameTrouble({ message, cause }: Trouble): string {
  const sentence = cause === null ? undefined : SENTENCES[cause.code];
  if (sentence === undefined || typeof sentence === "string") return sentence ?? message;
  return sentence[cause?.facts?.at ?? "bmc"] ?? message;
}

/** Wrong already, and not only should it last. */
export const isWrongNow = (cause: Cause | null | undefined): cause is Cause => {
  const spec: CauseSpec | undefined = cause ? CAUSES[cause.code] : undefined;
  return spec !== undefined && spec.onlyWhenLate !== true;
};
