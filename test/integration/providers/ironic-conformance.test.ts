import { afterAll, beforeAll, describe } from "vitest";
import type { MachineBench } from "../../../src/capabilities/conformance/machine-bench.ts";
import { describeMachineInspect } from "../../../src/capabilities/conformance/machine-inspect.ts";
import { describePowerControl } from "../../../src/capabilities/conformance/power-control.ts";
import { describeReset } from "../../../src/capabilities/conformance/reset.ts";
import { milliseconds } from "../../../src/kernel/duration.ts";
import { createBmcGateway } from "../../../src/providers/bmc-gateway.ts";
import { createIronicProvider } from "../../../src/providers/ironic/ironic-provider.ts";
import { eventually } from "../../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { type IronicServer, isIronicInstalled, startIronic } from "../../support/ironic-server.ts";

/** What the proxy can do; that Ironic itself lies about power nobody can tell, since it has no meter. */
const TROUBLES = ["cuts_connections", "hangs", "is_overloaded", "writes_garbage", "rejects_credentials"] as const;
const NODE = "node-1";
const MAC = "52:54:00:aa:bb:01";
const SYSTEM_UUID = "0d9b5d5e-4e0c-4a5c-8a6b-1f7c5a1e2f30";
const POWER = `PUT /v1/nodes/${NODE}/states/power`;

/**
 * The real Ironic with hardware of its own pretending, behind a proxy that makes what trouble there is. Boot devices, installations and
 * lights are proved with hardware that has them: test/integration/runs/ironic.test.ts.
 */
describe.skipIf(!isIronicInstalled())(
  "ironic (skipped where python3-ironic is not installed)",
  { timeout: 60_000 },
  () => {
    let ironic: IronicServer;
    let proxy: FaultProxy;
    const close: (() => void)[] = [];

    beforeAll(async () => {
      ironic = await startIronic({ httpBasic: { username: "millwright", password: "s3cret-for-ironic" } });
      proxy = await startFaultProxy(ironic.port);
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
    });

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
      proxy.forget();
      const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
      const provider = createIronicProvider({ gateway });
      close.push(() => {
        provider.close();
        gateway.close();
      });
      const commands = () => proxy.accepted.filter((line) => line.startsWith(POWER));
      return {
        provider,
        target: { ...ironic.target(NODE), port: proxy.port },
        cannot: [],
        serial: "SN-1",
        systemUuid: SYSTEM_UUID,
        macs: [MAC],
        mediumLocation: "",
        realPower,
        switchAtRack,
        commandsAccepted: async () => commands().length,
        requestsReceived: async () => proxy.received,
        restarts: async () => commands().filter((line) => line.includes("rebooting")).length,
        // This hardware has none of them.
        realOverride: async () => ({ source: "none" }),
        realLocator: async () => "dark",
        realMedium: async () => null,
        async cause(trouble) {
          proxy.trouble = trouble;
        },
        async putRight() {
          proxy.trouble = null;
        },
      };
    }

    describePowerControl("a node", aBench, TROUBLES);
    describeReset("a node", aBench, TROUBLES);
    describeMachineInspect("a node", aBench, TROUBLES);
  },
);
