import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NOTHING_KNOWN } from "../../../test/support/unknown-machine.ts";
import { fingerprintOf } from "../../capabilities/host-key.ts";
import type { ListedNode } from "../../capabilities/node-list.ts";
import type { MachineVitals } from "../../capabilities/vitals.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import { CONDITION_TYPES, type Condition, type ConditionType, observe } from "./conditions.ts";
import { MACHINE_PHASES, type Machine, type MachineFacts } from "./machine.ts";
import { interpretSighting, MISSES_TO_BELIEVE, type Misses, podsRemain } from "./observation.ts";
import type { Seen, Sighting } from "./sighting.ts";

const START = new Date("2026-01-01T00:00:00Z");
const later = (seconds: number): Date => new Date(START.getTime() + seconds * 1_000);
const OLD_KEY = "ssh-ed25519 AAAAold";

const condition = (type: ConditionType, status: boolean, reason = "Known", message = ""): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransition: START,
});

interface Given {
  readonly phase?: string;
  readonly before?: string;
  readonly stateSince?: Date;
  readonly conditions?: readonly Condition[];
  readonly activeRunId?: string | null;
  readonly facts?: Partial<MachineFacts>;
  readonly serial?: string | null;
  readonly hostKey?: string;
}

const machineWith = ({
  phase = "READY",
  before,
  stateSince = START,
  conditions = [],
  activeRunId = null,
  facts,
  serial = "S1",
  hostKey,
}: Given = {}): Machine => ({
  id: parseMachineId("m-1", "id"),
  labels: {},
  spec: {
    provider: "datacenter",
    serial,
    macs: [],
    rack: null,
    slot: null,
    location: null,
    customerId: null,
    targetCluster: null,
    ssh: { address: "10.0.0.1", port: 22, hostKey: hostKey ?? null, jumpHosts: [] },
    bmc: null,
  },
  facts: { ...NOTHING_KNOWN, ...facts },
  conditions,
  activeRunId,
  state: { name: phase, ...(before !== undefined && { before }) },
  stateSince,
  stateVersion: 1,
  outcome: null,
  version: 1,
  basis: 1,
});

const WELL: MachineVitals = { serial: "S1", systemUuid: "u-1", power: "on", health: "ok", ailments: [] };
const NODE: ListedNode = {
  name: "n1",
  ready: true,
  reason: "",
  unschedulable: false,
  systemUuid: "u-1",
  serial: null,
  addresses: [],
  bootId: "b-1",
};
const seen = <T>(what: T, at = later(60)): Seen<T> => ({ is: "seen", what, at });
const missed = (message = "no answer"): Seen<never> => ({ is: "missed", reason: "NoAnswer", message });
const sighting = (over: Partial<Sighting> = {}): Sighting => ({
  ssh: seen({ hostKey: OLD_KEY }),
  bmc: seen(WELL),
  node: { is: "nowhere", reason: "NoCluster", message: "" },
  alerts: [],
  ...over,
});
const otherKey = (base64: string) => sighting({ ssh: seen({ hostKey: `ssh-ed25519 ${base64}` }) });
const inCluster = (node: ListedNode | null, workloads: readonly string[] | null = null, at = later(60)) =>
  seen({ cluster: "c1", node, workloads }, at);

/** What is said of one condition; undefined when nothing is. */
const said = (machine: Machine, what: Sighting, type: ConditionType, misses: Misses = {}) => {
  const found = interpretSighting(machine, what, misses).observed.find((each) => each.type === type);
  return found && `${found.status} ${found.reason}`;
};

