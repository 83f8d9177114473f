/** Why work on a thing does not succeed, as far as it changes what helps. Each is named to people in these words. */
export const CAUSES = {
  sign_in_stopped:
    "its BMC keeps rejecting the credentials, so they are tried only rarely and the account is not locked",
  ssh_credentials: "SSH on the machine refuses the user or the key",
  cluster_credentials: "the cluster refuses the kubeconfig",
  bmc_credentials: "its BMC rejects the credentials",
  credentials_missing: "there are no credentials to sign in with",
  host_key_changed: "the machine shows another SSH host key than the one that is pinned",
  certificate_changed: "its BMC shows another certificate than the one that is pinned",
  certificate_untrusted: "its BMC shows a certificate that is not trusted",
  wrong_serial: "another device answers at its address: the serial number is wrong",
  not_allowed: "its address is outside of the networks that may be called",
  endpoint_missing: "it is not on record where it is reached",
  reference_missing: "something that the plan names is not there",
  script_changed: "a script is another one now than when the run was started",
  meter_contradicts: "its meter contradicts what its BMC reports, so its power state cannot be believed",
  accepts_and_does_nothing: "its BMC accepts the command, and nothing changes",
  install_failed: "the installation did not come up",
  join_failed: "joining the cluster failed on the machine",
  node_missing: "the cluster does not show the machine as a Ready node",
  cluster_unreachable: "the cluster's API does not answer",
  ssh_unreachable: "the machine does not answer over SSH",
  not_drained: "its node is not drained",
  script_failed: "a script failed on the machine",
  net_refused: "netplan refuses the settings, so they were taken back",
  net_reverted: "the network change was taken back",
  bmc_slow: "its BMC takes connections and does not answer in time: it is slow, overloaded or hangs",
  bmc_unreachable: "its BMC cannot be reached",
  bmc_nonsense: "its BMC answers with something that makes no sense",
  bmc_error: "its BMC answers with an error of its own",
  bmc_refuses: "its BMC refuses the command",
  quarantined: "what was worked out cannot be kept, so it is set aside and tried again",
  bug: "Millwright itself met with something unexpected",
} as const;
export type CauseId = keyof typeof CAUSES;

/**
 * By the words in which our own providers, handlers and steps report, the most telling first. Only the choice of words and advice
 * depends on it, and never what is done; the test that injects every fault of the simulator fails when the two part.
 */
// biome-ignore format: a table is read by its columns
const TOLD_BY: readonly (readonly [RegExp, CauseId])[] = [
  [/its (outcome cannot be written|row cannot be read)/,                                        "quarantined"],
  [/unexpected error:/,                                                                         "bug"],
  [/has rejected them since/,                                                                   "sign_in_stopped"],
  [/wrong credentials: SSH/,                                                                    "ssh_credentials"],
  [/Check the cluster's kubeconfig/,                                                            "cluster_credentials"],
  [/wrong credentials:/,                                                                        "bmc_credentials"],
  [/there are no (\w+ )?credentials|credentials .*are damaged|private key to sign in/,          "credentials_missing"],
  [/shows host key .* is pinned/,                                                               "host_key_changed"],
  [/shows a certificate with fingerprint/,                                                      "certificate_changed"],
  [/shows a certificate that is not trusted/,                                                   "certificate_untrusted"],
  [/answers for (no )?serial|says serial|says that it is machine/,                              "wrong_serial"],
  [/outside (of )?the networks that may be called/,                                             "not_allowed"],
  [/has no (BMC|SSH) endpoint|no bmc_ip_address is given/,                                      "endpoint_missing"],
  [/there is no (cluster|image|script) /,                                                       "reference_missing"],
  [/script \S+ is \S+ now, but was/,                                                              "script_changed"],
  [/reports power unknown/,                                                                     "meter_contradicts"],
  [/not done within .*(the system of before still|tells of no reset|has not been restarted|the next boot is from|the machine is (powering_)?on|locator is dark|reports power)/, "accepts_and_does_nothing"],
  [/not from this installation|image of digest|not done within .*installing \(the BMC says/,       "install_failed"],
  [/kubeadm join ended|booted anew under kubeadm join/,                                         "join_failed"],
  [/no node that is this machine|is not Ready|earlier boot/,                                    "node_missing"],
  [/cluster \S+ does not answer|cluster .*(the API cannot be reached|answered with (status|something))/, "cluster_unreachable"],
  [/SSH \S+(:| cannot be reached| did not answer)|waiting for the (machine|system) to answer|does not answer over SSH/, "ssh_unreachable"],
  [/network change was taken back.*it said: (?!not confirmed|told to stop)/,                     "net_refused"],
  [/network change/,                                                                            "net_reverted"],
  [/drain_check\.sh ended .*it said: .*(is not cordoned|pods remain|whether the node is drained)/, "not_drained"],
  [/ended with exit code|was cut off|the script/,                                               "script_failed"],
  [/did not answer .*(within|in the time)/,                                                     "bmc_slow"],
  [/not a JSON object|in HTTP|larger than|lists no|has no (members|such resource)|leads nowhere|redirect|must have one/, "bmc_nonsense"],
  [/answered with status|already waiting/,                                                      "bmc_error"],
  [/refused with status|offers no|cannot be told|has no (virtual|locator)/,                     "bmc_refuses"],
  [/cannot be reached|does not answer|neither its BMC/,                                         "bmc_unreachable"],
];

const toldBy = (message: string): CauseId | undefined => TOLD_BY.find(([words]) => words.test(message))?.[1];

/**
 * Undefined when the words tell no cause that we know: the message then stands for itself. Why a command got no answer tells more than
 * what its device shows until the time is over: nobody can say that it was accepted.
 */
export const causeOf = (message: string): CauseId | undefined =>
  toldBy(message.replace(/; then not done within .*/s, "")) ?? toldBy(message);

/** The cause in a sentence; without one, the message itself. */
export function nameCause(message: string): string {
  const cause = causeOf(message);
  return cause === undefined ? message : CAUSES[cause];
}
