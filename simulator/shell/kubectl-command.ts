import type { CommandCall } from "./commands.ts";
import { fillJsonPath, JsonPathProblem } from "./json-path.ts";
import { readFileOf } from "./machine-files.ts";
import { type ClusterAccess, type NodeSeen, type PodSeen, waitUntil } from "./shell-session.ts";

const VALUE_FLAGS = new Set([
  "--kubeconfig",
  "-o",
  "--output",
  "--timeout",
  "--grace-period",
  "-n",
  "--namespace",
  "--field-selector",
  "--type",
  "-p",
  "--patch",
]);
const KUBELET_CONF = "/etc/kubernetes/kubelet.conf";
/** Simulated milliseconds. */
const LOOK_AGAIN_MS = 1_000;

interface AskedCluster extends CommandCall {
  readonly cluster: ClusterAccess;
  readonly flags: ReadonlyMap<string, string>;
}
interface Asked extends AskedCluster {
  readonly node: NodeSeen;
}

/** As much of `kubectl` as takes a node out of scheduling, empties it, gives it back and tells of it and its pods. */
export async function kubectl(call: CommandCall): Promise<number> {
  const { args, io } = call;
  const { flags, words } = readFlags(args);
  const [verb = "", ...names] = words;
  if (verb === "version") {
    io.out(`Client Version: ${call.session.machine.state.os?.kubeletVersion ?? ""}\n`);
    return 0;
  }
  const cluster = clusterOf(call, flags);
  if (typeof cluster === "string") return failed(io, cluster);
  if (verb === "get" && PODS.has(names[0] ?? "")) return getPods({ ...call, cluster, flags });
  const isNamedByKind = verb === "get" || verb === "patch";
  const name = nodeNameIn(isNamedByKind ? names.slice(1) : names, isNamedByKind ? (names[0] ?? "") : "");
  const node = cluster.node(name);
  if (node === undefined) return failed(io, `Error from server (NotFound): nodes "${name}" not found`);
  const asked = { ...call, cluster, flags, node };
  switch (verb) {
    case "cordon":
      return setSchedulable(asked, false);
    case "uncordon":
      return setSchedulable(asked, true);
    case "drain":
      return drain(asked);
    case "get":
      return get(asked);
    case "patch":
      return patch(asked);
    default:
      return failed(io, `error: unknown command "${verb}" for "kubectl"`);
  }
}

const PODS: ReadonlySet<string> = new Set(["pods", "pod", "po"]);

const nodeNameIn = ([first = ""]: readonly string[], kind: string): string =>
  kind.includes("/") ? (kind.split("/")[1] ?? "") : first.replace(/^nodes?\//, "");

function failed(io: CommandCall["io"], why: string): number {
  io.error(`${why}\n`);
  return 1;
}

/** The cluster that the given file leads to, or why none. */
function clusterOf(call: CommandCall, flags: ReadonlyMap<string, string>): ClusterAccess | string {
  const { session } = call;
  const path = kubeconfigOf(call, flags);
  const text = readFileOf(session.machine, path);
  if (text === undefined) return `error: stat ${path}: no such file or directory`;
  if (path === KUBELET_CONF && session.user !== "root") return `error: open ${path}: permission denied`;
  const name = path === KUBELET_CONF ? session.machine.state.kubelet?.cluster : /^\s*- name: (\S+)/m.exec(text)?.[1];
  const cluster = name === undefined ? undefined : session.surroundings.cluster(name);
  return cluster ?? `The connection to the server was refused - did you specify the right host or port?`;
}

const kubeconfigOf = ({ env }: CommandCall, flags: ReadonlyMap<string, string>): string =>
  flags.get("--kubeconfig") ?? env.KUBECONFIG ?? "/root/.kube/config";

function setSchedulable({ io, cluster, node }: Asked, schedulable: boolean): number {
  const word = schedulable ? "uncordoned" : "cordoned";
  if (node.unschedulable !== schedulable) io.out(`node/${node.name} already ${word}\n`);
  else {
    cluster.setSchedulable(node.name, schedulable);
    io.out(`node/${node.name} ${word}\n`);
  }
  return 0;
}

/** A kubelet may evict pods of its node, and may not read the daemon sets that kubectl asks about before. */
async function drain(asked: Asked): Promise<number> {
  const { args, io, cluster, flags, node, session } = asked;
  setSchedulable(asked, false);
  const podsOnNode = () => cluster.pods(`spec.nodeName=${node.name}`);
  const pods = podsOnNode();
  const daemons = pods.filter(({ isDaemon }) => isDaemon).map(({ namespace, name }) => `${namespace}/${name}`);
  const forbidden = kubeconfigOf(asked, flags) === KUBELET_CONF ? pods.find(({ isDaemon }) => isDaemon) : undefined;
  if (forbidden !== undefined)
    return failed(
      io,
      `error: unable to drain node "${node.name}" due to error: daemonsets.apps is forbidden: User "system:node:${node.name}" cannot get resource "daemonsets" in API group "apps" in the namespace "${forbidden.namespace}"`,
    );
  if (daemons.length > 0 && !args.includes("--ignore-daemonsets"))
    return failed(
      io,
      `error: cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): ${daemons.join(", ")}`,
    );
  if (daemons.length > 0) io.error(`Warning: ignoring DaemonSet-managed Pods: ${daemons.join(", ")}\n`);
  const isAsked = (flag: string) => flags.has(flag) && flags.get(flag) !== "false";
  const spared = sparedBy(pods, isAsked);
  if (spared.length > 0)
    return failed(io, `error: unable to drain node "${node.name}" due to error: [${spared.join(", ")}]`);
  const leaves = (pod: PodSeen) => !pod.isDaemon && !pod.isMirror;
  const evictAll = () => {
    for (const pod of podsOnNode().filter(leaves)) {
      io.out(`evicting pod ${pod.namespace}/${pod.name}\n`);
      if (!cluster.evict(pod))
        io.error(`error when evicting pods/"${pod.name}" -n "${pod.namespace}" (will retry after 5s)\n`);
    }
  };
  evictAll();
  const { clock } = session.surroundings;
  const seconds = Number.parseInt(flags.get("--timeout") ?? "0", 10);
  const deadline = seconds > 0 ? clock.now() + seconds * 1_000 : Number.POSITIVE_INFINITY;
  while (podsOnNode().some(leaves)) {
    if (clock.now() > deadline) return failed(io, `error: unable to drain node "${node.name}": global timeout reached`);
    evictAll();
    await waitUntil(clock, clock.now() + LOOK_AGAIN_MS, session.signal);
  }
  io.out(`node/${node.name} drained\n`);
  return 0;
}

/** What kubectl does not move without being asked to, as it says so. */
function sparedBy(pods: readonly PodSeen[], isAsked: (flag: string) => boolean): string[] {
  const named = (some: readonly PodSeen[]) => some.map(({ namespace, name }) => `${namespace}/${name}`).join(", ");
  const living = pods.filter((pod) => !pod.isDaemon && !pod.isMirror && !pod.isOver);
  const bare = isAsked("--force") ? [] : living.filter(({ isBare }) => isBare);
  const local = isAsked("--delete-emptydir-data") ? [] : living.filter(({ hasLocalData }) => hasLocalData);
  return [
    ...(local.length === 0
      ? []
      : [`cannot delete Pods with local storage (use --delete-emptydir-data to override): ${named(local)}`]),
    ...(bare.length === 0
      ? []
      : [`cannot delete Pods that declare no controller (use --force to override): ${named(bare)}`]),
  ];
}

/** Of JSON merge patches alone, which scripts write. */
function patch({ io, cluster, flags, node }: Asked): number {
  if (flags.get("--type") !== "merge") return failed(io, "error: only --type merge is known here");
  const text = flags.get("--patch") ?? flags.get("-p") ?? "";
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return failed(io, `error: unable to parse "${text}": it is no JSON`);
  }
  if (!cluster.patchNode(node.name, body)) return failed(io, `The request is invalid: the patch does not leave a node`);
  io.out(`node/${node.name} patched\n`);
  return 0;
}