describe("Reachable and BMCReachable", () => {
  test.each<[ConditionType, Partial<Sighting>]>([
    ["Reachable", { ssh: missed() }],
    ["BMCReachable", { bmc: missed() }],
  ])("%s is not given up for one miss, but for two in a row", (type, over) => {
    const machine = machineWith({ conditions: [condition(type, true)] });
    const first = interpretSighting(machine, sighting(over), {});
    expect(first.observed.some((each) => each.type === type)).toBe(false);
    const second = interpretSighting(machine, sighting(over), first.misses);
    expect(second.observed).toContainEqual(expect.objectContaining({ type, status: false, reason: "NoAnswer" }));
  });

  test("an answer ends the doubt, so that misses far apart never add up", () => {
    const machine = machineWith({ conditions: [condition("Reachable", true)] });
    const { misses } = interpretSighting(machine, sighting({ ssh: missed() }), {});
    expect(interpretSighting(machine, sighting(), misses).misses).toEqual({});
  });

  test("an answer is believed at once", () => {
    const machine = machineWith({ conditions: [condition("Reachable", false)] });
    expect(said(machine, sighting(), "Reachable")).toBe("true SshAnswers");
  });

  test("the words of a failure stay for as long as its reason does, so that nothing is written again and again", () => {
    const machine = machineWith({ conditions: [condition("BMCReachable", false, "NoAnswer", "after 5s")] });
    const { observed } = interpretSighting(machine, sighting({ bmc: missed("after 7s") }), { BMCReachable: 2 });
    expect(observed).toContainEqual(expect.objectContaining({ type: "BMCReachable", message: "after 5s" }));
  });

  test.each([
    ["is off, as its BMC says", { run: "run-1" }, "off", "false OffOnPurpose"],
    ["was switched on again by somebody", { run: "run-1" }, "on", "false NoAnswer"],
    ["is off, and nobody meant it to be", null, "off", "false NoAnswer"],
  ] as const)("a machine that %s: why it is not reached", (_, offOnPurpose, power, expected) => {
    const machine = machineWith({ facts: { offOnPurpose }, conditions: [condition("Reachable", true)] });
    const silent = sighting({ ssh: missed(), bmc: seen({ ...WELL, power }) });
    expect(said(machine, silent, "Reachable", { Reachable: 1 })).toBe(expected);
  });

  test("a BMC that does not answer while a rack works on the machine calls nobody, and one further miss without the rack does", () => {
    const machine = machineWith({ conditions: [condition("BMCReachable", true)] });
    const off = sighting({ bmc: missed() });
    const held = interpretSighting(machine, off, { BMCReachable: 1 }, "rack-1");
    const kept = {
      type: "BMCReachable",
      status: true,
      reason: "RackAtWork",
      message: expect.stringContaining("rack-1"),
    };
    expect(held.observed).toContainEqual(kept);
    expect(held.isBmcSeen).toBe(false);
    const cause = { code: "certificate_changed", facts: { at: "bmc", shown: "AA" } } as const;
    const other = sighting({ bmc: { is: "missed", reason: "CertificateChanged", message: "", cause } });
    expect(interpretSighting(machine, other, {}, "rack-1").observed).toContainEqual({ ...kept, cause });
    // Not asked more often than usual: it restarts.
    expect(held.misses).toEqual({ BMCReachable: MISSES_TO_BELIEVE });
    const again = interpretSighting(machine, off, held.misses, "rack-1");
    expect(again.observed).toContainEqual(kept);
    expect(said(machine, off, "BMCReachable", again.misses)).toBe("false NoAnswer");
    expect(said(machine, sighting(), "BMCReachable", again.misses)).toBe("true BmcAnswers");
  });

  test("what was known of a BMC before its rack began stays known: not reached, or nothing", () => {
    const off = sighting({ bmc: missed() });
    const gone = machineWith({ conditions: [condition("BMCReachable", false, "NoAnswer")] });
    const of = (machine: Machine) =>
      interpretSighting(machine, off, {}, "rack-1").observed.find(({ type }) => type === "BMCReachable");
    expect(of(gone)).toMatchObject({ status: false, reason: "NoAnswer" });
    expect(of(machineWith())).toBeUndefined();
  });

  test("a machine that shows another host key than the pinned one is not reached", () => {
    const machine = machineWith({ facts: { sshHostKey: OLD_KEY }, conditions: [condition("Reachable", true)] });
    const other = sighting({ ssh: seen({ hostKey: "ssh-ed25519 AAAAnew" }) });
    expect(said(machine, other, "Reachable", { Reachable: 1 })).toBe("false HostKeyChanged");
    expect(said(machine, sighting({ ssh: seen({ hostKey: `${OLD_KEY} root@m-1` }) }), "Reachable")).toBe(
      "true SshAnswers",
    );
  });

  test("what is said of another key names both fingerprints, where the pinned one is from, and how to accept the new one", () => {
    const machine = machineWith({ facts: { sshHostKeySeen: OLD_KEY } });
    const { observed } = interpretSighting(machine, otherKey("AAAAnew"), { Reachable: 1 });
    const [shown, pinned] = [fingerprintOf("ssh-ed25519 AAAAnew"), fingerprintOf(OLD_KEY)];
    const said = observed.find(({ type }) => type === "Reachable")?.message ?? "";
    expect(said).toContain(`shows host key ${shown}, but ${pinned} is pinned as the one seen first`);
    expect(said).toContain(`millwright machine update m-1 --ssh-host-key ${shown}`);
    expect(observed).toContainEqual(expect.objectContaining({ type: "NeedsIntervention", reason: "HostKeyChanged" }));
  });

  test("while a run works on the machine another key is its affair, and nobody is told to accept it", () => {
    const machine = machineWith({ facts: { sshHostKey: OLD_KEY }, activeRunId: "run-1", phase: "PROVISIONING" });
    const { observed } = interpretSighting(machine, otherKey("AAAAnew"), { Reachable: 1 });
    const message = observed.find(({ type }) => type === "Reachable")?.message;
    expect(message).toContain("while run run-1 works on the machine");
    expect(message).not.toContain("--ssh-host-key");
  });

  test("the words about another key change with the key, since people accept what they name", () => {
    const conditions = [condition("Reachable", false, "HostKeyChanged", "shows host key SHA256:earlier")];
    const machine = machineWith({ facts: { sshHostKeySeen: OLD_KEY }, conditions });
    const { observed } = interpretSighting(machine, otherKey("AAAAnew"), { Reachable: 2 });
    const message = expect.stringContaining(fingerprintOf("ssh-ed25519 AAAAnew"));
    expect(observed).toContainEqual(expect.objectContaining({ type: "Reachable", message }));
  });

  test("without an endpoint there is nothing to reach", () => {
    const nowhere = { is: "nowhere", reason: "NoEndpoint", message: "" } as const;
    expect(said(machineWith(), sighting({ ssh: nowhere }), "Reachable")).toBe("false NoEndpoint");
    expect(said(machineWith(), sighting({ bmc: nowhere }), "BMCReachable")).toBe("false NoEndpoint");
  });
});

