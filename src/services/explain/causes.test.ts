import { describe, expect, test } from "vitest";
import { CAUSES, type CauseId, causeOf, nameCause } from "./causes.ts";

/** As providers, handlers and steps word them. */
// biome-ignore format: a table is read by its columns
const MESSAGES: readonly (readonly [CauseId, string])[] = [
  ["quarantined",              "its outcome cannot be written: value too long for type character varying"],
  ["quarantined",              "its row cannot be read: Expected string, received number"],
  ["bug",                      "unexpected error: Cannot read properties of undefined"],
  ["sign_in_stopped",          "wrong credentials: BMC 10.0.0.1:443 has rejected them since 2026-01-01T00:00:00.000Z; they are tried only rarely, so that the account is not locked"],
  ["bmc_credentials",          "reboot: wrong credentials: BMC 10.0.0.1:443: POST /redfish/v1/SessionService/Sessions does not accept user admin (401)"],
  ["ssh_credentials",          "script: wrong credentials: SSH 10.0.0.1:22 does not accept user root with the given key or password"],
  ["cluster_credentials",      "cluster a: GET /api/v1/nodes was answered with status 403: forbidden. Check the cluster's kubeconfig and what its user may do"],
  ["credentials_missing",      "there are no BMC credentials for machine m-1"],
  ["credentials_missing",      "there are no credentials for the BMC 02:00:5e:10:00:01"],
  ["host_key_changed",         "SSH 10.0.0.1:22 shows host key SHA256:abc, but SHA256:def is pinned: either it was installed anew, or something else answers"],
  ["certificate_changed",      "BMC 10.0.0.1:443 shows a certificate with fingerprint AA:BB, but CC:DD was pinned on first use. Nothing was sent to it"],
  ["certificate_untrusted",    "BMC 10.0.0.1:443 shows a certificate that is not trusted (self-signed certificate). Add its CA to bmc.ca_file"],
  ["wrong_serial",             "the BMC at 10.0.0.1 answers for serial X, but this shelf is Y: check the address"],
  ["wrong_serial",             "the BMC at 10.0.0.1 says serial X, expected Y"],
  ["not_allowed",              "BMC 10.0.0.1 is outside the networks that may be called: add its network to bmc.allowed_networks"],
  ["not_allowed",              "SSH 10.0.0.1:22 is outside of the networks that may be called"],
  ["endpoint_missing",         "machine m-1 has no BMC endpoint; give it spec.bmc_endpoint"],
  ["reference_missing",        "there is no cluster a; create it with millwright cluster create"],
  ["script_changed",           "cordon-node: script cordon_node.sh is sha256:aa now, but was sha256:bb when this run was started: start it anew"],
  ["meter_contradicts",        "not done within 4m: shelf reports power unknown, wanted off"],
  ["accepts_and_does_nothing", "not done within 4m: shelf reports power on, wanted off"],
  ["accepts_and_does_nothing", "reboot: not done within 5m: the system of before still runs"],
  ["accepts_and_does_nothing", "reboot: not done within 5m: the BMC tells of no reset yet"],
  ["install_failed",           "pave: not done within 30m: installing (the BMC says: booting)"],
  ["install_failed",           "the machine came up with a system that is not from this installation: it did not boot from the medium, or the installation failed"],
  ["join_failed",              "join: kubeadm join ended with exit code 1; its output is in the run's log"],
  ["node_missing",             "verify: not done within 5m: node n-1 is not Ready: KubeletNotReady"],
  ["cluster_unreachable",      "verify: not done within 5m: cluster default-cluster does not answer"],
  ["cluster_unreachable",      "cluster a: POST /api/v1/namespaces/kube-system/secrets: the API cannot be reached: no answer within 15s"],
  ["ssh_unreachable",          "not done within 1m: waiting for the machine to answer about verify_network.sh"],
  ["ssh_unreachable",          "SSH 10.0.0.1:22 cannot be reached: connect ECONNREFUSED"],
  ["ssh_unreachable",          "SSH 10.0.0.1:22 did not answer the sign-in within 10s"],
  ["not_drained",              "drain-check: drain_check.sh ended with exit code 1; it said: node n-1 is not cordoned: have it drained"],
  ["not_drained",              "drain-check: drain_check.sh ended with exit code 1; it said: node n-1 is cordoned, but these pods remain on it: default/web-1"],
  ["script_failed",            "drain-check: drain_check.sh ended with exit code 1; it said: The connection to the server was refused"],
  ["script_failed",            "script: drain_node.sh ended with exit code 1"],
  ["script_failed",            "script: drain_node.sh was cut off: it was started and ended without a result"],
  ["net_refused",              "net: the network change was taken back: it could not be applied, or the machine was not reached afterwards; it said: malformed address 'nowhere'"],
  ["net_reverted",             "net: the network change was taken back: it could not be applied, or the machine was not reached afterwards; it said: not confirmed within 60 s: taken back"],
  ["net_reverted",             "net: the network change was taken back: it could not be applied, or the machine was not reached afterwards"],
  ["bmc_slow",                 "BMC 10.0.0.1:443 did not answer GET /redfish/v1 within 10s"],
  ["bmc_unreachable",          "BMC 10.0.0.1:443 cannot be reached: GET /redfish/v1: socket hang up"],
  ["bmc_unreachable",          "pave: BMC 10.0.0.1:443 cannot be reached: POST /redfish/v1/x: socket hang up; then not done within 30m: the machine has not been restarted into the installation medium"],
  ["bmc_slow",                 "reboot: BMC 10.0.0.1:443 did not answer POST /redfish/v1/x within 10s; then not done within 5m: the system of before still runs"],
  ["bmc_unreachable",          "mark-rma: not done within 1m: the BMC does not answer"],
  ["bmc_nonsense",             "BMC 10.0.0.1:443: GET /redfish/v1 was answered with something that is not a JSON object: <html>"],
  ["bmc_error",                "BMC 10.0.0.1:443: POST /redfish/v1/x was answered with status 503"],
  ["bmc_refuses",              "BMC 10.0.0.1:443: POST /redfish/v1/x was refused with status 400"],
];

describe("a cause", () => {
  test.each(MESSAGES)("%s is told by: %s", (cause, message) => {
    expect(causeOf(message)).toBe(cause);
    expect(nameCause(message)).toBe(CAUSES[cause]);
  });

  test("that is not known is told in its own words", () => {
    expect(causeOf("the moon is full")).toBeUndefined();
    expect(nameCause("the moon is full")).toBe("the moon is full");
  });

  test.each(["installing (the BMC says: booting)", "kubeadm join is running", "the system of before still runs"])(
    "is not read into what merely goes on: %s",
    (message) => {
      expect(causeOf(message)).toBeUndefined();
    },
  );

  test("each has an example here", () => {
    expect([...new Set(MESSAGES.map(([cause]) => cause))].toSorted()).toEqual(Object.keys(CAUSES).toSorted());
  });
});
