import type { CommandCall } from "./commands.ts";
import { waitUntil } from "./shell-session.ts";

/** Simulated milliseconds. */
const INSTALL_MS = 20_000;
const KUBERNETES = new Set(["kubelet", "kubeadm", "kubectl"]);

/** Packages of Kubernetes can be had in any version of it; all others are there already. */
export async function aptGet({ args, io, session }: CommandCall): Promise<number> {
  const [verb = "", ...packages] = args.filter((arg) => !arg.startsWith("-"));
  if (verb === "update") io.out("Reading package lists...\n");
  if (verb !== "install") return 0;
  const versions = packages.map((each) => each.split(/=(.*)/s) as [string, string?]);
  const unknown = versions.find(
    ([name, version]) => KUBERNETES.has(name) && version !== undefined && kubernetesVersion(version) === undefined,
  );
  if (unknown !== undefined) {
    io.error(`E: Version '${unknown[1] ?? ""}' for '${unknown[0]}' was not found\n`);
    return 100;
  }
  const { clock } = session.surroundings;
  await waitUntil(clock, clock.now() + INSTALL_MS, session.signal);
  for (const [name, version = ""] of versions) {
    const wanted = kubernetesVersion(version);
    io.out(`Setting up ${name}${version === "" ? "" : ` (${version.replace("*", "1.1")})`} ...\n`);
    if (name === "kubelet" && wanted !== undefined) session.machine.installKubelet(wanted);
  }
  return 0;
}

const kubernetesVersion = (asked: string): string | undefined => {
  const version = /^(1\.\d{1,3}\.\d{1,3})(?:-.*)?$/.exec(asked)?.[1];
  return version === undefined ? undefined : `v${version}`;
};

export function aptMark({ args: [verb = "", ...packages], io }: CommandCall): number {
  const said = { hold: "set on hold.", unhold: "no longer on hold." }[verb];
  if (said === undefined) return 1;
  for (const each of packages) io.out(`${each} ${said}\n`);
  return 0;
}

export function kubelet({ args, io, session: { machine } }: CommandCall): number {
  if (!args.includes("--version")) {
    io.error("the kubelet is started by systemd here\n");
    return 1;
  }
  io.out(`Kubernetes ${machine.state.os?.kubeletVersion ?? "v0.0.0"}\n`);
  return 0;
}
