import type { Machine } from "../devices/machine.ts";
import { machineIdOf } from "../shell/machine-files.ts";

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** What a kubelet tells of its machine when it starts. */
export interface NodeInfo {
  readonly bootID: string;
  readonly machineID: string;
  readonly systemUUID: string;
  readonly kubeletVersion: string;
}

/** What the cluster remembers of a node; the rest follows from the machine. */
export interface NodeRecord {
  readonly name: string;
  readonly uid: string;
  /** Real time in milliseconds. */
  readonly createdAt: number;
  readonly registration: string;
  readonly deleted: boolean;
  readonly unschedulable: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Pods that were evicted, by namespace and name, and when they are gone in simulated time. */
  readonly evicted: Readonly<Record<string, number>>;
  readonly info: NodeInfo;
  /** Of a node that is no machine of this site: its own kubelet registered it and says how it is. */
  readonly reported?: { readonly ready: boolean; readonly addresses: readonly NodeAddress[] };
}

export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

export const readInfo = (machine: Machine): NodeInfo => ({
  bootID: machine.state.bootId ?? "",
  machineID: machineIdOf(machine),
  systemUUID: machine.spec.systemUuid,
  kubeletVersion: machine.state.os?.kubeletVersion ?? "",
});

/** Whether the machine's kubelet reports to this cluster at this moment. */
export const isHeard = ({ state: { life, kubelet } }: Machine, cluster: string): boolean =>
  life.is === "running" && kubelet?.cluster === cluster && kubelet.active;