describe("the host key that is seen first", () => {
  const kept = (given: Given, what = sighting()) =>
    interpretSighting(machineWith(given), what, {}).facts.sshHostKeySeen;

  test("is kept where none is known, and never replaced by a pass", () => {
    expect(kept({})).toBe(OLD_KEY);
    expect(kept({ facts: { sshHostKeySeen: OLD_KEY } }, otherKey("AAAAnew"))).toBeUndefined();
    expect(kept({ facts: { sshHostKey: OLD_KEY } }, otherKey("AAAAnew"))).toBeUndefined();
  });

  test("is not kept where the owner pins one, be it by its fingerprint", () => {
    for (const hostKey of [OLD_KEY, fingerprintOf(OLD_KEY)]) {
      expect(kept({ hostKey })).toBeUndefined();
      expect(said(machineWith({ hostKey }), sighting(), "Reachable")).toBe("true SshAnswers");
    }
  });

  test("is not kept while a run works on the machine: its installer may show one in passing", () => {
    expect(kept({ activeRunId: "run-1" })).toBeUndefined();
    expect(kept({ phase: "PROVISIONING" })).toBeUndefined();
  });

  test("is not kept where another machine's BMC answers: whose system it is nobody knows", () => {
    expect(kept({}, sighting({ bmc: seen({ ...WELL, serial: "S2" }) }))).toBeUndefined();
    expect(kept({}, sighting({ ssh: missed() }))).toBeUndefined();
  });
});

