import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { AppError } from "../../kernel/errors.ts";
import {
  type ClusterRow,
  clusterTable,
  findUserOfCluster,
  getKubeconfigs,
  insertCluster,
  listMachinesOfCluster,
  removeCluster,
  replaceKubeconfig,
} from "../../store/catalog/clusters.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { givenSecret } from "../call/given-secret.ts";
import { actorOf } from "../call/initiator.ts";
import type { ListPage, ListRequest } from "../call/listing.ts";
import { judgeCluster, nameRights } from "./cluster-gate.ts";
import { type Catalog, changeEntry, createEntry, deleteEntry, pageEntries, refusal } from "./entries.ts";

export type { ClusterRow } from "../../store/catalog/clusters.ts";

const CLUSTERS: Catalog<ClusterRow> = {
  kind: "cluster",
  called: "a cluster",
  table: clusterTable,
  async findUser(tx, name) {
    const user = await findUserOfCluster(tx, name);
    return user && { does: `${user.kind} ${user.id} refers to`, next: `millwright ${user.kind} show ${user.id}` };
  },
  remove: ({ secrets }, tx, name) => removeCluster(tx, secrets, name),
};

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
const LONGEST_KUBECONFIG = 256 * 1_024;

interface GivenKubeconfig {
  readonly name: string;
  readonly kubeconfig: string;
  /** Records it untried: its API does not answer yet. */
  readonly skipProbe?: boolean;
}

export interface CreateCluster extends GivenKubeconfig {
  /** Empty, or what the kubeconfig says as well. */
  readonly apiUrl: string;
}

export interface UpdateCluster extends GivenKubeconfig {
  /** Accepts another server without the same certificate authority: the cluster was set up again. */
  readonly otherCluster: boolean;
}

export interface RecordedCluster {
  readonly cluster: ClusterRow;
  /** For people: what the kubeconfig's user may not do. */
  readonly warnings: readonly string[];
}

export async function createCluster(deps: ServiceDeps, caller: Caller, input: CreateCluster): Promise<RecordedCluster> {
  const name = checkName(input.name);
  const { value, stored: kubeconfig } = await givenSecret(deps, caller, input.kubeconfig, "kubeconfig");
  const target = readKubeconfig(deps, name, value);
  const apiUrl = checkUrl(input.apiUrl, target);
  const warnings = await probe(deps, target, input);
  const cluster = await createEntry(deps, caller, CLUSTERS, {
    name,
    insert: (tx) => insertCluster(tx, deps.secrets, { name, apiUrl, kubeconfig, createdBy: actorOf(caller) }),
    data: { api_url: apiUrl },
  });
  return { cluster, warnings };
}

/**
 * Gives a cluster another kubeconfig, whole: no part of the one before is kept, so that nobody can have a secret that is on record
 * sent to another place.
 */
export async function updateCluster(deps: ServiceDeps, caller: Caller, input: UpdateCluster): Promise<RecordedCluster> {
  const name = checkName(input.name);
  const { value, stored: kubeconfig } = await givenSecret(deps, caller, input.kubeconfig, "kubeconfig");
  const target = readKubeconfig(deps, name, value);
  const warnings = await probe(deps, target, input);
  // One that is kept elsewhere is read now, and remembered: not while the cluster is locked.
  if (target && !input.otherCluster) await getKubeconfigs(deps.db, deps.secrets, [name]);
  const cluster = await changeEntry(deps, caller, CLUSTERS, {
    name,
    async change(tx, before) {
      if (target && !input.otherCluster) await checkSameCluster(deps, tx, target);
      const apiUrl = target?.apiUrl ?? before.apiUrl;
      await replaceKubeconfig(tx, deps.secrets, { name, apiUrl, kubeconfig });
      // What the cluster did not let happen is tried again at once.
      const machines = await listMachinesOfCluster(tx, name);
      await work.wake(
        tx,
        machines.map((id) => ({ kind: "machine", id })),
      );
      return { api_url: apiUrl, ...(apiUrl !== before.apiUrl && { from_api_url: before.apiUrl }) };
    },
  });
  return { cluster, warnings };
}

export const pageClusters = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<ClusterRow>> =>
  pageEntries(deps, CLUSTERS, request);

export const deleteCluster = async (deps: ServiceDeps, caller: Caller, name: string): Promise<void> =>
  deleteEntry(deps, caller, CLUSTERS, checkName(name));

function checkName(text: string): string {
  if (NAME.test(text)) return text;
  throw refusal("name", `${JSON.stringify(text.slice(0, 80))} is not a cluster name (a-z, 0-9, - and .)`);
}

/** Undefined where this server calls no clusters. */
function readKubeconfig({ clusterGate }: ServiceDeps, name: string, kubeconfig: string) {
  if (kubeconfig.trim() === "" || kubeconfig.length > LONGEST_KUBECONFIG)
    throw refusal("kubeconfig", `is required, with at most ${LONGEST_KUBECONFIG} characters`);
  return clusterGate?.read(name, kubeconfig);
}

/** Where nodes are found is what the kubeconfig says; who says something else as well means another cluster. */
function checkUrl(text: string, target: ClusterTarget | undefined): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  const isPlain = url && isHttp && url.username === "" && url.password === "";
  if (!isPlain && (text !== "" || target === undefined))
    throw refusal("api_url", "must be an http or https URL without credentials, such as https://10.0.0.1:6443");
  if (target === undefined) return text;
  if (url && url.href.replace(/\/+$/, "") !== target.apiUrl)
    throw refusal("api_url", `is not the server of the kubeconfig, ${target.apiUrl}; leave it out`);
  return target.apiUrl;
}

async function probe(
  { clusterGate }: ServiceDeps,
  target: ClusterTarget | undefined,
  { name, skipProbe = false }: GivenKubeconfig,
): Promise<string[]> {
  if (clusterGate === undefined || target === undefined || skipProbe) return [];
  const verdict = await judgeCluster(() => clusterGate.probe(target));
  if (verdict.is === "open")
    return verdict.missing.length === 0
      ? []
      : [`the user of the kubeconfig of cluster ${name} may not: ${nameRights(verdict.missing)}`];
  const next = verdict.is === "silent" ? "; --skip-probe records it all the same" : "";
  throw new AppError("failed_precondition", `kubeconfig: ${verdict.message}${next}`, { field: "kubeconfig" });
}

/**
 * A kubeconfig of another cluster would have machines that serve counted as in none, and so as drained. An authority may be renewed
 * and a server may move, but hardly both at once.
 */
async function checkSameCluster(deps: ServiceDeps, tx: Transaction, target: ClusterTarget): Promise<void> {
  const { name } = target;
  const before = (await getKubeconfigs(tx, deps.secrets, [name])).get(name);
  const known = typeof before === "string" ? readIfPossible(deps, name, before) : undefined;
  if (known === undefined || known.apiUrl === target.apiUrl) return;
  // Two kubeconfigs without an authority have none in common.
  if (known.ca !== null && known.ca === target.ca) return;
  throw new AppError(
    "failed_precondition",
    `kubeconfig: names another server (${target.apiUrl}, and not ${known.apiUrl}) and not the same authority: it may be of another ` +
      "cluster, in which no machine would be found; --other-cluster takes it all the same",
    { field: "kubeconfig" },
  );
}

/** What was recorded by an older server may not be taken any more; nothing can be compared with it then. */
function readIfPossible({ clusterGate }: ServiceDeps, name: string, kubeconfig: string): ClusterTarget | undefined {
  try {
    return clusterGate?.read(name, kubeconfig);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
