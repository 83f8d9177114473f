import { describe, expect, test } from "vitest";
import { aMachine } from "../../../test/support/runs/step-bench.ts";
import { fingerprintOf } from "../../capabilities/host-key.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { describeWrongKey } from "../../lifecycles/machine/sighting.ts";
import { hasNoCredentials } from "../../runs/model/sign-ins.ts";
import { causeOf } from "./causes.ts";
import { machineRemedies } from "./machine-remedies.ts";

const SHOWN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+9C3XQ0gDXZg5iuIIdaTTlZ0L59WskL9PyoC0BpClv";
const PINNED = { key: "ssh-ed25519 AAAAC3Nz", from: "first_seen" } as const;
const firstFor = (trouble: string) => machineRemedies(causeOf(trouble), "m-1", trouble)[0]?.command;

describe("a machine that shows another host key", () => {
  const pinning = (hostKey: string | null): Machine =>
    aMachine({ ssh: { address: "10.0.0.2", port: 22, hostKey, jumpHosts: [] } });

  test("is accepted by the fingerprint of the key that it shows, in the words of looks and of runs", () => {
    const command = `millwright machine update m-1 --ssh-host-key ${fingerprintOf(SHOWN)}`;
    expect(firstFor(describeWrongKey(pinning(null), PINNED, SHOWN))).toBe(command);
    expect(
      firstFor(`net: SSH 10.0.0.2:22 shows host key ${fingerprintOf(SHOWN)}, but SHA256:abc is pinned: either`),
    ).toBe(command);
  });

  test("is accepted by the key itself where its owner gave that very fingerprint before an installation proved another", () => {
    const trouble = describeWrongKey(pinning(fingerprintOf(SHOWN)), { ...PINNED, from: "installation" }, SHOWN);
    expect(firstFor(trouble)).toBe(`millwright machine update m-1 --ssh-host-key '${SHOWN}'`);
  });

  test("is not the one to change when it is a jump host on the way", () => {
    const trouble = "jump host SSH 10.0.0.9:22 shows host key SHA256:abc, but SHA256:def is pinned: either";
    expect(firstFor(trouble)).toBe("millwright machine show m-1 -o yaml");
  });
});

test("a machine whose BMC shows another certificate is told to forget the pinned one, and to pin the next", () => {
  const trouble = "BMC 10.0.0.1:443 shows a certificate with fingerprint AA:BB, but CC:DD was pinned on first use.";
  expect(machineRemedies(causeOf(trouble), "m-1", trouble).map(({ command }) => command)).toEqual([
    "millwright machine update m-1 --tls-trust off",
    "millwright machine update m-1 --tls-trust pin",
  ]);
});

describe("a machine that nobody has said how to sign in to", () => {
  const bmc = "millwright machine set-credentials m-1 --bmc-username <name>";
  const ssh = "millwright machine set-credentials m-1 --ssh-username <name> --ssh-key-file <file>";

  test.each([
    [hasNoCredentials("m-1", "bmc"), bmc],
    [hasNoCredentials("m-1", "ssh"), ssh],
    ["the SSH credentials of machine m-1 are damaged", ssh],
    ["an installation is proved over SSH: give the machine a private key to sign in with", ssh],
  ])("is given what is missing, and nothing else: %s", (trouble, command) => {
    expect(machineRemedies(causeOf(trouble), "m-1", trouble).map((one) => one.command)).toEqual([command]);
  });
});