describe("InCustomerCluster", () => {
  test.each<[string, Seen<{ cluster: string; node: ListedNode | null; workloads: null }>, string | undefined]>([
    ["a Ready node is in the cluster", inCluster(NODE) as never, "true NodeReady"],
    [
      "so is one that is not Ready: its pods may still run",
      inCluster({ ...NODE, ready: false }) as never,
      "true NodeNotReady",
    ],
    ["a cluster without such a node has not got it", inCluster(null) as never, "false NotJoined"],
    ["a cluster that does not answer says nothing", { is: "unknown" }, undefined],
  ])("%s", (_, node, expected) => {
    expect(said(machineWith(), sighting({ node }), "InCustomerCluster")).toBe(expected);
  });

  test.each([
    ["SeveralNodes", "true SeveralNodes"],
    ["NodeContradicts", "false NodeContradicts"],
  ] as const)(
    "a node of which nobody can tell whether it is the machine (%s) withholds Drained, and is named",
    (reason, inIt) => {
      const doubt = { reason, message: "node n1 of c1 …" };
      const node = { is: "seen", at: later(60), what: { cluster: "c1", node: null, workloads: null, doubt } } as const;
      const machine = machineWith({ phase: "MAINTENANCE" });
      expect(said(machine, sighting({ node }), "InCustomerCluster")).toBe(inIt);
      expect(said(machine, sighting({ node }), "Drained")).toBe(`false ${reason}`);
      const { observed } = interpretSighting(machine, sighting({ node }), {});
      expect(observed.find(({ type }) => type === "Drained")?.message).toBe("node n1 of c1 …");
    },
  );

  test("a cluster that keeps us out changes nothing of what is known, and says why nobody knows more", () => {
    const cause = { code: "credentials_rejected", facts: { at: "cluster", name: "c1" } } as const;
    const node = { is: "missed", reason: "CredentialsRefused", message: "status 401", cause } as const;
    for (const status of [true, false]) {
      const machine = machineWith({ conditions: [condition("InCustomerCluster", status), condition("Drained", true)] });
      const { observed } = interpretSighting(machine, sighting({ node }), {});
      const ofCluster = observed.filter(({ type }) => type === "InCustomerCluster" || type === "Drained");
      expect(ofCluster).toEqual([
        { type: "InCustomerCluster", status, reason: "CredentialsRefused", message: "status 401", cause },
      ]);
    }
  });

  test("a silent node of an earlier boot is what an earlier system left behind", () => {
    const machine = machineWith({ facts: { bootId: "b-2" } });
    expect(said(machine, sighting({ node: inCluster({ ...NODE, ready: false }) }), "InCustomerCluster")).toBe(
      "false NodeLeftOver",
    );
    expect(said(machine, sighting({ node: inCluster(NODE) }), "InCustomerCluster")).toBe("true NodeReady");
  });

  test("a silent node of an earlier boot is the machine's own where it was joined and only rebooted since", () => {
    const silent = sighting({ node: inCluster({ ...NODE, ready: false }) });
    const rebooted = machineWith({ facts: { bootId: "b-2", joinedCluster: "c1" } });
    expect(said(rebooted, silent, "InCustomerCluster")).toBe("true NodeNotReady");
    const elsewhere = machineWith({ facts: { bootId: "b-2", joinedCluster: "c2" } });
    expect(said(elsewhere, silent, "InCustomerCluster")).toBe("false NodeLeftOver");
  });

  test("a list from before the run's own proof does not speak against it", () => {
    const proven = { ...condition("InCustomerCluster", true), lastTransition: later(61) };
    const machine = machineWith({ conditions: [proven] });
    expect(said(machine, sighting({ node: inCluster(null) }), "InCustomerCluster")).toBeUndefined();
    expect(said(machine, sighting({ node: inCluster(null, null, later(62)) }), "InCustomerCluster")).toBe(
      "false NotJoined",
    );
  });

  test("nor does one from before the end of a run that proved what held already", () => {
    const conditions = [condition("InCustomerCluster", true)];
    const machine = machineWith({ phase: "IN_SERVICE", stateSince: later(61), conditions, facts: { bootId: "b-2" } });
    const silent = { ...NODE, ready: false };
    expect(said(machine, sighting({ node: inCluster(silent) }), "InCustomerCluster")).toBeUndefined();
    expect(said(machine, sighting({ node: inCluster(silent, null, later(62)) }), "InCustomerCluster")).toBe(
      "false NodeLeftOver",
    );
  });
});

