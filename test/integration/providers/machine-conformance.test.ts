import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe } from "vitest";
import { describeBootDevice } from "../../../src/capabilities/conformance/boot-device.ts";
import { describeCluster } from "../../../src/capabilities/conformance/cluster.ts";
import { describeComputerSystem } from "../../../src/capabilities/conformance/computer-system.ts";
import { describeImaging } from "../../../src/capabilities/conformance/imaging.ts";
import { describeLocator } from "../../../src/capabilities/conformance/locator.ts";
import { describeNodeList } from "../../../src/capabilities/conformance/node-list.ts";
import { describePowerControl } from "../../../src/capabilities/conformance/power-control.ts";
import { describeRemoteExec } from "../../../src/capabilities/conformance/remote-exec.ts";
import { describeReset } from "../../../src/capabilities/conformance/reset.ts";
import { describeSensors } from "../../../src/capabilities/conformance/sensors.ts";
import { describeVitals } from "../../../src/capabilities/conformance/vitals.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createKubernetesProvider } from "../../../src/providers/kubernetes/kubernetes-provider.ts";
import { createRedfishMachineProvider } from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createSshProvider } from "../../../src/providers/ssh/ssh-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import {
  type FaultProxy,
  PROXY_TROUBLES,
  type Service,
  startFaultProxy,
} from "../../support/counterparts/fault-proxy.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { hasSshd, startSshd } from "../../support/counterparts/openssh-server.ts";
import { type MachineSite, type SimulatedMachine, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  behindProxy,
  closedPort,
  clusterBenchFor,
  execBenchFor,
  MACHINE_TROUBLES,
  machineBenchFor,
  nodeListBenchFor,
} from "./simulated-machine-bench.ts";

let site: MachineSite;
let directory: string;
let used: number;
const open: (() => Promise<void>)[] = [];

/** Each test has machines of its own, as delivered. */
const RACKS = 8;
const MACHINES = 60;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-conformance-"));
  const file = join(directory, "site.yaml");
  const racks = Array.from(
    { length: RACKS },
    (_, at) => `  - { id: rack-${at + 1}, shelves: 0, machines: ${MACHINES} }\n`,
  );
  writeFileSync(file, `racks:\n${racks.join("")}`);
  // A change of power takes 100 ms: long enough to be seen under way, short enough to wait for.
  site = await startMachineSite({ speed: 50, site: file });
  used = 0;
});
afterEach(async () => {
  await site.control("DELETE", "/faults");
  await Promise.all(open.splice(0).map((close) => close()));
});
afterAll(async () => {
  await site.stop();
  rmSync(directory, { recursive: true, force: true });
});

function fresh(): SimulatedMachine {
  const machine = site.machines[used];
  if (machine === undefined) throw new Error("more machines are needed");
  used += 1;
  return machine;
}

async function overRedfish() {
  const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
  const provider = createRedfishMachineProvider({ gateway });
  open.push(async () => {
    await provider.close();
    gateway.close();
  });
  return machineBenchFor(site, fresh(), provider);
}

async function aProxyBefore(service: Service): Promise<FaultProxy> {
  const proxy = await startFaultProxy(service);
  open.push(() => proxy.close());
  return proxy;
}

async function overFaultyWay() {
  const bench = await overRedfish();
  const { address: host, port } = bench.target;
  return behindProxy(bench, await aProxyBefore({ host, port, secure: true }));
}

describe("redfish", () => {
  describePowerControl("a machine", overRedfish, MACHINE_TROUBLES);
  describeReset("a machine", overRedfish, MACHINE_TROUBLES);
  describeBootDevice("a machine", overRedfish, MACHINE_TROUBLES);
  describeImaging("a machine", overRedfish, MACHINE_TROUBLES);
  describeLocator("a machine", overRedfish, MACHINE_TROUBLES);
  describeComputerSystem("a machine", overRedfish, MACHINE_TROUBLES);
  describeSensors("a machine", overRedfish, MACHINE_TROUBLES);
  describeVitals("a machine", overFaultyWay, PROXY_TROUBLES);
});

describe("ssh", () => {
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2_048,
    publicKeyEncoding: { type: "pkcs1", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  describeRemoteExec("a simulated machine", () => execBenchFor(site, [fresh(), fresh()], privateKey));
});

describe.skipIf(!hasSshd)(needing("ssh", hasSshd ? "" : "openssh-server"), () => {
  describeRemoteExec("the OpenSSH server", async () => {
    const [server, stranger] = [await startSshd(), await startSshd()];
    const provider = createSshProvider();
    open.push(
      async () => provider.close(),
      () => server.stop(),
      () => stranger.stop(),
    );
    const { credentials, hostKey } = stranger.target;
    const path = join(directory, "a-file");
    writeFileSync(path, "what it says\n");
    return {
      provider,
      target: { ...server.target, hostKey: server.target.hostKey ?? "" },
      file: { path, text: "what it says\n" },
      foreign: { privateKey: "privateKey" in credentials ? credentials.privateKey : "", hostKey: hostKey ?? "" },
      nowhere: { address: "127.0.0.1", port: await closedPort() },
    };
  });
});

describe("kubernetes", () => {
  describeCluster("a simulated machine", () => clusterBenchFor(site, fresh()));

  describeNodeList(
    "a cluster",
    async () => {
      const { hostname: host, port } = new URL(site.clusters[0]?.apiUrl ?? "");
      const proxy = await aProxyBefore({ host, port: Number(port), secure: true });
      // Many times what the simulated cluster answers, and soon reached by one that never ends.
      const provider = createKubernetesProvider({ largestAnswer: 8 * 1_024 * 1_024 });
      open.push(async () => provider.close());
      return nodeListBenchFor(site, fresh(), provider, proxy);
    },
    PROXY_TROUBLES,
  );
});
