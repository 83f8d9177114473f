import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { type IronicServer, isIronicInstalled, startIronic } from "../../support/counterparts/ironic-server.ts";
import { needing } from "../../support/counterparts/needing.ts";
import type { SimulatedMachine } from "../../support/machine-site.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/**
 * Three programs one above the other: we command Ironic, Ironic commands the simulated BMC over Redfish with its own client, and
 * what happened to the machine is read over SSH.
 */
const PATIENCE = { timeout: 180_000 };

describe.skipIf(!isIronicInstalled())(
  needing("runs through Ironic", isIronicInstalled() ? "" : "python3-ironic"),
  PATIENCE,
  () => {
    let bench: RunBench;
    let ironic: IronicServer;
    let number = 0;

    beforeAll(async () => {
      [bench, ironic] = await Promise.all([startRunBench({ speed: 200 }), startIronic()]);
    }, PATIENCE.timeout);
    afterAll(async () => {
      await bench.close();
      await ironic.stop();
    });

    /** The next simulated machine, given into Ironic's care. */
    async function entrust(): Promise<SimulatedMachine> {
      const machine = bench.simulated[number++];
      if (!machine) throw new Error("more machines are needed");
      const { machine_id: id } = machine;
      await ironic.addNode(id, {
        driver: "redfish",
        deploy_interface: "ramdisk",
        properties: { serial_number: machine.serial },
        driver_info: {
          redfish_address: `https://${machine.bmc_endpoint}`,
          redfish_username: machine.bmc_username,
          redfish_password: machine.bmc_password,
          redfish_verify_ca: false,
          // Else Ironic would have the machine boot from its medium, and install, again and again.
          force_persistent_boot_device: "Never",
        },
      });
      const known = await bench.machines.getMachine({ machineId: id });
      if (!known.spec) throw new Error("the machine has no spec");
      known.spec.provider = "ironic";
      known.spec.bmcEndpoint = `http://127.0.0.1:${ironic.port}/v1/nodes/${id}`;
      known.spec.bmcTlsTrust = "off";
      await bench.machines.updateMachine({ machine: known });
      await setMachineCredentials(bench.deps, tester, {
        machineId: id,
        bmcUsername: "none",
        bmcPassword: "none",
        sshUsername: "",
        sshPrivateKey: "",
      });
      return machine;
    }

    const start = async (machine: SimulatedMachine, type: string) =>
      bench.ended((await bench.runs.startRun({ machineId: machine.machine_id, requestId: type, type })).runId, 150_000);

    test("REBOOT restarts the machine once, proven by its boot id", async () => {
      const machine = await entrust();
      const before = await bench.truth(machine.machine_id);
      const run = await start(machine, "REBOOT");
      expect(run.error?.message ?? "").toBe("");
      expect(run.phase).toBe(Run_Phase.SUCCEEDED);
      const after = await bench.truth(machine.machine_id);
      expect(after.os.boot_id).not.toBe(before.os.boot_id);
      expect(after.effects.boots).toBe((before.effects.boots ?? 0) + 1);
    });

    test("REPAVE installs the image by Ironic's own deployment and joins the cluster", async () => {
      const machine = await entrust();
      const run = await start(machine, "REPAVE");
      expect(run.error?.message ?? "").toBe("");
      expect(run.phase).toBe(Run_Phase.SUCCEEDED);
      const { effects, kubernetes, media, boot_override } = await bench.truth(machine.machine_id);
      expect(effects).toMatchObject({ installs: 1 });
      expect(kubernetes.cluster).not.toBeNull();
      // Nothing is left from which the machine would install itself again.
      expect(media).toBeNull();
      expect(boot_override).not.toMatchObject({ target: "Cd" });
      expect((await ironic.node(machine.machine_id)).instance_info).not.toHaveProperty("boot_iso");
    });

    test("RMA leaves the machine off", async () => {
      const machine = await entrust();
      const run = await start(machine, "RMA");
      expect(run.error?.message ?? "").toBe("");
      expect(run.phase).toBe(Run_Phase.SUCCEEDED);
      expect((await bench.truth(machine.machine_id)).power).toBe("off");
    });

    test("a run on a node in maintenance fails, and says what Ironic's operator said", async () => {
      const machine = await entrust();
      await ironic.ask("PUT", `/v1/nodes/${machine.machine_id}/maintenance`, { reason: "waiting for a new board" });
      const run = await start(machine, "REBOOT");
      expect(run).toMatchObject({
        phase: Run_Phase.FAILED,
        error: { message: expect.stringContaining("is in maintenance: waiting for a new board") },
      });
    });
  },
);