describe("the certificate of a machine's BMC", () => {
  const shows = (fingerprint: string, vitals: Partial<MachineVitals> = {}) =>
    sighting({ bmc: seen({ ...WELL, ...vitals, certificateFingerprint: fingerprint }) });
  const withBmc = (trust: "pin" | "ca" | "off", facts: Partial<MachineFacts> = {}): Machine => {
    const machine = machineWith({ facts });
    const bmc = { address: "10.0.0.2", port: 443, scheme: "https" as const, protocol: null, trust };
    return { ...machine, spec: { ...machine.spec, bmc } };
  };
  const kept = (machine: Machine, sighted: Sighting) =>
    interpretSighting(machine, sighted, {}).facts.certificateFingerprint;

  test("is pinned as it was seen first, where its owner wants that", () => {
    expect(kept(withBmc("pin"), shows("AA:BB"))).toBe("AA:BB");
    expect(kept(withBmc("pin", { certificateFingerprint: "AA:BB" }), shows("CC:DD"))).toBeUndefined();
    expect(kept(withBmc("ca"), shows("AA:BB"))).toBeUndefined();
    expect(kept(withBmc("off"), shows("AA:BB"))).toBeUndefined();
  });

  test("is not pinned where it answers for another machine", () => {
    expect(kept(withBmc("pin"), shows("AA:BB", { serial: "S2" }))).toBeUndefined();
  });
});

describe("what a node tells of its machine's boot", () => {
  const learnt = (at: Date) =>
    interpretSighting(
      machineWith({ stateSince: later(61), facts: { bootId: "b-2" } }),
      sighting({ node: inCluster(NODE, null, at) }),
      {},
    ).facts.bootId;

  test("is not taken from before the end of the run that booted it again", () => {
    expect(learnt(later(60))).toBeUndefined();
    expect(learnt(later(62))).toBe("b-1");
  });
});

describe("the cluster in which a machine serves", () => {
  const learnt = (given: Given, node: ListedNode | null) =>
    interpretSighting(machineWith(given), sighting({ node: inCluster(node) }), {}).facts.joinedCluster;

  test("is learnt from its Ready node, once, and again when it is another one", () => {
    expect(learnt({}, NODE)).toBe("c1");
    expect(learnt({ facts: { joinedCluster: "c1" } }, NODE)).toBeUndefined();
    expect(learnt({ facts: { joinedCluster: "c2" } }, NODE)).toBe("c1");
  });

  test("is neither learnt nor forgotten by a node that is silent or gone, nor while a run works on the machine", () => {
    expect(learnt({}, { ...NODE, ready: false })).toBeUndefined();
    expect(learnt({ facts: { joinedCluster: "c1" } }, null)).toBeUndefined();
    expect(learnt({ activeRunId: "run-1", phase: "PROVISIONING" }, NODE)).toBeUndefined();
  });
});

describe("Drained", () => {
  const cordoned = { ...NODE, unschedulable: true };
  test.each<[string, Given, Sighting["node"], string | undefined]>([
    ["a cordoned node with nothing on it is", {}, inCluster(cordoned, []), "true NodeDrained"],
    ["one with pods is not", {}, inCluster(cordoned, ["d/p"]), "false PodsRemain"],
    ["one that takes pods is not, though none is there", {}, inCluster(NODE), "false NotCordoned"],
    ["one whose pods cannot be listed stays what it was", {}, inCluster(cordoned, null), undefined],
    ["in MAINTENANCE a machine without a node is", { phase: "MAINTENANCE" }, inCluster(null), "true NotInCluster"],
    [
      "so it is while a run works on it there",
      { phase: "PROVISIONING", before: "MAINTENANCE" },
      inCluster(null),
      "true NotInCluster",
    ],
    ["in RMA as well", { phase: "RMA" }, inCluster(null), "true NotInCluster"],
    [
      "elsewhere it is not: nobody took it out of service",
      { phase: "READY" },
      inCluster(null),
      "false NotInMaintenance",
    ],
    ["nobody knows while the cluster does not answer", { phase: "MAINTENANCE" }, { is: "unknown" }, undefined],
  ])("%s", (_, given, node, expected) => {
    expect(said(machineWith(given), sighting({ node }), "Drained")).toBe(expected);
  });

  test("nodes that were listed before the end of a run give no other reason for what held before", () => {
    const drained = [condition("InCustomerCluster", true), condition("Drained", true, "NodeDrained")];
    const back = machineWith({ phase: "RMA", stateSince: later(61), conditions: drained, facts: { bootId: "b-2" } });
    const silent = { ...cordoned, ready: false };
    expect(said(back, sighting({ node: inCluster(silent) }), "Drained")).toBeUndefined();
    const serving = [condition("InCustomerCluster", true), condition("Drained", false, "NotCordoned")];
    const joined = machineWith({ phase: "IN_SERVICE", stateSince: later(61), conditions: serving });
    expect(said(joined, sighting({ node: inCluster(null) }), "Drained")).toBeUndefined();
    expect(said(joined, sighting({ node: inCluster(null, null, later(62)) }), "Drained")).toBe(
      "false NotInMaintenance",
    );
  });

  test("what remains is named, but not endlessly", () => {
    expect(podsRemain(["a/1"])).toBe("1 pod remains: a/1");
    expect(podsRemain(["a/1", "a/2", "a/3", "a/4", "a/5"])).toBe("5 pods remain: a/1, a/2, a/3 and 2 more");
  });
});

