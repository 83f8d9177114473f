import type { CommandCall } from "./commands.ts";
import { readFileOf } from "./machine-files.ts";
import { type ClusterAccess, type NodeSeen, waitUntil } from "./shell-session.ts";

const VALUE_FLAGS = new Set(["--kubeconfig", "-o", "--output", "--timeout", "--grace-period", "-n", "--namespace"]);
const KUBELET_CONF = "/etc/kubernetes/kubelet.conf";
/** Simulated milliseconds. */
const LOOK_AGAIN_MS = 1_000;

interface Asked extends CommandCall {
  readonly cluster: ClusterAccess;
  readonly flags: ReadonlyMap<string, string>;
  readonly node: NodeSeen;
}

/** As much of `kubectl` as takes a node out of scheduling, empties it, gives it back and tells of it. */
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
  const name = nodeNameIn(verb === "get" ? names.slice(1) : names, verb === "get" ? (names[0] ?? "") : "");
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
    default:
      return failed(io, `error: unknown command "${verb}" for "kubectl"`);
  }
}

const nodeNameIn = ([first = ""]: readonly string[], kind: string): string =>
  kind.includes("/") ? (kind.split("/")[1] ?? "") : first.replace(/^nodes?\//, "");

function failed(io: CommandCall["io"], why: string): number {
  io.error(`${why}\n`);
  return 1;
}

/** The cluster that the given file leads to, or why none. */
function clusterOf({ env, session }: CommandCall, flags: ReadonlyMap<string, string>): ClusterAccess | string {
  const path = flags.get("--kubeconfig") ?? env.KUBECONFIG ?? "/root/.kube/config";
  const text = readFileOf(session.machine, path);
  if (text === undefined) return `error: stat ${path}: no such file or directory`;
  const name = path === KUBELET_CONF ? session.machine.state.kubelet?.cluster : /^\s*- name: (\S+)/m.exec(text)?.[1];
  const cluster = name === undefined ? undefined : session.surroundings.cluster(name);
  return cluster ?? `The connection to the server was refused - did you specify the right host or port?`;
}

function setSchedulable({ io, cluster, node }: Asked, schedulable: boolean): number {
  const word = schedulable ? "uncordoned" : "cordoned";
  if (node.unschedulable !== schedulable) io.out(`node/${node.name} already ${word}\n`);
  else {
    cluster.setSchedulable(node.name, schedulable);
    io.out(`node/${node.name} ${word}\n`);
  }
  return 0;
}

async function drain(asked: Asked): Promise<number> {
  const { args, io, cluster, flags, node, session } = asked;
  setSchedulable(asked, false);
  const pods = cluster.podsOn(node.name);
  const daemons = pods.filter(({ isDaemon }) => isDaemon).map(({ namespace, name }) => `${namespace}/${name}`);
  if (daemons.length > 0 && !args.includes("--ignore-daemonsets"))
    return failed(
      io,
      `error: cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): ${daemons.join(", ")}`,
    );
  if (daemons.length > 0) io.error(`Warning: ignoring DaemonSet-managed Pods: ${daemons.join(", ")}\n`);
  const work = pods.filter(({ isDaemon }) => !isDaemon);
  for (const pod of work) {
    io.out(`evicting pod ${pod.namespace}/${pod.name}\n`);
    cluster.evict(pod);
  }
  const { clock } = session.surroundings;
  const seconds = Number.parseInt(flags.get("--timeout") ?? "0", 10);
  const deadline = seconds > 0 ? clock.now() + seconds * 1_000 : Number.POSITIVE_INFINITY;
  while (cluster.podsOn(node.name).some(({ isDaemon }) => !isDaemon)) {
    if (clock.now() > deadline) return failed(io, `error: unable to drain node "${node.name}": global timeout reached`);
    await waitUntil(clock, clock.now() + LOOK_AGAIN_MS, session.signal);
  }
  io.out(`node/${node.name} drained\n`);
  return 0;
}

function get({ io, flags, node }: Asked): number {
  const output = flags.get("-o") ?? flags.get("--output") ?? "";
  const object = {
    metadata: { name: node.name },
    spec: node.unschedulable ? { unschedulable: true } : {},
    status: { nodeInfo: { kubeletVersion: node.kubeletVersion } },
  };
  const path = /^jsonpath=\{\.([\w.]+)\}$/.exec(output)?.[1];
  if (path !== undefined) io.out(valueAt(object, path));
  else if (output === "json") io.out(`${JSON.stringify(object, null, 2)}\n`);
  else if (output === "name") io.out(`node/${node.name}\n`);
  else {
    const status = `${node.ready ? "Ready" : "NotReady"}${node.unschedulable ? ",SchedulingDisabled" : ""}`;
    io.out(`NAME STATUS VERSION\n${node.name} ${status} ${node.kubeletVersion}\n`);
  }
  return 0;
}

function valueAt(object: unknown, path: string): string {
  let value: unknown = object;
  for (const key of path.split("."))
    value =
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Readonly<Record<string, unknown>>)[key]
        : undefined;
  return value === undefined ? "" : String(value);
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
