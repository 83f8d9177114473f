import {
  type Cluster,
  ClusterSchema,
  ClusterService,
  type Image,
  ImageSchema,
  ImageService,
} from "../../../../contract/millwright/v1/cluster_pb.js";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printLine, printList } from "../../terminal/printing.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import type { ListOptions } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";

interface KubeconfigOptions {
  readonly kubeconfig: string;
  readonly skipProbe?: boolean;
}
export interface CreateClusterOptions extends KubeconfigOptions {
  readonly apiUrl?: string;
}
export interface UpdateClusterOptions extends KubeconfigOptions {
  readonly otherCluster?: boolean;
}

export interface CreateImageOptions {
  readonly kind: string;
  readonly location: string;
  readonly digest: string;
  readonly successProof: string;
  readonly seed?: string;
  readonly seedOn?: string;
}

const clusterColumns: readonly Column<Cluster>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "API", cell: ({ apiUrl }) => apiUrl },
  { title: "CREATED", cell: (row) => clockTime(row.createdAt), plain: (row) => isoTime(row.createdAt) },
];

const imageColumns: readonly Column<Image>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "KIND", cell: ({ kind }) => kind },
  { title: "PROOF", cell: ({ successProof }) => successProof },
  { title: "SEED", cell: ({ seed, seedOn }) => (seedOn === "" ? seed : `${seed} (${seedOn})`) },
  { title: "CREATED", cell: (row) => clockTime(row.createdAt), plain: (row) => isoTime(row.createdAt) },
  { title: "LOCATION", cell: ({ location }) => location },
  { title: "DIGEST", cell: ({ digest }) => digest },
];

export async function listClusters(session: Session, options: ListOptions): Promise<undefined> {
  const client = await session.client(ClusterService);
  const items = await readList(
    session,
    options,
    (query) => client.listClusters(query, { signal: session.signal }),
    ({ clusters }) => clusters,
  );
  const json = (cluster: Cluster) => jsonOf(ClusterSchema, cluster);
  await printList(session, { items, columns: clusterColumns, json }, "No clusters.");
}

export async function createCluster(session: Session, name: string, options: CreateClusterOptions): Promise<undefined> {
  const { apiUrl = "", skipProbe = false } = options;
  const request = { name, apiUrl, skipProbe, kubeconfig: await readKubeconfig(session, options) };
  const client = await session.client(ClusterService);
  const { warnings } = await client.createCluster(request, { signal: session.signal });
  for (const warning of warnings) printLine(session.terminal.stderr, `warning: ${warning}`);
  await printDone(session, `Cluster ${name} created.`, { name, warnings });
}

export async function updateCluster(session: Session, name: string, options: UpdateClusterOptions): Promise<undefined> {
  const { skipProbe = false, otherCluster = false } = options;
  const request = { name, skipProbe, otherCluster, kubeconfig: await readKubeconfig(session, options) };
  const client = await session.client(ClusterService);
  const { warnings } = await client.updateCluster(request, { signal: session.signal });
  for (const warning of warnings) printLine(session.terminal.stderr, `warning: ${warning}`);
  await printDone(session, `Cluster ${name} has the new kubeconfig.`, { name, warnings });
}

async function readKubeconfig(session: Session, { kubeconfig: file }: KubeconfigOptions): Promise<string> {
  const kubeconfig = file === "-" ? await session.terminal.stdin.readAll() : readTextFile(file);
  if (kubeconfig === undefined) throw new UsageError(`--kubeconfig: ${file} does not exist`);
  return kubeconfig;
}

export async function deleteCluster(session: Session, name: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete cluster ${name} and its kubeconfig?` });
  const client = await session.client(ClusterService);
  await client.deleteCluster({ name }, { signal: session.signal });
  await printDone(session, `Cluster ${name} deleted.`, { name });
}

export async function listImages(session: Session, options: ListOptions): Promise<undefined> {
  const client = await session.client(ImageService);
  const items = await readList(
    session,
    options,
    (query) => client.listImages(query, { signal: session.signal }),
    ({ images }) => images,
  );
  const json = (image: Image) => jsonOf(ImageSchema, image);
  await printList(session, { items, columns: imageColumns, json }, "No images.");
}

export async function createImage(session: Session, name: string, options: CreateImageOptions): Promise<undefined> {
  const { kind, location, digest, successProof, seed = "", seedOn = "" } = options;
  const client = await session.client(ImageService);
  const image = { name, kind, location, digest, successProof, seed, seedOn };
  await client.createImage(image, { signal: session.signal });
  await printDone(session, `Image ${name} created.`, { name });
}

export async function deleteImage(session: Session, name: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete image ${name}?` });
  const client = await session.client(ImageService);
  await client.deleteImage({ name }, { signal: session.signal });
  await printDone(session, `Image ${name} deleted.`, { name });
}