describe("Degraded", () => {
  const ailing = {
    ...WELL,
    health: "critical" as const,
    ailments: [{ name: "Fan speed", health: "critical" as const }],
  };
  test.each<[string, Partial<Sighting>, string | undefined]>([
    ["a part that is not well is named", { bmc: seen(ailing) }, "true PartNotWell"],
    ["bad health alone is enough", { bmc: seen({ ...WELL, health: "warning" }) }, "true BmcHealthWarning"],
    [
      "an open alert is enough, also while the BMC is silent",
      { bmc: missed(), alerts: ["probe: Leak: wet"] },
      "true OpenAlert",
    ],
    ["a BMC that does not answer says nothing", { bmc: missed() }, undefined],
    ["a healthy machine is not", {}, "false Healthy"],
    ["nor is one whose BMC does not tell", { bmc: seen({ ...WELL, health: "unknown" }) }, "false HealthNotReported"],
  ])("%s", (_, over, expected) => {
    expect(said(machineWith(), sighting(over), "Degraded")).toBe(expected);
  });

  test("an alert beside a part that is not well is named as well", () => {
    const { observed } = interpretSighting(
      machineWith(),
      sighting({ bmc: seen(ailing), alerts: ["probe: Leak: wet"] }),
      {},
    );
    const message = "Fan speed is critical; probe: Leak: wet";
    expect(observed).toContainEqual({ type: "Degraded", status: true, reason: "PartNotWell", message });
  });

  test.each<[string, boolean, string, readonly string[], string | undefined]>([
    ["an alert that ended ends it", true, "OpenAlert", [], "false AlertsEnded"],
    ["an alert that goes on does not", true, "OpenAlert", ["probe: Leak: wet"], "true OpenAlert"],
    ["what the BMC last said of itself stays", true, "PartNotWell", [], undefined],
    ["what the BMC last said of itself is not overwritten", true, "PartNotWell", ["probe: Leak: wet"], undefined],
    ["an alert begins it", false, "Healthy", ["probe: Leak: wet"], "true OpenAlert"],
    ["nothing is said of a healthy machine", false, "Healthy", [], undefined],
  ])("while the BMC is silent, %s", (_, status, reason, alerts, expected) => {
    const machine = machineWith({ conditions: [{ ...condition("Degraded", status), reason }] });
    expect(said(machine, sighting({ bmc: missed(), alerts }), "Degraded")).toBe(expected);
  });

  test("the message names the part", () => {
    const { observed } = interpretSighting(machineWith(), sighting({ bmc: seen(ailing) }), {});
    expect(observed).toContainEqual(expect.objectContaining({ type: "Degraded", message: "Fan speed is critical" }));
  });
});

