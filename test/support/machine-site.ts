import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import type { BmcTarget } from "../../src/capabilities/bmc-target.ts";
import type { ClusterTarget } from "../../src/capabilities/cluster-target.ts";
import type { SshTarget } from "../../src/capabilities/ssh-target.ts";
import { milliseconds } from "../../src/kernel/time/duration.ts";
import { targetOfKubeconfig } from "../../src/providers/kubernetes/kubeconfig.ts";
import { createKubernetesProvider } from "../../src/providers/kubernetes/kubernetes-provider.ts";
import { createRedfishMachineProvider } from "../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createSshProvider } from "../../src/providers/ssh/ssh-provider.ts";
import { createBmcGateway } from "../../src/providers/transport/bmc-gateway.ts";
import type { Image } from "../../src/runs/model/targets.ts";
import { Runbooks } from "../../src/runs/steps/scripts/runbooks.ts";

export interface SimulatedMachine {
  readonly machine_id: string;
  readonly serial: string;
  readonly system_uuid: string;
  readonly mac_addresses: readonly string[];
  readonly bmc_endpoint: string;
  readonly bmc_username: string;
  readonly bmc_password: string;
  readonly ssh_endpoint: string;
  readonly ssh_username: string;
  readonly ssh_password: string;
  readonly ssh_private_key: string;
  readonly jump?: { readonly endpoint: string; readonly username: string; readonly private_key: string };
}

/** The truth about a machine, from its person at the rack. */
export interface MachineTruth {
  readonly power: string;
  readonly locator_lit: boolean;
  readonly boot_override: { readonly enabled: string; readonly target: string };
  readonly media: string | null;
  /** The addresses of its system, by the settings that are in force. */
  readonly answers_at: readonly string[];
  readonly os: {
    readonly up: boolean;
    readonly doing: string;
    readonly boot_id: string | null;
    readonly host_key: string;
  };
  readonly kubernetes: { readonly cluster: string | null };
  readonly effects: Readonly<Record<string, number>>;
}

/** Simulated machines on loopback, and the providers that reach them. */
export interface MachineSite {
  readonly simulator: Simulator;
  readonly machines: readonly SimulatedMachine[];
  readonly images: readonly Image[];
  readonly clusters: readonly ClusterTarget[];
  readonly runbooks: Runbooks;
  readonly can: ReturnType<typeof createRedfishMachineProvider>["can"] &
    ReturnType<typeof createSshProvider>["can"] &
    ReturnType<typeof createKubernetesProvider>["can"];
  bmc(machine: SimulatedMachine): BmcTarget;
  ssh(machine: SimulatedMachine, hostKey: string | null): SshTarget;
  truth(id: string): Promise<MachineTruth>;
  control<T = unknown>(method: string, path: string, body?: unknown): Promise<T>;
  stop(): Promise<void>;
}

export async function startMachineSite(options: {
  readonly speed: number;
  readonly site?: string;
}): Promise<MachineSite> {
  const dataDir = await mkdtemp(join(tmpdir(), "millwright-machines-"));
  const simulator = await startSimulator({ dataDir, seed: 7, speed: options.speed, site: options.site ?? "racks=1" });
  const control = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(new URL(path, simulator.controlUrl), {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
  const redfish = createRedfishMachineProvider({ gateway });
  const sshProvider = createSshProvider();
  const kubernetes = createKubernetesProvider();
  const bastion = await control<{ endpoint: string; username: string; host_key: string }>("GET", "/bastion");
  const images = await control<readonly { ref: string; digest: string; served_at: string }[]>("GET", "/images");
  const clusters = await control<readonly { name: string; kubeconfig: string }[]>("GET", "/clusters");
  return {
    simulator,
    control,
    machines: await control("GET", "/inventory/machines"),
    images: images.map(({ ref, digest, served_at }) => ({ ref, digest, location: served_at })),
    clusters: clusters.map(({ name, kubeconfig }) => targetOfKubeconfig(name, kubeconfig)),
    runbooks: new Runbooks(await readRunbooks()),
    can: { ...redfish.can, ...sshProvider.can, ...kubernetes.can },
    bmc: (machine) => ({
      ...endpointOf(machine.bmc_endpoint),
      scheme: "https",
      username: machine.bmc_username,
      password: machine.bmc_password,
      trust: { mode: "pin" },
    }),
    ssh: (machine, hostKey) => ({
      ...endpointOf(machine.ssh_endpoint),
      username: machine.ssh_username,
      credentials: { privateKey: machine.ssh_private_key },
      hostKey,
      jumpHosts:
        machine.jump === undefined
          ? []
          : [{ ...endpointOf(bastion.endpoint), username: bastion.username, hostKey: bastion.host_key }],
    }),
    truth: (id) => control("GET", `/devices/${id}`),
    async stop() {
      sshProvider.close();
      kubernetes.close();
      await redfish.close();
      gateway.close();
      await simulator.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** The shipped scripts. */
export async function readRunbooks(): Promise<Readonly<Record<string, string>>> {
  const folder = join(import.meta.dirname, "../../runbooks");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sh"));
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")] as const)),
  );
}

function endpointOf(text: string): { readonly address: string; readonly port: number; readonly path?: string } {
  const [, address = "", port = "", path = ""] = /^([^:]*):(\d+)(\/.*)?$/.exec(text) ?? [];
  return { address, port: Number(port), ...(path !== "" && { path }) };
}
