import type { CommandCall } from "./commands.ts";
import { waitUntil } from "./shell-session.ts";

const VALUE_FLAGS = new Set([
  "--token",
  "--discovery-token",
  "--tls-bootstrap-token",
  "--discovery-token-ca-cert-hash",
  "--node-name",
  "--cri-socket",
  "--ignore-preflight-errors",
  "-v",
]);

export function kubeadm(call: CommandCall): number | Promise<number> {
  const { args, io, session } = call;
  switch (args[0]) {
    case "join":
      return join(call);
    case "reset":
      session.machine.leaveCluster();
      io.out("[reset] The node was reset.\n");
      return 0;
    case "upgrade":
      if (args[1] !== "node") break;
      if (session.machine.state.kubelet === null) return failed(io, "[ERROR]: this machine is no node of a cluster");
      io.out("[upgrade] The configuration for this node was successfully updated!\n");
      return 0;
    case "version":
      io.out(`${session.machine.state.os?.kubeletVersion ?? "v0.0.0"}\n`);
      return 0;
  }
  io.error(`Error: unknown command "${args.slice(0, 2).join(" ")}" for "kubeadm"\n`);
  return 1;
}

async function join({ args, io, session }: CommandCall): Promise<number> {
  const { machine, surroundings } = session;
  const { endpoint, token, caCertHashes, unsafe } = readFlags(args.slice(1));
  const { kubelet, joining } = machine.state;
  io.out("[preflight] Running pre-flight checks\n");
  if (kubelet !== null)
    return failed(
      io,
      "[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists",
    );
  if (joining !== null) return failed(io, "[ERROR Port-10250]: Port 10250 is in use");
  const verdict = surroundings.judgeJoin({ endpoint, token, caCertHashes, unsafe });
  if ("refused" in verdict) {
    io.error(`error execution phase preflight: ${verdict.refused}\n`);
    return 1;
  }
  const dueAt = machine.beginJoin(verdict.cluster, surroundings.joinFails(machine.spec.id));
  io.out(
    "[kubelet-start] Starting the kubelet\n[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap\n",
  );
  await waitUntil(surroundings.clock, dueAt, session.signal);
  if (machine.state.kubelet?.cluster !== verdict.cluster) {
    io.error("error execution phase kubelet-start: timed out waiting for the condition\n");
    return 1;
  }
  io.out(
    "This node has joined the cluster:\n* Certificate signing request was sent to apiserver and a response was received.\n",
  );
  return 0;
}

function failed(io: CommandCall["io"], what: string): number {
  io.error(`error execution phase preflight: [preflight] Some fatal errors occurred:\n\t${what}\n`);
  return 1;
}

function readFlags(args: readonly string[]) {
  const values = new Map<string, string[]>();
  const positional: string[] = [];
  let unsafe = false;
  for (let index = 0; index < args.length; index += 1) {
    const [flag = "", joined] = (args[index] ?? "").split(/=(.*)/s);
    if (flag === "--discovery-token-unsafe-skip-ca-verification") unsafe = true;
    else if (VALUE_FLAGS.has(flag)) {
      const value = joined ?? args[index + 1] ?? "";
      if (joined === undefined) index += 1;
      values.set(flag, [...(values.get(flag) ?? []), value]);
    } else if (!flag.startsWith("-")) positional.push(flag);
  }
  return {
    endpoint: positional[0] ?? "",
    token: (values.get("--token") ?? values.get("--discovery-token") ?? [])[0] ?? "",
    caCertHashes: values.get("--discovery-token-ca-cert-hash") ?? [],
    unsafe,
  };
}
