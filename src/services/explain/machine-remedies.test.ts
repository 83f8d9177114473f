import { describe, expect, test } from "vitest";
import { aMachine } from "../../../test/support/runs/step-bench.ts";
import { fingerprintOf } from "../../capabilities/host-key.ts";
import type { Cause, Peer } from "../../kernel/causes.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { describeWrongKey } from "../../lifecycles/machine/sighting.ts";
import { machineRemedies } from "./machine-remedies.ts";

const SHOWN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+9C3XQ0gDXZg5iuIIdaTTlZ0L59WskL9PyoC0BpClv";
const PINNED = { key: "ssh-ed25519 AAAAC3Nz", from: "first_seen" } as const;
const commandsFor = (cause: Cause) => machineRemedies(cause, "m-1").map(({ command }) => command);

describe("a machine that shows another host key", () => {
  const pinning = (hostKey: string | null): Machine =>
    aMachine({ ssh: { address: "10.0.0.2", port: 22, hostKey, jumpHosts: [] } });

  test("is accepted by the fingerprint of the key that it shows, in the words of looks and of runs", () => {
    const command = `millwright machine update m-1 --ssh-host-key ${fingerprintOf(SHOWN)}`;
    expect(commandsFor(describeWrongKey(pinning(null), PINNED, SHOWN).cause)).toEqual([command]);
    const facts = { at: "ssh", shown: fingerprintOf(SHOWN), expected: "SHA256:abc" } as const;
    expect(commandsFor({ code: "host_key_changed", facts })).toEqual([command]);
  });

  test("is accepted by the key itself where its owner gave that very fingerprint before an installation proved another", () => {
    const { cause } = describeWrongKey(pinning(fingerprintOf(SHOWN)), { ...PINNED, from: "installation" }, SHOWN);
    expect(commandsFor(cause)).toEqual([`millwright machine update m-1 --ssh-host-key '${SHOWN}'`]);
  });

  test("is not the one to change when it is a jump host on the way", () => {
    const facts = { at: "jump_host", shown: "SHA256:abc", expected: "SHA256:def" } as const;
    expect(commandsFor({ code: "host_key_changed", facts })).toEqual(["millwright machine show m-1 -o yaml"]);
  });
});

test("the certificate that a machine's BMC shows is accepted by its fingerprint", () => {
  expect(commandsFor({ code: "certificate_changed", facts: { at: "bmc", shown: "AA:BB" } })).toEqual([
    "millwright machine accept-certificate m-1 --fingerprint AA:BB",
  ]);
});

const BMC = "millwright machine set-credentials m-1 --bmc-username <name>";
const SSH = "millwright machine set-credentials m-1 --ssh-username <name> --ssh-key-file <file>";

describe("a machine that nobody has said how to sign in to", () => {
  test.each<[at: Peer | undefined, commands: string[]]>([
    ["bmc", [BMC]],
    ["ssh", [SSH]],
    ["jump_host", [SSH]],
    [undefined, [BMC, SSH]],
  ])("is given what is missing, and nothing else: %s", (at, commands) => {
    expect(commandsFor({ code: "credentials_missing", ...(at && { facts: { at } }) })).toEqual(commands);
  });
});

test("credentials that are for another address are given for this one", () => {
  const facts = { at: "bmc", expected: "https://a:443 pin", shown: "https://b:443 pin" } as const;
  const commands = ["millwright machine show m-1", BMC];
  expect(commandsFor({ code: "credentials_not_for_this_address", facts })).toEqual(commands);
});

describe("whoever is not let in, or not for this, is given other credentials:", () => {
  test.each<[Cause["code"], Peer, string]>([
    ["credentials_rejected", "bmc", BMC],
    ["sign_in_stopped", "bmc", BMC],
    ["forbidden", "bmc", BMC],
    ["credentials_rejected", "ssh", SSH],
    ["credentials_rejected", "jump_host", SSH],
    ["credentials_rejected", "cluster", "millwright cluster update c1 --kubeconfig <file>"],
    ["forbidden", "cluster", "millwright cluster update c1 --kubeconfig <file>"],
    ["certificate_untrusted", "cluster", "millwright cluster update c1 --kubeconfig <file>"],
  ])("%s at %s: %s", (code, at, command) => {
    expect(commandsFor({ code, facts: { at, ...(at === "cluster" && { name: "c1" }) } })).toEqual([command]);
  });
});
