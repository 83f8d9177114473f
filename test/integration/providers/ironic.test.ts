import { beforeEach, describe, expect, test } from "vitest";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall, aFencedCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createIronicProvider, type IronicProvider } from "../../../src/providers/ironic/ironic-provider.ts";
import { type BmcGateway, createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { type IronicServer, isIronicInstalled, startIronic } from "../../support/counterparts/ironic-server.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const PATIENCE = { timeout: 180_000 };
const ACCOUNT = { username: "millwright", password: "s3cret-for-ironic" };

describe.skipIf(!isIronicInstalled())(
  needing("OpenStack's Ironic", isIronicInstalled() ? "" : "python3-ironic"),
  PATIENCE,
  () => {
    let ironic: IronicServer;
    let gateway: BmcGateway;
    let provider: IronicProvider;
    let number = 0;
    let name: string;
    let target: BmcTarget;
    const can = () => provider.can;
    const node = () => ironic.node(name);
    const untilPower = (power: string) =>
      eventually(async () => (await can().power.readPower(target, aCall())) === power, {
        what: `the power is ${power}`,
      });

    beforeAll(async () => {
      ironic = await startIronic({ httpBasic: ACCOUNT });
    }, PATIENCE.timeout);
    afterAll(() => ironic.stop());
    beforeEach(async () => {
      gateway?.close();
      provider?.close();
      gateway = createBmcGateway({ backOff: milliseconds(5), concurrency: 8 });
      provider = createIronicProvider({ gateway });
      number += 1;
      name = `node-${number}`;
      await ironic.addNode(name, {
        driver: "fake-hardware",
        properties: { serial_number: `SN-${number}`, vendor: "Generic", model: "M1", bios_version: "2.1" },
      });
      await ironic.ask("POST", "/v1/ports", {
        address: `52:54:00:00:00:${number.toString(16).padStart(2, "0")}`,
        node_uuid: (await node()).uuid,
      });
      target = ironic.target(name);
    });
    afterAll(() => {
      provider.close();
      gateway.close();
    });

    test("tells what it knows of a machine, and nothing of how it reaches its BMC", async () => {
      const identity = await can().system.identify(target, aCall());
      expect(identity).toEqual({
        serial: `SN-${number}`,
        vendor: "Generic",
        model: "M1",
        systemUuid: null,
        macs: [`52:54:00:00:00:${number.toString(16).padStart(2, "0")}`],
      });
      expect(await can().system.readFirmware(target, aCall())).toEqual([{ name: "BIOS", version: "2.1" }]);
    });

    test("turns a machine on and off, each with one command", async () => {
      for (const desired of ["on", "off"] as const) {
        expect(await can().power.setPower(target, desired, aCall())).toEqual({ commanded: true });
        expect(await can().power.setPower(target, desired, aCall())).toEqual({ commanded: false });
        await untilPower(desired);
        expect((await node()).power_state).toBe(`power ${desired}`);
        expect(await can().power.setPower(target, desired, aCall())).toEqual({ commanded: false });
      }
    });

    test("tells of a restart by the time of the last change of power", async () => {
      await can().power.setPower(target, "on", aCall());
      await untilPower("on");
      const before = await can().system.readBoot(target, aCall());
      await can().reset.resetPower(target, "forced", aCall());
      await eventually(async () => (await can().system.readBoot(target, aCall())).lastReset !== before.lastReset, {
        what: "another reset is told of",
      });
      await can().reset.resetPower(target, "graceful", aCall());
      await untilPower("on");
    });

    test("reads the boot device, and refuses one that the driver does not have", async () => {
      expect(await can().boot.readBootOverride(target, aCall())).toEqual({ source: "pxe", lasts: "once" });
      await can().boot.setBootOverride(target, "pxe", aCall());
      await expect(can().boot.setBootOverride(target, "cd", aCall())).rejects.toMatchObject({
        disposition: "fail",
        family: "declines",
        message: expect.stringContaining("cannot be booted from cdrom: its driver in Ironic knows pxe"),
      });
    });

    test("says nothing of a light that its driver lists but cannot switch", async () => {
      await can().locator.setLocator(target, "lit", aCall());
      expect(await can().locator.readLocator(target, aCall())).toBe("unknown");
    });

    test("does nothing to a node in maintenance, and says why it is in it", async () => {
      await ironic.ask("PUT", `/v1/nodes/${name}/maintenance`, { reason: "the fan is dead" });
      const refused = {
        disposition: "fail",
        family: "declines",
        message: expect.stringMatching(/in maintenance: the fan is dead.*maintenance unset node-/),
      };
      await expect(can().power.setPower(target, "on", aCall())).rejects.toMatchObject(refused);
      await expect(can().reset.resetPower(target, "forced", aCall())).rejects.toMatchObject(refused);
      expect((await node()).power_state).not.toBe("power on");
      // Looking is allowed.
      await expect(can().power.readPower(target, aCall())).resolves.toBeDefined();
    });

    test("says that there is no such node", async () => {
      await expect(can().power.readPower(ironic.target("nobody"), aCall())).rejects.toMatchObject({
        disposition: "fail",
        message: expect.stringContaining("Node nobody could not be found"),
      });
    });

    test("says that the credentials are wrong, without saying them", async () => {
      const wrong = { ...target, password: "not-the-password" };
      const failure: unknown = await can()
        .power.readPower(wrong, aCall())
        .catch((error: unknown) => error);
      expect(failure).toMatchObject({ disposition: "fail", family: "keeps_out" });
      expect((failure as Error).message).toMatch(/^wrong credentials: Ironic 127\.0\.0\.1/);
      expect((failure as Error).message).not.toContain("not-the-password");
    });

    test("sends nothing once the lease is gone", async () => {
      await expect(can().power.setPower(target, "on", aFencedCall())).rejects.toThrow("the lease is gone");
      expect((await node()).power_state).not.toBe("power on");
    });

    test("installs a disk image by a deployment, once, and again by a rebuild", async () => {
      const order = (token: string) => ({
        location: "http://images.example/ubuntu.qcow2",
        cloudInitRef: "cloud-init/worker-node",
        token,
        kind: "disk" as const,
        digest: `sha256:${"ab".repeat(32)}`,
        stamp: { path: "/etc/millwright-image", text: `token=${token}\n` },
      });
      for (const token of ["first", "second"]) {
        await can().imaging.prepare(target, order(token), aCall());
        expect(await can().imaging.readProgress(target, order(token), aCall())).toEqual({
          inserted: true,
          armed: true,
        });
        await can().imaging.start(target, order(token), aCall());
        await eventually(async () => !(await can().imaging.readProgress(target, order(token), aCall())).armed, {
          what: "the deployment has begun",
        });
        await eventually(async () => (await node()).provision_state === "active", { what: "the node is active" });
        const since = (await node()).provision_updated_at;
        // Whoever died before noting that it had begun asks again.
        await can().imaging.start(target, order(token), aCall());
        expect((await node()).provision_updated_at).toBe(since);
        expect((await node()).instance_info).toMatchObject({
          image_source: "http://images.example/ubuntu.qcow2",
          image_os_hash_algo: "sha256",
          image_os_hash_value: "ab".repeat(32),
        });
      }
      await can().imaging.cleanUp(target, order("second"), aCall());
      expect(await can().imaging.readProgress(target, order("second"), aCall())).toEqual({
        inserted: false,
        armed: false,
      });
    });

    test("is led from its first state to where it can be installed", async () => {
      await ironic.ask("POST", "/v1/nodes", { name: `${name}-new`, driver: "fake-hardware" });
      const order = { location: "http://images.example/a.raw", cloudInitRef: "", token: "t", kind: "disk" as const };
      await can().imaging.prepare(ironic.target(`${name}-new`), order, aCall());
      expect((await ironic.node(`${name}-new`)).provision_state).toBe("available");
    });
  },
);
