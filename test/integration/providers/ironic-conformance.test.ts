import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { describeBootDevice } from "../../../src/capabilities/conformance/boot-device.ts";
import { describeComputerSystem } from "../../../src/capabilities/conformance/computer-system.ts";
import type { DeviceTrouble } from "../../../src/capabilities/conformance/device-bench.ts";
import { describeImaging } from "../../../src/capabilities/conformance/imaging.ts";
import { describeLocator } from "../../../src/capabilities/conformance/locator.ts";
import type { MachineBench } from "../../../src/capabilities/conformance/machine-bench.ts";
import { describePowerControl } from "../../../src/capabilities/conformance/power-control.ts";
import { describeReset } from "../../../src/capabilities/conformance/reset.ts";
import { describeVitals } from "../../../src/capabilities/conformance/vitals.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createIronicProvider } from "../../../src/providers/ironic/ironic-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { type FaultProxy, PROXY_TROUBLES, startFaultProxy } from "../../support/counterparts/fault-proxy.ts";
import { type IronicServer, isIronicInstalled, startIronic } from "../../support/counterparts/ironic-server.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { eventually } from "../../support/eventually.ts";
import { type MachineSite, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { machineBenchFor } from "./simulated-machine-bench.ts";

/** That Ironic itself lies about power nobody can tell, since it has no meter. */
const TROUBLES = ["cuts_connections", "hangs", "is_overloaded", "writes_garbage", "rejects_credentials"] as const;
const NODE = "node-1";
const MAC = "52:54:00:aa:bb:01";
const SYSTEM_UUID = "0d9b5d5e-4e0c-4a5c-8a6b-1f7c5a1e2f30";
const POWER = `PUT /v1/nodes/${NODE}/states/power`;

/** Each test of what Ironic commands the hardware for has a machine of its own, as delivered. */
const SITE = `racks:\n${[1, 2, 3].map((at) => `  - { id: rack-${at}, shelves: 0, machines: 60 }\n`).join("")}`;

/**
 * The real Ironic behind a proxy that makes what trouble there is. Power and inspection are asked of hardware of its own
 * pretending; boot devices, installations and lights, which that has not, of simulated machines that it reaches over Redfish.
 */
describe.skipIf(!isIronicInstalled())(
  needing("ironic", isIronicInstalled() ? "" : "python3-ironic"),
  { timeout: 60_000 },
  () => {
    let ironic: IronicServer;
    let proxy: FaultProxy;
    let site: MachineSite;
    let directory: string;
    let used = 0;
    const close: (() => void)[] = [];

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), "millwright-ironic-site-"));
      writeFileSync(join(directory, "site.yaml"), SITE);
      [ironic, site] = await Promise.all([
        startIronic({ httpBasic: { username: "millwright", password: "s3cret-for-ironic" } }),
        startMachineSite({ speed: 50, site: join(directory, "site.yaml") }),
      ]);
      proxy = await startFaultProxy(ironic);
      await ironic.addNode(NODE, {
        driver: "fake-hardware",
        properties: { serial_number: "SN-1", system_uuid: SYSTEM_UUID, bmc_version: "2.14" },
      });
      await ironic.ask("POST", "/v1/ports", { address: MAC, node_uuid: (await ironic.node(NODE)).uuid });
    }, 180_000);
    afterAll(async () => {
      for (const one of close) one();
      await proxy.close();
      await ironic.stop();
      await site.stop();
      rmSync(directory, { recursive: true, force: true });
    });

    /** A provider that has learnt nothing yet, and what the proxy can do and tell. */
    async function aProvider() {
      await proxy.forget();
      const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
      const provider = createIronicProvider({ gateway });
      close.push(() => {
        provider.close();
        gateway.close();
      });
      return {
        provider,
        requestsReceived: async () => proxy.received,
        cause: (trouble: DeviceTrouble) => proxy.cause(trouble),
        putRight: () => proxy.putRight(),
      };
    }

    const realPower = async () => ((await ironic.node(NODE)).power_state === "power on" ? "on" : "off");
    async function switchAtRack(power: "on" | "off"): Promise<void> {
      // A conductor may still be at what the test before asked for.
      await eventually(
        async () => {
          const { power_state, target_power_state, reservation } = await ironic.node(NODE);
          if (target_power_state !== null || reservation !== null) return false;
          if (power_state === `power ${power}`) return true;
          await ironic.ask("PUT", `/v1/nodes/${NODE}/states/power`, { target: `power ${power}` });
          return false;
        },
        { what: `the node is ${power}` },
      );
    }

    async function aBench(): Promise<MachineBench> {
      await switchAtRack("on");
      const commands = () => proxy.accepted.filter((line) => line.startsWith(POWER));
      return {
        ...(await aProvider()),
        target: { ...ironic.target(NODE), port: proxy.port },
        cannot: [],
        serial: "SN-1",
        systemUuid: SYSTEM_UUID,
        macs: [MAC],
        mediumLocation: "",
        realPower,
        switchAtRack,
        commandsAccepted: async () => commands().length,
        restarts: async () => commands().filter((line) => line.includes("rebooting")).length,
        // This hardware has none of them.
        realOverride: async () => ({ source: "none" }),
        realLocator: async () => "dark",
        realMedium: async () => null,
      };
    }

    /** A simulated machine in Ironic's care, in the state in which every node begins there. */
    async function aSimulatedBench(): Promise<MachineBench> {
      const machine = site.machines[used++];
      if (machine === undefined) throw new Error("more machines are needed");
      const { machine_id: id, bmc_endpoint, bmc_username, bmc_password } = machine;
      await ironic.ask("POST", "/v1/nodes", {
        name: id,
        driver: "redfish",
        deploy_interface: "ramdisk",
        driver_info: {
          redfish_address: `https://${bmc_endpoint}`,
          redfish_username: bmc_username,
          redfish_password: bmc_password,
          redfish_verify_ca: false,
          force_persistent_boot_device: "Never",
        },
      });
      const under = await aProvider();
      const { boots: before = 0 } = (await site.truth(id)).effects;
      const bench = await machineBenchFor(site, machine, under.provider);
      return {
        ...bench,
        ...under,
        target: { ...ironic.target(id), port: proxy.port },
        cannot: ["boot_in_own_order", "boot_from_http"],
        // Ironic restarts a machine by switching it off and on.
        restarts: async () => ((await site.truth(id)).effects.boots ?? 0) - before,
        // It is Ironic that puts the medium in, once it begins; until then it keeps it.
        async realMedium() {
          const { instance_info } = await ironic.node(id);
          return (await bench.realMedium()) ?? (instance_info as { boot_iso?: string }).boot_iso ?? null;
        },
      };
    }

    describePowerControl("a node", aBench, TROUBLES);
    describeReset("a node", aBench, TROUBLES);
    describeComputerSystem("a node", aBench, TROUBLES);
    describeBootDevice("a node", aSimulatedBench, TROUBLES);
    describeImaging("a node", aSimulatedBench, TROUBLES);
    describeLocator("a node", aSimulatedBench, TROUBLES);
    describeVitals(
      "a node",
      async () => ({ ...(await aBench()), cannot: ["tell_health", "fall_ill"] }),
      PROXY_TROUBLES,
    );
  },
);
