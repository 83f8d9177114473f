import { hash, X509Certificate } from "node:crypto";
import { type Certificate, createCertificate } from "../certificate/certificate.ts";
import type { Machine } from "../devices/machine.ts";
import type { SeededValues } from "../seeded-values.ts";
import type { JoinVerdict } from "../shell/shell-session.ts";
import type { SimulatedClock } from "../simulated-clock.ts";
import { seededUuid } from "../site/fields.ts";
import type { StateJournal } from "../state-journal.ts";
import { bootstrapTokenProblem, type Secret } from "./bootstrap-token.ts";
import { ClusterObjects, type UserRecord } from "./cluster-objects.ts";
import { isHeard, type NodeRecord, readInfo } from "./node-record.ts";
import { type PodRecord, podKey, podsOf, workOf } from "./pods.ts";

export interface ClusterSurroundings {
  readonly machines: ReadonlyMap<string, Machine>;
  readonly journal: StateJournal;
  readonly seeded: SeededValues;
  readonly clock: SimulatedClock;
}

/** How long the pods of an eviction take to go. Simulated milliseconds. */
const POD_GRACE_MS = 5_000;

/** A Kubernetes cluster: the nodes that machines have become, what runs on them, and who may join. */
export class Cluster {
  readonly name: string;
  /** For its API, and signed by itself: what it hands out as its authority. */
  readonly certificate: Certificate;
  readonly token: string;
  readonly objects: ClusterObjects;
  /** Requests for certificates. A restart forgets them, as an API server does after an hour. */
  readonly requests = new Map<string, object>();
  /** What was listed before this version cannot be paged on. */
  compactedAt = 0;
  readonly #around: ClusterSurroundings;
  readonly #versions = new Map<string, { digest: string; version: number }>();
  #version: number;

  constructor(name: string, around: ClusterSurroundings) {
    this.name = name;
    this.#around = around;
    this.objects = new ClusterObjects(around.journal, name);
    this.token = around.seeded.hex(`cluster/${name}/token`, 40);
    this.certificate = this.#loadCertificate();
    // Larger than any that was given out before the process was restarted.
    this.#version = around.clock.realNow();
  }

  /** As `kubeadm` wants it: the hash of the authority's public key. */
  get caCertHash(): string {
    const key = new X509Certificate(this.certificate.cert).publicKey.export({ type: "spki", format: "der" });
    return `sha256:${hash("sha256", key)}`;
  }

