import type { StateJournal } from "../state-journal.ts";
import type { AccessRule } from "./access-rules.ts";

export interface UserRecord {
  readonly name: string;
  /** Null: signs in with a certificate alone. */
  readonly token: string | null;
  readonly rules: readonly AccessRule[];
}

/** A pod that somebody put on a node by hand, beside those that run on every node. */
export interface PlacedPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** Null: a bare pod, which nothing starts again. */
  readonly owner: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly phase: "Running" | "Succeeded" | "Failed";
  /** A static pod of the kubelet: evicting it changes nothing. */
  readonly isMirror: boolean;
  /** An emptyDir volume. */
  readonly hasLocalData: boolean;
  /** What must be done before it goes, by whoever named it here. */
  readonly finalizers: readonly string[];
}

export interface Budget {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly minAvailable: number;
}

const NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"] as const;

/** What people have put into a cluster, which outlives a crash of the simulator. */
export class ClusterObjects {
  readonly #journal: StateJournal;
  readonly #prefix: string;

  constructor(journal: StateJournal, cluster: string) {
    this.#journal = journal;
    this.#prefix = `in-cluster/${cluster}/`;
  }

  #all<T>(kind: string): readonly T[] {
    return this.#journal.keys(`${this.#prefix}${kind}/`).map((key) => this.#journal.get(key) as T);
  }
  #put(kind: string, key: string, value: unknown): void {
    this.#journal.put(`${this.#prefix}${kind}/${key}`, value);
  }

  users(): readonly UserRecord[] {
    return this.#all("user");
  }
  putUser(user: UserRecord): void {
    this.#put("user", user.name, user);
  }

  pods(): readonly PlacedPod[] {
    return this.#all("pod");
  }
  putPod(pod: PlacedPod): void {
    this.#put("pod", `${pod.namespace}/${pod.name}`, pod);
  }

  budgets(): readonly Budget[] {
    return this.#all("budget");
  }
  putBudget(budget: Budget): void {
    this.#put("budget", `${budget.namespace}/${budget.name}`, budget);
  }
  deleteBudget(namespace: string, name: string): void {
    this.#journal.delete(`${this.#prefix}budget/${namespace}/${name}`);
  }

  namespaces(): readonly string[] {
    return [...new Set([...NAMESPACES, ...this.pods().map(({ namespace }) => namespace)])];
  }
  isTerminating(namespace: string): boolean {
    return this.#journal.get(`${this.#prefix}terminating/${namespace}`) === true;
  }
  setTerminating(namespace: string, isTerminating: boolean): void {
    this.#put("terminating", namespace, isTerminating);
  }
}