describe("Provisioned", () => {
  const pinned = { facts: { sshHostKey: OLD_KEY } };
  const other = sighting({ ssh: seen({ hostKey: "ssh-ed25519 AAAAnew" }) });
  const believed: Misses = { Reachable: 1 };

  test("another host key than the installed system's takes it back, and the same one again restores it", () => {
    const machine = machineWith({ ...pinned, conditions: [condition("Provisioned", true, "RepaveVerified")] });
    expect(said(machine, other, "Provisioned")).toBeUndefined();
    expect(said(machine, other, "Provisioned", believed)).toBe("false HostKeyChanged");
    const taken = machineWith({ ...pinned, conditions: [condition("Provisioned", false, "HostKeyChanged")] });
    expect(said(taken, sighting(), "Provisioned")).toBe("true HostKeyProven");
  });

  test("an installation that was begun and not proven stays known, until the system from before is seen to be there still", () => {
    const begun = { conditions: [condition("Provisioned", false, "InstallationNotProven")] };
    const isSaidOf = (machine: Machine, seconds: number) =>
      said(machine, sighting({ ssh: seen({ hostKey: OLD_KEY }, later(seconds)) }), "Provisioned");
    const machine = machineWith({ ...pinned, ...begun });
    expect(isSaidOf(machine, 30)).toBeUndefined(); // it may be about to restart into the installer
    expect(isSaidOf(machine, 90)).toBe("true HostKeyProven");
    expect(isSaidOf(machineWith({ facts: { sshHostKeySeen: OLD_KEY }, ...begun }), 90)).toBeUndefined();
    expect(said(machine, other, "Provisioned", believed)).toBeUndefined();
    expect(isSaidOf(machineWith({ phase: "FACTORY_READY", ...begun }), 90)).toBeUndefined();
    expect(isSaidOf(machineWith({ phase: "RMA", ...begun }), 90)).toBe("false InRma");
  });

  test("back from the vendor, or on the way there, it has no system of ours", () => {
    const conditions = [condition("Provisioned", true)];
    expect(said(machineWith({ phase: "FACTORY_READY", conditions }), sighting(), "Provisioned")).toBe(
      "false FactorySystem",
    );
    expect(said(machineWith({ phase: "RMA", conditions }), sighting(), "Provisioned")).toBe("false InRma");
  });

  test("an answer of the right machine alone proves no installation", () => {
    const machine = machineWith({ ...pinned, conditions: [condition("Provisioned", false, "FactorySystem")] });
    expect(said(machine, sighting(), "Provisioned")).toBeUndefined();
  });
});

describe("NeedsIntervention", () => {
  const wrong = sighting({ bmc: seen({ ...WELL, serial: "S2" }) });

  test("a BMC that answers for another serial is named with both", () => {
    const { observed, mayBeInspected } = interpretSighting(machineWith({ phase: "FACTORY_READY" }), wrong, {});
    const raised = observed.find(({ type }) => type === "NeedsIntervention");
    expect(raised).toMatchObject({ status: true, reason: "WrongSerial" });
    expect(raised?.message).toMatch(/serial S2\b.*serial S1\b/);
    expect(mayBeInspected).toBe(false);
  });

  test("a system UUID that is told in the other byte order is the same machine's, as over IPMI what was read over Redfish", () => {
    const machine = machineWith({ facts: { systemUuid: "0e9b0c3e-6a1c-4b53-9d1e-0a5f6d1c2b3a" } });
    const answers = (systemUuid: string) => sighting({ bmc: seen({ ...WELL, serial: null, systemUuid }) });
    const turned = answers("3e0c9b0e-1c6a-534b-9d1e-0a5f6d1c2b3a");
    expect(said(machine, turned, "NeedsIntervention")).toBe("false NothingFound");
    const other = answers("ffffffff-6a1c-4b53-9d1e-0a5f6d1c2b3a");
    expect(said(machine, other, "NeedsIntervention")).toBe("true WrongIdentity");
  });

  test("what was raised by a pass ends when the very thing is right again, and not before", () => {
    const machine = machineWith({ conditions: [condition("NeedsIntervention", true, "WrongSerial")] });
    expect(said(machine, sighting({ bmc: missed() }), "NeedsIntervention")).toBeUndefined();
    expect(said(machine, sighting(), "NeedsIntervention")).toBe("false IdentityMatches");
    const key = machineWith({ conditions: [condition("NeedsIntervention", true, "HostKeyChanged")] });
    expect(said(key, sighting({ ssh: missed() }), "NeedsIntervention")).toBeUndefined();
    expect(said(key, sighting(), "NeedsIntervention")).toBe("false HostKeyMatches");
  });

  test("a failed run's call for somebody is neither ended nor overwritten", () => {
    const machine = machineWith({ conditions: [condition("NeedsIntervention", true, "RunFailed")] });
    expect(said(machine, sighting(), "NeedsIntervention")).toBeUndefined();
    expect(said(machine, wrong, "NeedsIntervention")).toBeUndefined();
  });

  test("while a run works on it, what is the run's to prove is left to it", () => {
    const machine = machineWith({ activeRunId: "run-1", facts: { sshHostKey: "ssh-ed25519 AAAAother" } });
    const { observed } = interpretSighting(machine, wrong, { Reachable: 1 });
    expect(observed.map(({ type }) => type)).not.toContain("NeedsIntervention");
    expect(observed.map(({ type }) => type)).not.toContain("Provisioned");
  });
});