  /** All nodes, as they are now. */
  nodes(): readonly NodeRecord[] {
    this.#registerNewNodes();
    return this.#records()
      .filter(({ deleted }) => !deleted)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  node(name: string): NodeRecord | undefined {
    return this.nodes().find((record) => record.name === name);
  }

  saveNode(record: NodeRecord): void {
    this.#around.journal.put(this.#nodeKey(record.name), record);
  }

  /** The kubelet does not register again by itself: the node comes back with its next start. */
  deleteNode(record: NodeRecord): void {
    this.saveNode({ ...record, deleted: true });
  }

  /** A kubelet from outside registers its own node; false when there is one of that name. */
  register(
    node: Pick<NodeRecord, "name" | "labels" | "info"> & { reported: NonNullable<NodeRecord["reported"]> },
  ): boolean {
    if (this.node(node.name) !== undefined) return false;
    const { seeded, clock } = this.#around;
    const createdAt = clock.realNow();
    this.saveNode({
      uid: seededUuid(seeded, `node/${this.name}/${node.name}/${createdAt}`),
      createdAt,
      registration: "outside",
      deleted: false,
      unschedulable: false,
      annotations: {},
      taints: [],
      evicted: {},
      ...node,
    });
    return true;
  }

  machineOf({ name }: NodeRecord): Machine | undefined {
    return this.#around.machines.get(name);
  }

  /** Since when the kubelet has been silent, in simulated milliseconds; undefined while it is heard. */
  silentFor(record: NodeRecord): number | undefined {
    if (record.reported?.ready === true) return undefined;
    const machine = this.machineOf(record);
    if (machine === undefined) return Number.POSITIVE_INFINITY;
    return isHeard(machine, this.name) ? undefined : this.#around.clock.now() - machine.state.kubeletSilentSince;
  }

  pods(): readonly PodRecord[] {
    const now = this.#around.clock.now();
    const placed = Map.groupBy(this.objects.pods(), ({ node }) => node);
    return this.nodes().flatMap((node) =>
      podsOf(node, placed.get(node.name)).filter(
        ({ goneAt, finalizers }) => goneAt === null || goneAt > now || finalizers.length > 0,
      ),
    );
  }

  tokenFor(user: string): string {
    return this.#around.seeded.hex(`cluster/${this.name}/user/${user}`, 40);
  }

  users(): readonly UserRecord[] {
    return this.objects.users();
  }

  /** As an API server does every few minutes with what has changed since. */
  compact(): void {
    this.#version += 1;
    this.compactedAt = this.#version;
  }

  evict(pod: PodRecord): void {
    const node = this.node(pod.node);
    // A static pod is started again by its kubelet before anybody sees that it was gone.
    if (node === undefined || pod.goneAt !== null || pod.isMirror) return;
    const evicted = { ...node.evicted, [podKey(pod)]: this.#around.clock.now() + POD_GRACE_MS };
    this.saveNode({ ...node, evicted });
  }

  /** A node that takes pods again gets some. */
  setSchedulable(record: NodeRecord, schedulable: boolean): NodeRecord {
    const evicted = schedulable && record.unschedulable ? {} : record.evicted;
    const changed = { ...record, unschedulable: !schedulable, evicted };
    this.saveNode(changed);
    return changed;
  }

  secret(namespace: string, name: string): Secret | undefined {
    return this.#around.journal.get(this.#secretKey(namespace, name)) as Secret | undefined;
  }

  secrets(namespace: string): readonly Secret[] {
    const { journal } = this.#around;
    return journal.keys(this.#secretKey(namespace, "")).map((key) => journal.get(key) as Secret);
  }

  saveSecret(secret: Secret): void {
    this.#around.journal.put(this.#secretKey(secret.metadata.namespace, secret.metadata.name), secret);
  }

  deleteSecret(namespace: string, name: string): void {
    this.#around.journal.delete(this.#secretKey(namespace, name));
  }

  /** What the control plane says to somebody who wants to join with this token and these hashes. */
  judge(request: { token: string; caCertHashes: readonly string[]; unsafe: boolean }): JoinVerdict {
    if (!request.unsafe && !request.caCertHashes.includes(this.caCertHash))
      return { refused: "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys are pinned" };
    const problem = this.#problemOf(request.token);
    return problem === undefined ? { cluster: this.name } : { refused: problem };
  }

  /** Whether this bootstrap token lets a kubelet in now. */
  admits(token: string): boolean {
    return this.#problemOf(token) === undefined;
  }

  #problemOf(token: string): string | undefined {
    const [id = "", secret = ""] = token.split(".");
    const kept = this.secret("kube-system", `bootstrap-token-${id}`);
    return bootstrapTokenProblem(kept, secret, this.#around.clock.realNow());
  }

  /** Goes up whenever what is shown under this name differs from what was shown before. */
  versionOf(name: string, content: string): number {
    const digest = hash("sha256", content);
    const before = this.#versions.get(name);
    if (before?.digest === digest) return before.version;
    this.#version += 1;
    this.#versions.set(name, { digest, version: this.#version });
    return this.#version;
  }

  get version(): number {
    return this.#version;
  }

  #registerNewNodes(): void {
    for (const machine of this.#around.machines.values()) {
      if (machine.state.kubelet?.cluster !== this.name) continue;
      const registration = registrationOf(machine);
      const record = this.#around.journal.get(this.#nodeKey(machine.spec.id)) as NodeRecord | undefined;
      if (record?.registration === registration) continue;
      if (record !== undefined && !record.deleted)
        this.saveNode(this.#startedAnew(record, registration, readInfo(machine)));
      else if (record === undefined || isHeard(machine, this.name))
        this.saveNode(this.#freshNode(machine, registration));
    }
  }

  /** What ran there is started again, unless the node was emptied and takes nothing. */
  #startedAnew(record: NodeRecord, registration: string, info: NodeRecord["info"]): NodeRecord {
    const anew = { ...record, registration, info, evicted: {} };
    const isEmpty = workOf(record).every(({ goneAt }) => goneAt !== null);
    if (!record.unschedulable || !isEmpty) return anew;
    const now = this.#around.clock.now();
    return { ...anew, evicted: Object.fromEntries(workOf(anew).map((pod) => [podKey(pod), now])) };
  }

  #freshNode(machine: Machine, registration: string): NodeRecord {
    return {
      name: machine.spec.id,
      uid: seededUuid(this.#around.seeded, `node/${this.name}/${machine.spec.id}/${registration}`),
      createdAt: this.#around.clock.realNow(),
      registration,
      deleted: false,
      unschedulable: false,
      labels: {},
      annotations: {},
      taints: [],
      evicted: {},
      info: readInfo(machine),
    };
  }

  #records(): NodeRecord[] {
    const { journal } = this.#around;
    return journal.keys(`node/${this.name}/`).map((key) => journal.get(key) as NodeRecord);
  }

  #loadCertificate(): Certificate {
    const { journal, clock } = this.#around;
    const key = `cluster/${this.name}/certificate`;
    const before = journal.get(key) as Certificate | undefined;
    if (before !== undefined) return before;
    const addresses = ["127.0.0.1"];
    const made = createCertificate({ addresses, now: new Date(clock.realNow()), commonName: "kubernetes" });
    journal.put(key, made);
    return made;
  }

  #nodeKey(node: string): string {
    return `node/${this.name}/${node}`;
  }

  #secretKey(namespace: string, name: string): string {
    return `secret/${this.name}/${namespace}/${name}`;
  }
}

/** Another one whenever a kubelet starts anew: with each boot, join and installation. */
const registrationOf = ({ state: { effects, os } }: Machine): string =>
  `${os?.number ?? 0}-${effects.joins}-${effects.boots}-${effects.kubelet_restarts}`;
