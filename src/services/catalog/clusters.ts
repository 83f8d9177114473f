import { AppError } from "../../kernel/errors.ts";
import {
  type ClusterRow,
  findUserOfCluster,
  holdClusterAlone,
  insertCluster,
  listClusters,
  removeCluster,
} from "../../store/catalog/clusters.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "../call/paging.ts";
import { audit } from "./audit.ts";

export type { ClusterRow } from "../../store/catalog/clusters.ts";

const KIND = "cluster";
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
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: name }]);
    const isNew = await insertCluster(tx, deps.secrets, { name, apiUrl, kubeconfig, createdBy: actorOf(caller) });
    if (!isNew) {
      throw new AppError("already_exists", `name: a cluster ${name} exists already`, {
        field: "name",
        next: "millwright cluster list",
      });
    }
    await audit(tx, caller, { kind: KIND, id: name, type: "created", data: { api_url: apiUrl } });
    const [row] = await listClusters(tx, { names: [name] });
    if (!row) throw new Error(`cluster ${name} was written and is not there`);
    return row;
  });
}

/** In the order of their names. */
export async function pageClusters(
  deps: ServiceDeps,
  request: { readonly pageSize: number; readonly pageToken: string },
): Promise<Page<ClusterRow>> {
  const size = checkPageSize(request.pageSize);
  const after = parsePageToken(deps.secrets, request.pageToken, { of: "clusters" }, 1)?.[0];
  const rows = await listClusters(deps.db, { after, limit: size + 1 });
  return cutPage(deps.secrets, rows, size, { of: "clusters" }, ({ name }) => [name]);
}

export async function deleteCluster(deps: ServiceDeps, caller: Caller, text: string): Promise<void> {
  const name = checkName(text);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: name }]);
    // A run that is being started holds the cluster: only after it is there can we tell that nobody needs it.
    if (!(await holdClusterAlone(tx, name))) {
      throw new AppError("not_found", `cluster ${name} does not exist`, {
        field: "name",
        next: "millwright cluster list",
      });
    }
    const user = await findUserOfCluster(tx, name);
    if (user) {
      throw new AppError("failed_precondition", `${user.kind} ${user.id} refers to cluster ${name}, so it stays`, {
        field: "name",
        next: `millwright ${user.kind} show ${user.id}`,
      });
    }
    await removeCluster(tx, deps.secrets, name);
    await audit(tx, caller, { kind: KIND, id: name, type: "deleted", data: {} });
  });
}

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

const refusal = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });
