import { fingerprintOf } from "../../capabilities/host-key.ts";
import type { ListedNode } from "../../capabilities/node-list.ts";
import { isSameUuid } from "../../capabilities/system-uuid.ts";
import type { MachineVitals } from "../../capabilities/vitals.ts";
import type { Cause } from "../../kernel/causes.ts";
import { type Machine, sshAddressOf } from "./machine.ts";

/** What came of one try to see something. */
export type Seen<T> =
  /** `at`: not later than the moment for which it is true. */
  | { readonly is: "seen"; readonly what: T; readonly at: Date }
  /** It should have answered, and did not, or not as it must. */
  | { readonly is: "missed"; readonly reason: string; readonly message: string; readonly cause?: Cause }
  /** There is nothing to check. */
  | { readonly is: "nowhere"; readonly reason: string; readonly message: string; readonly cause?: Cause }
  /** Whoever would know was not to be asked. That says nothing about the machine: what is known of it stays. */
  | { readonly is: "unknown" };

export interface NodeDoubt {
  readonly reason: "SeveralNodes" | "NodeContradicts";
  readonly message: string;
}

/** The machine's place in its cluster. */
export interface NodeSighting {
  readonly cluster: string;
  /** Null: the cluster has no node of which it is certain that it is this machine. */
  readonly node: ListedNode | null;
  /** Why that is not certain: whether it may be disrupted cannot be told then. Absent: it is. */
  readonly doubt?: NodeDoubt;
  /** What a drain would still have to move; null when nobody asked. */
  readonly workloads: readonly string[] | null;
}

/** All that one check of a machine saw. */
export interface Sighting {
  readonly ssh: Seen<{ readonly hostKey: string }>;
  readonly bmc: Seen<MachineVitals>;
  readonly node: Seen<NodeSighting>;
  /** Open alerts of those who watch over the machine, each in a few words. */
  readonly alerts: readonly string[];
}

export interface PinnedKey {
  /** As in known_hosts, or its fingerprint. */
  readonly key: string;
  /** Who says so. */
  readonly from: "installation" | "spec" | "first_seen";
}

/**
 * The key that the machine must show: the one that its own installation proved, else the one that its owner gave, else the one
 * that was seen first. Null until there is any.
 */
export function pinnedKeyOf({ facts, spec }: Pick<Machine, "facts" | "spec">): PinnedKey | null {
  const given = spec.ssh?.hostKey ?? null;
  if (facts.sshHostKey) return { key: facts.sshHostKey, from: "installation" };
  if (given !== null) return { key: given, from: "spec" };
  return facts.sshHostKeySeen ? { key: facts.sshHostKeySeen, from: "first_seen" } : null;
}

const BY: Readonly<Record<PinnedKey["from"], string>> = {
  installation: "as its installation proved it",
  spec: "by its owner",
  first_seen: "as the one seen first",
};

/** What is wrong with a machine that shows another key, and what puts it right; the fingerprints are for people to compare. */
export function describeWrongKey(machine: Pick<Machine, "id" | "spec" | "facts">, pinned: PinnedKey, shown: string) {
  const fingerprint = fingerprintOf(shown);
  // The same text again would change nothing: then the key itself is given.
  const accept = machine.spec.ssh?.hostKey === fingerprint ? `'${shown}'` : fingerprint;
  const message =
    `SSH ${sshAddressOf(machine) ?? ""} shows host key ${fingerprint}, but ${fingerprintOf(pinned.key)} is pinned ${BY[pinned.from]}: ` +
    "either the machine was reinstalled, or another host answers at its address. Check the key at the machine, then accept it: " +
    `millwright machine update ${machine.id} --ssh-host-key ${accept}`;
  const facts = { at: "ssh", shown: fingerprint, expected: fingerprintOf(pinned.key), accept } as const;
  return { message, cause: { code: "host_key_changed", facts } satisfies Cause };
}

/** By whom the BMC answers for, if that contradicts what is on record. */
export interface Contradiction {
  readonly reason: "WrongSerial" | "WrongIdentity";
  readonly message: string;
  readonly cause: Cause;
}

const otherMachine = (expected: string, shown: string): Cause => ({
  code: "wrong_identity",
  facts: { at: "bmc", expected, shown },
});

/**
 * Whether the BMC is another machine's. The serial number that the owner gave counts first; where there is none to compare, the
 * system UUID that was read before.
 */
export function contradictionOf(
  { id, spec, facts }: Pick<Machine, "id" | "spec" | "facts">,
  { serial, systemUuid }: Pick<MachineVitals, "serial" | "systemUuid">,
): Contradiction | undefined {
  const expected = spec.serial ?? facts.serial;
  if (expected !== null && serial !== null) {
    if (expected.toLowerCase() === serial.toLowerCase()) return undefined;
    const message = `the BMC answers for serial ${serial}, but machine ${id} has serial ${expected}: check which machine is behind its BMC endpoint`;
    return { reason: "WrongSerial", message, cause: otherMachine(expected, serial) };
  }
  if (facts.systemUuid === null || systemUuid === null || isSameUuid(facts.systemUuid, systemUuid)) return undefined;
  const message = `the BMC answers for system UUID ${systemUuid}, but machine ${id} had ${facts.systemUuid}: check which machine is behind its BMC endpoint`;
  return { reason: "WrongIdentity", message, cause: otherMachine(facts.systemUuid, systemUuid) };
}

/**
 * A node object outlives the system that registered it. One that is silent and tells of another boot than the last that was
 * proven is what an earlier system left behind.
 */
export const isLeftOver = (node: ListedNode, { facts }: Pick<Machine, "facts">): boolean =>
  !node.ready && node.bootId !== null && facts.bootId !== null && node.bootId !== facts.bootId;
