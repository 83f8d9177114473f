import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { aCall, aFencedCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { type MachineSite, type SimulatedMachine, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let site: MachineSite;
let directory: string;
let number: number;
let machine: SimulatedMachine;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-site-"));
  const file = join(directory, "site.yaml");
  await writeFile(
    file,
    "racks:\n  - { id: rack-1, shelves: 1, machines: 12 }\n  - { id: rack-2, shelves: 1, machines: 2, behind_bastion: true }\n",
  );
  site = await startMachineSite({ speed: 200, site: file });
  number = 0;
});
afterAll(async () => {
  await site.stop();
  rmSync(directory, { recursive: true });
});
beforeEach(async () => {
  await site.control("DELETE", "/faults");
  const next = site.machines[number];
  if (next === undefined) throw new Error("more machines are needed");
  machine = next;
  number += 1;
});
const fault = (type: string) => site.control("POST", "/faults", { device: machine.machine_id, fault: { type } });
const truth = () => site.truth(machine.machine_id);

describe("a machine's BMC", () => {
  test("says what the machine is", async () => {
    const { macs, ...identity } = await site.can.system.identify(site.bmc(machine), aCall());
    expect(identity).toMatchObject({ serial: machine.serial, systemUuid: machine.system_uuid, vendor: "Generic" });
    expect(macs).toEqual(machine.mac_addresses);
    expect(await site.can.system.readFirmware(site.bmc(machine), aCall())).toContainEqual({
      name: "BMC",
      version: "1.09.2",
    });
    expect(await site.can.sensors.readHealth(site.bmc(machine), aCall())).toMatchObject({ status: "ok" });
    expect(await site.can.system.readBoot(site.bmc(machine), aCall())).toMatchObject({ progress: "running" });
  });

  test("turns it off and on again, each once", async () => {
    const bmc = site.bmc(machine);
    for (const desired of ["off", "on"] as const) {
      await site.can.power.setPower(bmc, desired, aCall());
      await site.can.power.setPower(bmc, desired, aCall());
      await vi.waitFor(async () => expect(await site.can.power.readPower(bmc, aCall())).toBe(desired), {
        timeout: 20_000,
      });
    }
    expect((await truth()).effects).toMatchObject({ power_off_commands: 1, power_on_commands: 1 });
  });

  test("switches the locator light", async () => {
    await site.can.locator.setLocator(site.bmc(machine), "lit", aCall());
    expect(await site.can.locator.readLocator(site.bmc(machine), aCall())).toBe("lit");
    expect((await truth()).locator_lit).toBe(true);
  });

  test("is not told anything once the lease is gone", async () => {
    await expect(site.can.reset.resetPower(site.bmc(machine), "forced", aFencedCall())).rejects.toThrow("lease");
    expect((await truth()).effects.resets).toBe(0);
  });

  test("that cuts connections fails with a cause that can be tried again", async () => {
    await fault("drop");
    await expect(site.can.boot.setBootOverride(site.bmc(machine), "pxe", aCall())).rejects.toMatchObject({
      disposition: "retry",
      family: "silent",
    });
  });
});

