import type { Machine } from "../devices/machine.ts";
import type { SimulatedClock } from "../simulated-clock.ts";

/** The result of somebody else's check of a `kubeadm join`: the cluster that it leads to, or why not. */
export type JoinVerdict = { readonly cluster: string } | { readonly refused: string };

/** What commands on a machine reach beyond it. */
export interface ShellSurroundings {
  readonly clock: SimulatedClock;
  judgeJoin(request: {
    endpoint: string;
    token: string;
    caCertHashes: readonly string[];
    unsafe: boolean;
  }): JoinVerdict;
  /** Asked once for each join, when it starts. */
  joinFails(machine: string): boolean;
  /** Whether this address answers to somebody on a machine. */
  reaches(address: string): boolean;
  /** The cluster of this name, as somebody who may do anything in it sees it. */
  cluster(name: string): ClusterAccess | undefined;
}

export interface NodeSeen {
  readonly name: string;
  readonly ready: boolean;
  readonly unschedulable: boolean;
  readonly kubeletVersion: string;
  /** As the API shows it. */
  readonly object: unknown;
}

export interface PodSeen {
  readonly namespace: string;
  readonly name: string;
  readonly isDaemon: boolean;
  readonly isBare: boolean;
  readonly isMirror: boolean;
  readonly hasLocalData: boolean;
  /** Succeeded or Failed. */
  readonly isOver: boolean;
  /** As the API shows it. */
  readonly object: unknown;
}

/** What `kubectl` does for scripts. */
export interface ClusterAccess {
  node(name: string): NodeSeen | undefined;
  setSchedulable(node: string, schedulable: boolean): void;
  /** A merge patch; false when it does not fit. */
  patchNode(node: string, patch: unknown): boolean;
  /** Those that are there now, also those on their way out. */
  pods(fieldSelector: string): readonly PodSeen[];
  /** False where the cluster refuses it now. */
  evict(pod: PodSeen): boolean;
}

/** One sign-in: where its commands run, who runs them, and how long anybody waits for them. */
export interface ShellSession {
  readonly machine: Machine;
  readonly user: string;
  readonly surroundings: ShellSurroundings;
  /** Aborted when the connection is gone; in the background, when the process was ended. */
  readonly signal: AbortSignal;
  /** Of the process in the background that it runs in. */
  readonly pid?: number;
}

export interface CommandIo {
  /** Asked for by what reads it alone: a client may leave its end of the input open for ever. */
  stdin(): Promise<string>;
  out(text: string): void;
  error(text: string): void;
}

/** How often a wait looks at the clock again, since the speed of the simulation may be changed meanwhile. Real time. */
const LOOK_AGAIN_MS = 200;

/** Waits for a simulated moment. */
export async function waitUntil(clock: SimulatedClock, dueAt: number, signal: AbortSignal): Promise<void> {
  for (let left = dueAt - clock.now(); left > 0; left = dueAt - clock.now()) {
    signal.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.min(LOOK_AGAIN_MS, Math.ceil(left / clock.speed)));
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    clearTimeout(timer);
  }
  signal.throwIfAborted();
}

export const inputOf = (text: string) => (): Promise<string> => Promise.resolve(text);
