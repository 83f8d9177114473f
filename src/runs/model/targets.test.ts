import { describe, expect, test } from "vitest";
import { aMachine } from "../../../test/support/runs/step-bench.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { Runbooks } from "../steps/scripts/runbooks.ts";
import { bmcTargetOf, clusterNameOf, sshTargetOf } from "./targets.ts";

const account = { username: "root", credentials: { privateKey: "k" } };
const withFacts = (machine: Machine, facts: Partial<Machine["facts"]>): Machine => ({
  ...machine,
  facts: { ...machine.facts, ...facts },
});

describe("the SSH target of a machine", () => {
  const jump = { address: "j", port: 22, hostKey: "ssh-ed25519 J", username: null };
  const machine = aMachine({ ssh: { address: "a", port: 22, hostKey: "given", jumpHosts: [jump] } });

  test("must show the key that its installation proved, else the one that its owner gave", () => {
    expect(sshTargetOf(machine, account).hostKey).toBe("given");
    expect(sshTargetOf(withFacts(machine, { sshHostKey: "proved" }), account).hostKey).toBe("proved");
  });

  test("must show the key that was seen first where nobody gave or proved one, and any before that", () => {
    const unpinned = aMachine({ ssh: { address: "a", port: 22, hostKey: null, jumpHosts: [] } });
    expect(sshTargetOf(unpinned, account).hostKey).toBeNull();
    expect(sshTargetOf(withFacts(unpinned, { sshHostKeySeen: "seen" }), account).hostKey).toBe("seen");
    expect(sshTargetOf(withFacts(machine, { sshHostKeySeen: "seen" }), account).hostKey).toBe("given");
    const repaved = withFacts(unpinned, { sshHostKeySeen: "seen", sshHostKey: "proved" });
    expect(sshTargetOf(repaved, account).hostKey).toBe("proved");
  });

  test("takes the machine's user for jump hosts that have none of their own", () => {
    expect(sshTargetOf(machine, account).jumpHosts).toEqual([{ ...jump, username: "root" }]);
  });

  test("is missing with a message that says where to give it", () => {
    expect(() => sshTargetOf(aMachine({ ssh: null }), account)).toThrow("spec.ssh_endpoint");
    expect(() => bmcTargetOf(aMachine({ bmc: null }), { username: "", password: "" })).toThrow("spec.bmc_endpoint");
  });
});

test("a BMC is reached at the usual port, and must show the certificate that it showed first", () => {
  const bmc = { address: "b", port: null, protocol: null, scheme: "https", trust: "pin" } as const;
  const machine = withFacts(aMachine({ bmc }), { certificateFingerprint: "AA" });
  expect(bmcTargetOf(machine, { username: "u", password: "p" })).toEqual({
    address: "b",
    port: 443,
    scheme: "https",
    username: "u",
    password: "p",
    trust: { mode: "pin", fingerprint256: "AA" },
  });
});

describe("scripts", () => {
  test("are known by name and digest, and a site's own version wins", () => {
    const runbooks = new Runbooks({ "a.sh": "echo 1\n", "b.sh": "echo 2\n" }, { "b.sh": "echo 3\n" });
    expect(runbooks.refs).toEqual(["a.sh", "b.sh"]);
    expect(runbooks.resolve("b.sh", "f")).toMatchObject({
      text: "echo 3\n",
      digest: expect.stringMatching(/^sha256:/),
    });
  });

  test("that are unknown are refused with those there are", () => {
    expect(() => new Runbooks({ "a.sh": "" }).resolve("../etc/passwd", "steps[0].ssh.script_ref")).toThrow(
      'steps[0].ssh.script_ref: there is no script "../etc/passwd"; known: a.sh',
    );
    expect(() => new Runbooks({ "../a.sh": "" })).toThrow("not the name of a script");
  });
});

test("a cluster is the one that the step names, else the machine's own, else default-cluster", () => {
  const ownCluster = aMachine({ targetCluster: "of-the-machine" });
  expect(clusterNameOf("of-the-step", ownCluster)).toBe("of-the-step");
  expect(clusterNameOf("", ownCluster)).toBe("of-the-machine");
  expect(clusterNameOf("", aMachine({ targetCluster: null }))).toBe("default-cluster");
  const elsewhere = { ...ownCluster, facts: { ...ownCluster.facts, joinedCluster: "where-it-is" } };
  expect(clusterNameOf("", elsewhere)).toBe("where-it-is");
});
