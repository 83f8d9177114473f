import { createServer } from "node:net";
import type { BootSource } from "../../../src/capabilities/boot-device.ts";
import type { ClusterBench } from "../../../src/capabilities/conformance/cluster.ts";
import { aCall, type DeviceTrouble, type FaultyBench } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MachineBench } from "../../../src/capabilities/conformance/machine-bench.ts";
import type { NodeListBench } from "../../../src/capabilities/conformance/node-list.ts";
import type { ExecBench } from "../../../src/capabilities/conformance/remote-exec.ts";
import type { Provider } from "../../../src/capabilities/provider.ts";
import type { FaultProxy } from "../../support/counterparts/fault-proxy.ts";
import type { MachineSite, MachineTruth, SimulatedMachine } from "../../support/machine-site.ts";

const FAULTS = {
  cuts_connections: { type: "drop" },
  hangs: { type: "hang" },
  is_overloaded: { type: "status", status: 503 },
  writes_garbage: { type: "garbage" },
  rejects_credentials: { type: "wrong_credentials" },
  lies_about_accepting: { type: "lie_accept" },
  talks_nonsense: { type: "status", status: 200, body: { message: "It works!" } },
  forbids: { type: "status", status: 403 },
} as const satisfies Partial<Record<DeviceTrouble, object>>;

/** There is nothing beside its word by which a machine that lies about its power could be found out. */
export const MACHINE_TROUBLES = Object.keys(FAULTS) as DeviceTrouble[];

const SOURCES: Readonly<Record<string, BootSource>> = { Pxe: "pxe", UefiHttp: "http", Hdd: "disk", Cd: "cd" };

type Truth = MachineTruth & { readonly requests: number };

/** A machine of a simulated site that no test has used yet, and a provider that has learnt nothing yet. */
export async function machineBenchFor(
  site: MachineSite,
  machine: SimulatedMachine,
  provider: Provider,
): Promise<MachineBench> {
  const id = machine.machine_id;
  const truth = () => site.control<Truth>("GET", `/devices/${id}`);
  const [image] = site.images;
  if (image === undefined) throw new Error("the site has no image");
  const start = await truth();
  const since = async (...names: readonly string[]) => {
    const { effects } = await truth();
    return names.reduce((sum, name) => sum + (effects[name] ?? 0) - (start.effects[name] ?? 0), 0);
  };
  return {
    provider,
    target: site.bmc(machine),
    serial: machine.serial,
    systemUuid: machine.system_uuid,
    macs: machine.mac_addresses,
    cannot: [],
    mediumLocation: image.location,
    realPower: async () => (await truth()).power as Awaited<ReturnType<MachineBench["realPower"]>>,
    switchAtRack: (power) => site.control("POST", `/devices/${id}/power`, { power }),
    commandsAccepted: () => since("power_on_commands", "power_off_commands"),
    restarts: () => since("graceful_restart_commands", "force_restart_commands", "power_cycle_commands"),
    requestsReceived: async () => (await truth()).requests - start.requests,
    async realOverride() {
      const { enabled, target } = (await truth()).boot_override;
      const source = enabled === "Disabled" ? "none" : SOURCES[target];
      return { source: source ?? "other", lasts: enabled === "Continuous" ? "always" : "once" };
    },
    realLocator: async () => ((await truth()).locator_lit ? "lit" : "dark"),
    realMedium: async () => (await truth()).media,
    async ail(health) {
      const words = { warning: "Warning", critical: "Critical" } as const;
      const sent = { sensor: "inlet_temperature", health: health && words[health] };
      await site.control("PUT", `/devices/${id}/health`, sent);
      return "Inlet temperature";
    },
    cause: (trouble) => site.control("POST", "/faults", { device: id, fault: FAULTS[trouble as keyof typeof FAULTS] }),
    putRight: () => site.control("DELETE", "/faults"),
  };
}

/** The same machine over a way on which more can go wrong than at its BMC. */
export function behindProxy<B extends FaultyBench>(bench: B, proxy: FaultProxy): B {
  const way = { address: "127.0.0.1", port: proxy.port, scheme: "http", trust: { mode: "off" } } as const;
  return {
    ...bench,
    target: { ...bench.target, ...way },
    requestsReceived: async () => proxy.received,
    cause: proxy.cause,
    putRight: proxy.putRight,
  };
}

/** The operating system of one simulated machine; another one's keys are those of a stranger. */
export async function execBenchFor(
  site: MachineSite,
  [machine, stranger]: readonly [SimulatedMachine, SimulatedMachine],
  foreignKey: string,
): Promise<ExecBench> {
  const { os } = await site.truth(machine.machine_id);
  return {
    provider: { name: "ssh", can: { exec: site.can.exec } },
    target: { ...site.ssh(machine, os.host_key), hostKey: os.host_key },
    file: { path: "/proc/sys/kernel/random/boot_id", text: `${os.boot_id}\n` },
    foreign: { privateKey: foreignKey, hostKey: (await site.truth(stranger.machine_id)).os.host_key },
    nowhere: { address: "127.0.0.1", port: await closedPort() },
  };
}

export async function clusterBenchFor(site: MachineSite, machine: SimulatedMachine): Promise<ClusterBench> {
  const [target] = site.clusters;
  if (target === undefined) throw new Error("the site has no cluster");
  return {
    provider: { name: "kubernetes", can: { cluster: site.can.cluster } },
    target,
    identity: { systemUuid: machine.system_uuid, serial: null, addresses: [] },
    join: () => site.control("POST", `/devices/${machine.machine_id}/join`, { cluster: target.name }),
    goDown: () => site.control("POST", `/devices/${machine.machine_id}/power`, { power: "off" }),
    nowhere: { apiUrl: `http://127.0.0.1:${await closedPort()}` },
  };
}

/** A cluster behind a proxy, and a machine that can join it. */
export async function nodeListBenchFor(
  site: MachineSite,
  machine: SimulatedMachine,
  provider: Provider,
  proxy: FaultProxy,
): Promise<NodeListBench> {
  const { target, ...bench } = await clusterBenchFor(site, machine);
  const way = { apiUrl: `http://127.0.0.1:${proxy.port}`, ca: null };
  const name = machine.machine_id;
  return {
    provider,
    target: { ...target, ...way },
    machine: {
      nodeName: name,
      systemUuid: machine.system_uuid,
      addresses: machine.ssh_endpoint.split(":").slice(0, 1),
    },
    join: bench.join,
    goDown: bench.goDown,
    cordon: (isCordoned) => site.can.cluster.setSchedulable(target, name, !isCordoned, aCall()),
    hasCordon: async () => (await site.can.cluster.findNode(target, bench.identity, aCall()))?.unschedulable === true,
    requestsReceived: async () => proxy.received,
    cause: proxy.cause,
    putRight: proxy.putRight,
  };
}

/** A port on which nobody listens: it was free a moment ago. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
