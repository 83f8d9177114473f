import { givesCredentials } from "../../runs/model/sign-ins.ts";
import type { CauseId } from "./causes.ts";
import { type NextCommand, say } from "./explanation.ts";

/**
 * What puts a cause right, where a command of ours does; the rest is for hands.
 *
 * @param trouble The words by which the cause was told: what they name goes into the commands.
 */
export function machineRemedies(cause: CauseId | undefined, machineId: string, trouble = ""): NextCommand[] {
  switch (cause) {
    case "bmc_credentials":
    case "sign_in_stopped":
      return [{ command: givesCredentials(machineId, ["bmc"]), why: "gives its BMC others, which are tried at once" }];
    case "ssh_credentials":
      return [{ command: givesCredentials(machineId, ["ssh"]), why: "gives SSH another user and key" }];
    case "credentials_missing": {
      const bmc = { command: givesCredentials(machineId, ["bmc"]), why: "says how to sign in to its BMC" };
      const ssh = { command: givesCredentials(machineId, ["ssh"]), why: "says how to sign in to its system" };
      return /BMC credentials/.test(trouble) ? [bmc] : /SSH|private key/.test(trouble) ? [ssh] : [bmc, ssh];
    }
    case "host_key_changed":
      if (/jump host SSH \S+ shows host key/.test(trouble))
        return [
          say(`machine show ${machineId} -o yaml`, "shows its jump hosts; machine register --file replaces them"),
        ];
      return [
        say(
          `machine update ${machineId} --ssh-host-key ${shownKeyIn(trouble)}`,
          "accepts the key that it shows: only when it was installed anew, and the key was checked at the machine",
        ),
      ];
    case "certificate_changed":
      return [
        say(
          `machine update ${machineId} --tls-trust off`,
          "forgets the pinned certificate, and checks none until the next command: only when the BMC was replaced or given a new one",
        ),
        say(`machine update ${machineId} --tls-trust pin`, "right after it, pins the one that it shows next"),
      ];
    case "endpoint_missing":
    case "wrong_serial":
      return [say(`machine show ${machineId}`, "shows which addresses are on record; machine update changes them")];
    case "reference_missing":
      return [
        say("cluster list", "shows the clusters that there are; cluster create adds one"),
        say("image list", "shows the images that there are; image create adds one"),
      ];
    case "cluster_credentials":
      return [
        say(
          "cluster list",
          "shows the clusters; its kubeconfig must belong to a user who may read nodes and make tokens",
        ),
      ];
    case "not_allowed":
    case "certificate_untrusted":
      return [say("config check", "shows bmc.ca_file and bmc.allowed_networks as they are in effect")];
    default:
      return [];
  }
}

/** The command that the words themselves give comes first: it knows what is on record. */
const shownKeyIn = (trouble: string): string =>
  /--ssh-host-key ('[^']+'|SHA256:\S+)/.exec(trouble)?.[1] ??
  /shows host key (SHA256:[^\s,]+)/.exec(trouble)?.[1] ??
  "<key>";
