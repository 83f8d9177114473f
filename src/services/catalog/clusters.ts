import {
  type ClusterRow,
  clusterTable,
  findUserOfCluster,
  insertCluster,
  removeCluster,
} from "../../store/catalog/clusters.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import type { Page } from "../call/paging.ts";
import { type Catalog, createEntry, deleteEntry, pageEntries, refusal } from "./entries.ts";

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

export interface CreateCluster {
  readonly name: string;
  readonly apiUrl: string;
  readonly kubeconfig: string;
}

export async function createCluster(deps: ServiceDeps, caller: Caller, input: CreateCluster): Promise<ClusterRow> {
  const name = checkName(input.name);
  const apiUrl = checkUrl(input.apiUrl);
  const { kubeconfig } = input;
  if (kubeconfig.trim() === "" || kubeconfig.length > LONGEST_KUBECONFIG) {
    throw refusal("kubeconfig", `is required, with at most ${LONGEST_KUBECONFIG} characters`);
  }
  return createEntry(deps, caller, CLUSTERS, {
    name,
    insert: (tx) => insertCluster(tx, deps.secrets, { name, apiUrl, kubeconfig, createdBy: actorOf(caller) }),
    data: { api_url: apiUrl },
  });
}

/** In the order of their names. */
export const pageClusters = (
  deps: ServiceDeps,
  request: { readonly pageSize: number; readonly pageToken: string },
): Promise<Page<ClusterRow>> => pageEntries(deps, CLUSTERS, request);

export const deleteCluster = async (deps: ServiceDeps, caller: Caller, name: string): Promise<void> =>
  deleteEntry(deps, caller, CLUSTERS, checkName(name));

function checkName(text: string): string {
  if (NAME.test(text)) return text;
  throw refusal("name", `${JSON.stringify(text.slice(0, 80))} is not a cluster name (a-z, 0-9, - and .)`);
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  if (url && isHttp && url.username === "" && url.password === "") return text;
  throw refusal("api_url", "must be an http or https URL without credentials, such as https://10.0.0.1:6443");
}