describe("a machine's system", () => {
  const echo = (hostKey: string | null) =>
    site.can.exec.run(site.ssh(machine, hostKey), { script: "echo hello\n", env: {}, timeout: seconds(30) }, aCall());

  test("runs scripts for those who know its host key", async () => {
    const { host_key } = (await truth()).os;
    expect(await site.can.exec.readHostKey(site.ssh(machine, null), aCall())).toBe(host_key);
    expect(await echo(host_key)).toMatchObject({ code: 0, output: "hello\n" });
  });

  test("that shows another key is left before anything is sent", async () => {
    const { host_key } = (await truth()).os;
    await fault("wrong_host_key");
    await expect(echo(host_key)).rejects.toMatchObject({ disposition: "intervene", family: "unproven" });
    expect((await truth()).effects.ssh_commands).toBe(0);
  });

  test("that refuses connections can be tried again", async () => {
    await fault("ssh_refused");
    await expect(echo(null)).rejects.toMatchObject({ disposition: "retry", family: "silent" });
  });

  test("that hangs keeps nobody who stops waiting", async () => {
    await fault("ssh_hang");
    const stop = new AbortController();
    const asked = site.can.exec.readHostKey(site.ssh(machine, null), aCall({ signal: stop.signal }));
    setImmediate(() => stop.abort());
    await expect(asked).rejects.toThrow("stopped");
  });

  test("that goes down under a connection is not asked over it again", async () => {
    const { host_key } = (await truth()).os;
    expect(await echo(host_key)).toMatchObject({ code: 0 });
    await site.control("POST", `/devices/${machine.machine_id}/crash`);
    await vi.waitFor(async () => expect(await echo(host_key).catch((error) => error.family)).toBe("silent"), {
      timeout: 20_000,
    });
    await site.can.reset.resetPower(site.bmc(machine), "forced", aCall());
    await vi.waitFor(async () => expect(await echo(host_key)).toMatchObject({ code: 0 }), { timeout: 20_000 });
  });

  test("behind a bastion is reached through it, and only through it", async () => {
    const hidden = site.machines.find(({ jump }) => jump !== undefined);
    if (hidden === undefined) throw new Error("no machine is behind the bastion");
    machine = hidden;
    const { host_key } = (await truth()).os;
    expect(site.ssh(machine, host_key).jumpHosts).toHaveLength(1);
    expect(await echo(host_key)).toMatchObject({ output: "hello\n" });
    expect(await site.can.exec.readHostKey(site.ssh(machine, null), aCall())).toBe(host_key);
    const direct = { ...site.ssh(machine, host_key), jumpHosts: [] };
    await expect(site.can.exec.readHostKey(direct, aCall())).rejects.toMatchObject({ family: "silent" });
  });
});

describe("a cluster", () => {
  test("has the machine as a node, which is cordoned, drained, given back and forgotten", async () => {
    const [cluster] = site.clusters;
    if (cluster === undefined) throw new Error("there is no cluster");
    const { cluster: can } = site.can;
    const identity = { systemUuid: machine.system_uuid, serial: null, addresses: [] };
    const find = () => can.findNode(cluster, identity, aCall());
    expect(await find()).toBeUndefined();
    await site.control("POST", `/devices/${machine.machine_id}/join`, { cluster: cluster.name });
    const bootId = (await truth()).os.boot_id;
    await vi.waitFor(
      async () => expect(await find()).toMatchObject({ ready: true, bootId, matchedBy: "system_uuid" }),
      { timeout: 20_000 },
    );
    const name = (await find())?.name ?? "";

    await can.setSchedulable(cluster, name, false, aCall());
    expect(await find()).toMatchObject({ unschedulable: true });
    const drain = () => can.drain(cluster, name, aCall(), { barePods: false, localData: false });
    const first = await drain();
    expect(first.remaining.length).toBeGreaterThan(0);
    await vi.waitFor(async () => expect((await drain()).remaining).toEqual([]), {
      timeout: 20_000,
    });
    await can.setSchedulable(cluster, name, true, aCall());
    expect(await find()).toMatchObject({ unschedulable: false });

    await site.can.power.setPower(site.bmc(machine), "off", aCall());
    await vi.waitFor(async () => expect(await find()).toMatchObject({ ready: false }), { timeout: 20_000 });
  });

  test("mints join material that names where and whom to join", async () => {
    const [cluster] = site.clusters;
    if (cluster === undefined) throw new Error("there is no cluster");
    const material = await site.can.cluster.mintJoin(cluster, { id: "abcdef", lifetime: minutes(10) }, aCall());
    expect(material.token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
    expect(material.caCertHash).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(material.expiresAt.getTime()).toBeGreaterThan(Date.now());
  });
});