const seenOf = <T>(what: fc.Arbitrary<T>): fc.Arbitrary<Seen<T>> =>
  fc.oneof(
    what.map((each) => seen(each)),
    fc.constant(missed()),
    fc.constant<Seen<T>>({ is: "nowhere", reason: "NoEndpoint", message: "" }),
    fc.constant<Seen<T>>({ is: "unknown" }),
  );
const anySighting: fc.Arbitrary<Sighting> = fc.record({
  ssh: seenOf(fc.record({ hostKey: fc.constantFrom(OLD_KEY, "ssh-ed25519 AAAAnew") })),
  bmc: seenOf(
    fc.record({
      serial: fc.constantFrom("S1", "S2", null),
      systemUuid: fc.constantFrom("u-1", "u-2", null),
      power: fc.constantFrom("on" as const, "off" as const),
      health: fc.constantFrom("ok" as const, "warning" as const, "critical" as const, "unknown" as const),
      ailments: fc.constantFrom([], [{ name: "Fan", health: "warning" as const }]),
    }),
  ),
  node: seenOf(
    fc.record({
      cluster: fc.constant("c1"),
      node: fc.option(fc.record({ ...constants(NODE), ready: fc.boolean(), unschedulable: fc.boolean() }), {
        nil: null,
      }),
      workloads: fc.constantFrom(null, [], ["d/p"]),
    }),
  ),
  alerts: fc.constantFrom([], ["probe: Leak: wet"]),
});
function constants<T extends object>(value: T): { [K in keyof T]: fc.Arbitrary<T[K]> } {
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fc.constant(each)])) as never;
}
const anyMachine = fc
  .record({
    phase: fc.constantFrom(...MACHINE_PHASES),
    activeRunId: fc.constantFrom(null, "run-1"),
    sshHostKey: fc.constantFrom(null, OLD_KEY),
    conditions: fc.uniqueArray(
      fc.record({
        type: fc.constantFrom(...CONDITION_TYPES),
        status: fc.boolean(),
        reason: fc.constantFrom("Known", "RunFailed", "WrongSerial", "HostKeyChanged"),
      }),
      { selector: ({ type }) => type },
    ),
  })
  .map(({ sshHostKey, conditions, ...given }) =>
    machineWith({
      ...given,
      facts: { sshHostKey },
      conditions: conditions.map(({ type, status, reason }) => condition(type, status, reason)),
    }),
  );

describe("whatever is seen", () => {
  test("the same sighting again changes nothing more, once it is believed", () => {
    fc.assert(
      fc.property(anyMachine, anySighting, (machine, what) => {
        let misses: Misses = {};
        let { conditions } = machine;
        for (let look = 0; look < MISSES_TO_BELIEVE + 1; look += 1) {
          const verdict = interpretSighting({ ...machine, conditions }, what, misses);
          conditions = observe(conditions, verdict.observed, later(30));
          misses = verdict.misses;
        }
        const again = interpretSighting({ ...machine, conditions }, what, misses);
        expect(observe(conditions, again.observed, later(90))).toBe(conditions);
        expect(again.misses).toEqual(misses);
      }),
    );
  });

  test("each condition is spoken of at most once, and a run's own are left alone while it is active", () => {
    fc.assert(
      fc.property(anyMachine, anySighting, (machine, what) => {
        const types = interpretSighting(machine, what, {}).observed.map(({ type }) => type);
        expect(new Set(types).size).toBe(types.length);
        if (machine.activeRunId !== null) expect(types).not.toContain("Provisioned");
      }),
    );
  });

  test("one pass that fails on all sides flips nothing that was true", () => {
    fc.assert(
      fc.property(anyMachine, (machine) => {
        const nothing: Sighting = { ssh: missed(), bmc: missed(), node: { is: "unknown" }, alerts: [] };
        const after = observe(machine.conditions, interpretSighting(machine, nothing, {}).observed, later(30));
        for (const { type, status } of machine.conditions) {
          if (type === "Provisioned" && ["FACTORY_READY", "RMA"].includes(machine.state.name)) continue;
          expect(after.find((each) => each.type === type)?.status).toBe(status);
        }
      }),
    );
  });
});