function get({ io, flags, node }: Asked): number {
  const status = `${node.ready ? "Ready" : "NotReady"}${node.unschedulable ? ",SchedulingDisabled" : ""}`;
  return show(io, flags, {
    object: node.object,
    names: [`node/${node.name}`],
    table: `NAME STATUS VERSION\n${node.name} ${status} ${node.kubeletVersion}\n`,
  });
}

function getPods({ args, io, cluster, flags }: AskedCluster): number {
  const isEverywhere = args.includes("--all-namespaces") || args.includes("-A");
  const namespace = flags.get("-n") ?? flags.get("--namespace") ?? "default";
  const pods = cluster
    .pods(flags.get("--field-selector") ?? "")
    .filter((pod) => isEverywhere || pod.namespace === namespace);
  const rows = pods.map((pod) => `${isEverywhere ? `${pod.namespace} ` : ""}${pod.name} Running\n`);
  return show(io, flags, {
    object: { apiVersion: "v1", kind: "List", items: pods.map(({ object }) => object) },
    names: pods.map(({ name }) => `pod/${name}`),
    table: `${isEverywhere ? "NAMESPACE " : ""}NAME STATUS\n${rows.join("")}`,
  });
}

interface Shown {
  readonly object: unknown;
  readonly names: readonly string[];
  readonly table: string;
}

function show(io: CommandCall["io"], flags: ReadonlyMap<string, string>, { object, names, table }: Shown): number {
  const output = flags.get("-o") ?? flags.get("--output") ?? "";
  const [kind, template = ""] = output.split(/=(.*)/s);
  if (kind === "json") io.out(`${JSON.stringify(object, null, 2)}\n`);
  else if (kind === "name") for (const name of names) io.out(`${name}\n`);
  else if (kind === "jsonpath") {
    try {
      io.out(fillJsonPath(template, object));
    } catch (error) {
      if (!(error instanceof JsonPathProblem)) throw error;
      return failed(io, `error: error parsing jsonpath ${template}, ${error.message}`);
    }
  } else io.out(table);
  return 0;
}

function readFlags(args: readonly string[]): { flags: Map<string, string>; words: string[] } {
  const flags = new Map<string, string>();
  const words: string[] = [];
  for (let index = 0; index < args.length; index += 1) {
    const [flag = "", joined] = (args[index] ?? "").split(/=(.*)/s);
    if (!flag.startsWith("-")) words.push(args[index] ?? "");
    else if (joined !== undefined) flags.set(flag, joined);
    else if (VALUE_FLAGS.has(flag)) flags.set(flag, args[++index] ?? "");
    else flags.set(flag, "");
  }
  return { flags, words };
}
