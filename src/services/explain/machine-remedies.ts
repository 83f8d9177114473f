import type { Cause, Peer } from "../../kernel/causes.ts";
import { givesCredentials } from "../../runs/model/sign-ins.ts";
import { type NextCommand, say } from "./explanation.ts";

/** What puts a cause right, where a command of ours does; the rest is for hands. */
export function machineRemedies(cause: Cause | null, machineId: string): NextCommand[] {
  const { at, accept, shown, name } = cause?.facts ?? {};
  switch (cause?.code) {
    case "credentials_rejected":
    case "sign_in_stopped":
    case "forbidden":
      return at === "cluster" ? [otherKubeconfig(name)] : [otherCredentials(machineId, at)];
    case "credentials_missing": {
      if (at === "cluster") return [otherKubeconfig(name)];
      const bmc = { command: givesCredentials(machineId, ["bmc"]), why: "sets the credentials of its BMC" };
      const ssh = { command: givesCredentials(machineId, ["ssh"]), why: "sets the credentials of its system" };
      return at === "bmc" ? [bmc] : at === undefined ? [bmc, ssh] : [ssh];
    }
    case "credentials_not_for_this_address":
      return [
        say(`machine show ${machineId}`, "shows the addresses that are on record"),
        {
          command: givesCredentials(machineId, [at === "ssh" ? "ssh" : "bmc"]),
          why: "gives the credentials for the address that is on record now; requires the role admin or credentials",
        },
      ];
    case "host_key_changed":
      if (at === "jump_host")
        return [
          say(`machine show ${machineId} -o yaml`, "shows its jump hosts; machine register --file replaces them"),
        ];
      return [
        say(
          `machine update ${machineId} --ssh-host-key ${accept ?? shown ?? "<key>"}`,
          "accepts the key that it shows: only when it was reinstalled, and the key was checked at the machine",
        ),
      ];
    case "certificate_changed":
      return [
        say(
          `machine accept-certificate ${machineId} --fingerprint ${shown ?? "<sha256>"}`,
          "pins the certificate that its BMC shows: only when the BMC was replaced or given a new one, and the fingerprint was compared",
        ),
      ];
    case "endpoint_missing":
    case "wrong_identity":
      return [say(`machine show ${machineId}`, "shows which addresses are on record; machine update changes them")];
    case "reference_missing":
      return [
        say("cluster list", "shows the clusters that there are; cluster create adds one"),
        say("image list", "shows the images that there are; image create adds one"),
      ];
    case "certificate_untrusted":
      if (at === "cluster") return [otherKubeconfig(name)];
      return [say("config check", "shows bmc.ca_file and bmc.allowed_networks as they are in effect")];
    case "address_not_allowed":
      return [say("config check", "shows bmc.ca_file and bmc.allowed_networks as they are in effect")];
    case "plain_http_not_allowed":
      return [
        say(`machine update ${machineId} --bmc-endpoint <host[:port]>`, "gives the address of its BMC with TLS"),
        say("config check", "shows bmc.plain_http as it is in effect"),
      ];
    default:
      return [];
  }
}

/** For the BMC, unless it was the machine's own system, or a host on the way to it. */
const otherCredentials = (machineId: string, at: Peer | undefined): NextCommand =>
  at === "ssh" || at === "jump_host"
    ? { command: givesCredentials(machineId, ["ssh"]), why: "sets another user and key for SSH" }
    : { command: givesCredentials(machineId, ["bmc"]), why: "sets other BMC credentials, which are tried at once" };

const otherKubeconfig = (name = "<name>"): NextCommand =>
  say(
    `cluster update ${name} --kubeconfig <file>`,
    "gives another kubeconfig, which is tried first; docs/guides/kubernetes.md lists what its user must be allowed to do",
  );
