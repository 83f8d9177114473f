import { createHash, randomBytes } from "node:crypto";
import type { CallContext } from "../../capabilities/call.ts";
import type { Cluster, ClusterNode, NodeIdentity } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { stopped } from "../transport/bmc-lane.ts";
import type { FakeMachine } from "./fake-machine.ts";
import { endpointOfCluster, FAKE_TOKEN, fakeCluster } from "./fake-places.ts";
import type { FakeWorld } from "./fake-world.ts";

const QUICK = seconds(1);
/** A node's name says whose it is. */
const nodeNameOf = ({ id }: FakeMachine): string => `fake-${id}`;

/** Clusters that fake machines join: each is there as soon as it is named. */
export function createFakeCluster(world: FakeWorld): Cluster {
  async function open(target: ClusterTarget, call: CallContext): Promise<void> {
    call.mayTouchDevice(QUICK);
    await Promise.resolve();
    if (call.signal.aborted) throw stopped(`fake cluster ${target.name}`, call.signal);
    if (target.apiUrl !== fakeCluster(target.name).apiUrl)
      throw new DeviceFailure("unreachable", "cluster", `no fake cluster answers at ${target.apiUrl}`);
    if (!("token" in target.credentials) || target.credentials.token !== FAKE_TOKEN)
      throw new DeviceFailure(
        "credentials_rejected",
        "cluster",
        `fake cluster ${target.name} does not accept the given credentials`,
      );
  }

  const memberOf = ({ name }: ClusterTarget, machine: FakeMachine | undefined): FakeMachine | undefined =>
    machine?.joined?.cluster === name && machine.now >= machine.joined.at ? machine : undefined;

  function find(target: ClusterTarget, { systemUuid, serial, addresses }: NodeIdentity) {
    const candidates = [
      ["system_uuid", systemUuid === null ? undefined : world.byUuid(systemUuid)],
      ["serial", serial?.startsWith("FAKE-") ? world.machine(serial.slice("FAKE-".length)) : undefined],
      ...addresses.map((address) => ["address", world.machine(address)] as const),
    ] as const;
    for (const [matchedBy, machine] of candidates) {
      const member = memberOf(target, machine);
      if (member !== undefined) return { member, matchedBy };
    }
    return undefined;
  }

  const named = (target: ClusterTarget, nodeName: string): FakeMachine | undefined =>
    memberOf(target, nodeName.startsWith("fake-") ? world.machine(nodeName.slice("fake-".length)) : undefined);

  return {
    async mintJoin(target, { id, lifetime }, call) {
      await open(target, call);
      await world.wait("mint_join", call);
      return {
        endpoint: endpointOfCluster(target.name),
        token: `${id}.${randomBytes(8).toString("hex")}`,
        caCertHash: `sha256:${createHash("sha256").update(target.name).digest("hex")}`,
        expiresAt: new Date(world.clock.now().getTime() + lifetime),
      };
    },
    async findNode(target, identity, call) {
      await open(target, call);
      const found = find(target, identity);
      return found && nodeOf(world, found.member, found.matchedBy);
    },
    async setSchedulable(target, nodeName, schedulable, call) {
      await open(target, call);
      const member = named(target, nodeName);
      if (member) member.unschedulable = !schedulable;
    },
    async revokeJoin(target, _tokenId, call) {
      await open(target, call);
    },
    async drain(target, _nodeName, call) {
      await open(target, call);
      return { remaining: [], refused: [] };
    },
  };
}

function nodeOf(world: FakeWorld, machine: FakeMachine, matchedBy: ClusterNode["matchedBy"]): ClusterNode {
  const { bootId, joined, systemUuid, unschedulable } = machine;
  const reason = world.fails("verify")
    ? "[verify] this fake provider was set to fail at verify"
    : bootId === undefined
      ? "the fake machine is down"
      : machine.now < (joined?.at ?? 0) + world.takes.verify
        ? "the kubelet has just started"
        : "";
  return {
    name: nodeNameOf(machine),
    uid: joined?.uid ?? "",
    ready: reason === "",
    reason,
    unschedulable,
    systemUuid,
    bootId: bootId ?? null,
    kubeletVersion: null,
    matchedBy,
  };
}
