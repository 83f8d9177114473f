import { beforeEach, describe, expect, test, vi } from "vitest";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { type MachineSite, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type Bench, begin, benchFor, carryOut, untilDone } from "./step-driver.ts";

let site: MachineSite;
let number = 0;
let bench: Bench;

beforeAll(async () => {
  site = await startMachineSite({ speed: 200, site: "racks=2" });
});
afterAll(() => site.stop());
beforeEach(async () => {
  await site.control("DELETE", "/faults");
  number += 1;
  bench = await benchFor(site, `m-rack${number > 18 ? 2 : 1}-${String(((number - 1) % 18) + 1).padStart(2, "0")}`);
});
const truth = () => site.truth(bench.machine.id);

describe("reboot", () => {
  test.each(["bmc", "in_band"])("by %s is done when the machine runs with another boot id", async (mode) => {
    const before = await truth();
    const seen = await carryOut(bench, "reboot", { mode });
    const after = await truth();
    expect(after.os.boot_id).not.toBe(before.os.boot_id);
    expect(seen.facts).toEqual({ bootId: after.os.boot_id });
    expect((after.effects.boots ?? 0) - (before.effects.boots ?? 0)).toBe(1);
  });

  test("is not done before it was asked for, and in progress while the machine is down", async () => {
    const step = await begin(bench, "reboot", { force: true });
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    expect(await step.probe()).toMatchObject({ state: "in_progress" });
    await untilDone(bench, step);
    expect((await truth()).effects.force_restart_commands).toBe(1);
  });

  test("of a machine whose system is not reached is proved by its BMC", async () => {
    const step = await begin(bench, "reboot", {}, { without: ["exec"] });
    expect(step.evidence).toMatchObject({ bootId: null });
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    expect((await untilDone(bench, step)).message).toContain("the system runs");
    expect((await truth()).effects.boots).toBe(1);
  });
});

describe("netboot", () => {
  test("arms the next boot and reads it back", async () => {
    const step = await begin(bench, "netboot", { mode: "PXE" }, { without: ["imaging"] });
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    expect(await step.probe()).toMatchObject({ state: "done" });
    expect((await truth()).boot_override).toMatchObject({ enabled: "Once", target: "Pxe" });
    await step.act();
    expect((await truth()).effects.boot_override_changes).toBe(1);
    await step.undo();
    expect((await truth()).boot_override.enabled).toBe("Disabled");
  });

  test("arms the network also where there are virtual media", async () => {
    await carryOut(bench, "netboot", { profile: "pxe-ubuntu-22.04" });
    expect((await truth()).boot_override).toMatchObject({ enabled: "Once", target: "Pxe" });
  });

  test("arms nothing before an image that is installed from a medium, and a reboot then comes back from the disk", async () => {
    const step = await begin(bench, "netboot", { mode: "PXE" }, { installsNext: "ubuntu:22.04-k8s" });
    expect(await step.probe()).toMatchObject({ state: "done", message: expect.stringContaining("nothing is armed") });
    expect((await truth()).boot_override.enabled).toBe("Disabled");
    await carryOut(bench, "reboot", {});
    expect((await truth()).effects.installs_started).toBe(0);
  });
});

describe("repave", () => {
  const payload = { image_ref: "ubuntu:22.04-k8s", cloud_init_ref: "cloud-init/worker-node" };

  test("is done when the new system shows the token, and pins the key that it shows", async () => {
    const before = await truth();
    const step = await begin(bench, "repave", payload);
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    expect(await step.probe()).toMatchObject({ state: "in_progress" });
    const seen = await untilDone(bench, step);
    const after = await truth();
    expect(after.os.host_key).not.toBe(before.os.host_key);
    expect(seen).toMatchObject({
      facts: { sshHostKey: after.os.host_key, bootId: after.os.boot_id, joinedCluster: null },
      conditions: [{ type: "Provisioned", status: true }],
    });
    expect(after).toMatchObject({ media: null, boot_override: { enabled: "Disabled" }, effects: { installs: 1 } });
    // The next step talks to the machine under its new key.
    await carryOut(bench, "reboot", { mode: "in_band" });
  });

  test("goes on where another process stopped between the medium and the restart, with one medium and one installation", async () => {
    const step = await begin(bench, "repave", payload);
    const bmc = site.bmc(bench.simulated);
    const order = {
      location: String(step.evidence.location),
      token: String(step.evidence.token),
      cloudInitRef: payload.cloud_init_ref,
    };
    const call = { signal: new AbortController().signal, subject: "test", mayTouchDevice: <T>(wanted: T) => wanted };
    await site.can.imaging.prepare(bmc, order, call);
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    await untilDone(bench, step);
    expect((await truth()).effects).toMatchObject({ media_inserts: 1, installs: 1 });
  });

  test("never takes a failed installation for one that succeeded", async () => {
    await site.control("POST", "/faults", { device: bench.machine.id, fault: { type: "install_fails" } });
    const step = await begin(bench, "repave", payload);
    await step.act();
    await vi.waitFor(async () => expect((await truth()).effects.installs_failed).toBe(1), { timeout: 20_000 });
    expect(await step.probe()).toMatchObject({ state: "in_progress" });
    await step.undo();
    expect((await truth()).media).toBeNull();
  });
});

describe("join and verify", () => {
  test("make the machine a Ready node of its cluster, by its system UUID", async () => {
    const joined = await carryOut(bench, "join", {});
    expect(joined.message).toContain(bench.machine.id);
    expect(joined.facts).toEqual({ joinedCluster: "default-cluster" });
    expect((await truth()).kubernetes.cluster).toBe("default-cluster");
    expect(bench.log.join("")).toContain("This node has joined the cluster");
    const verified = await carryOut(bench, "verify", { cluster_ref: "default-cluster" });
    expect(verified).toMatchObject({
      facts: { joinedCluster: "default-cluster" },
      conditions: [{ type: "InCustomerCluster", status: true, reason: "NodeReady" }],
    });
    expect(verified.message).toContain("system_uuid");
  });

  test("a node whose kubelet is another one than is installed is not verified until it was started again", async () => {
    await site.control("POST", `/devices/${bench.machine.id}/join`, { cluster: "default-cluster" });
    const run = (script: string) =>
      site.can.exec.run(
        site.ssh(bench.simulated, null),
        { script, env: {}, timeout: seconds(20) },
        { signal: new AbortController().signal, subject: "test", mayTouchDevice: (wanted) => wanted },
      );
    const step = await begin(bench, "verify", {});
    expect(await step.probe()).toMatchObject({ state: "done", message: expect.stringContaining("v1.31.4") });
    await run("apt-get install -y 'kubelet=1.33.0-*'");
    expect(await step.probe()).toMatchObject({
      state: "in_progress",
      message: expect.stringMatching(/kubelet v1\.31\.4, and v1\.33\.0 is installed/),
    });
    await run("systemctl restart kubelet");
    expect(await step.probe()).toMatchObject({ state: "done", message: expect.stringContaining("v1.33.0") });
  });

  test("a join that fails on the machine fails the attempt and shows what it wrote", async () => {
    await site.control("POST", "/faults", { device: bench.machine.id, fault: { type: "join_fails" } });
    const step = await begin(bench, "join", {});
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    await expect(untilDone(bench, step)).rejects.toMatchObject({ disposition: "retry" });
    expect(bench.log.join("")).toContain("timed out waiting for the condition");
  });

  test("a machine that joined no cluster is not verified", async () => {
    const step = await begin(bench, "verify", {});
    await step.act();
    expect(await step.probe()).toMatchObject({ state: "in_progress", message: expect.stringContaining("no node") });
  });
});

describe("ssh", () => {
  test("runs the script once, passes on what it writes, and is done with exit code 0", async () => {
    const step = await begin(bench, "ssh", { script_ref: "drain_check.sh", args: { force: "false" } });
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    await step.act();
    expect(await untilDone(bench, step)).toMatchObject({ message: expect.stringContaining("exit code 0") });
    expect(bench.log.join("").match(/no cluster member/g)).toHaveLength(1);
  });

  test("fails the attempt with the exit code of the script", async () => {
    await site.control("POST", `/devices/${bench.machine.id}/join`, { cluster: "default-cluster" });
    // With a node that is named it is asked on the machine; else its cluster would answer.
    const args = { force: "false", node: bench.machine.id };
    const step = await begin(bench, "ssh", { script_ref: "drain_check.sh", args });
    await step.act();
    await expect(untilDone(bench, step)).rejects.toMatchObject({
      code: "not_drained",
      message: "drain_check.sh ended with exit code 1",
    });
    const asked = await begin(bench, "ssh", { script_ref: "drain_check.sh", args: { force: "false" } });
    await expect(asked.probe()).rejects.toMatchObject({
      code: "not_drained",
      message: expect.stringContaining("of default-cluster is not cordoned"),
    });
  });

  test("takes arguments as values, whatever they contain", async () => {
    const step = await begin(bench, "ssh", {
      script_ref: "drain_check.sh",
      args: { force: "true'; echo broken out; '\"$(reboot)" },
    });
    await step.act();
    await untilDone(bench, step);
    expect(bench.log.join("")).not.toContain("broken out");
    expect((await truth()).os.up).toBe(true);
  });
});

describe("what was undone before its start reached the machine", () => {
  test.each([
    ["ssh", { script_ref: "drain_check.sh", args: { force: "false" } }],
    ["join", {}],
    ["net", { params: { action: "reconfigure" } }],
  ])("is never begun, and is old news to whoever goes on: %s begins anew, and is done", async (kind, payload) => {
    const stopped = await begin(bench, kind, payload);
    await stopped.undo();
    await expect(stopped.act()).rejects.toThrow("could not be started");
    await expect(stopped.probe()).rejects.toMatchObject({
      disposition: "retry",
      message: expect.stringContaining("exit code 143"),
    });
    await stopped.undo();
    await carryOut(bench, kind, payload);
  });
});

describe("net", () => {
  const moving = (address: string, rollback: string) => ({
    params: {
      netplan: `network: {version: 2, ethernets: {eth0: {dhcp4: false, addresses: [${address}/8]}}}`,
      ssh_address: address,
      rollback_seconds: rollback,
    },
  });
  const answersAt = async () =>
    (await site.control<{ answers_at: string[] }>("GET", `/devices/${bench.machine.id}`)).answers_at;
  const changes = async () => (await truth()).effects.network_changes;
  const usual = () => [site.ssh(bench.simulated, null).address];

  test("without settings applies those that are there again, and proves that the machine is reached", async () => {
    const step = await begin(bench, "net", { params: { action: "reconfigure" } });
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    expect(await untilDone(bench, step)).toMatchObject({ facts: { sshMoved: null } });
    expect([await changes(), await answersAt()]).toEqual([1, usual()]);
    expect(bench.log.join("")).toContain("confirmed");
  });

  test("to another address is confirmed from there, where whatever comes after reaches the machine", async () => {
    const moved = await carryOut(bench, "net", moving("127.91.0.1", "600"));
    expect(moved.facts).toEqual({ sshMoved: { from: usual()[0], to: "127.91.0.1" } });
    expect([await changes(), await answersAt()]).toEqual([1, ["127.91.0.1"]]);
    await carryOut(bench, "ssh", { script_ref: "verify_network.sh" });
    expect(bench.log.join("")).toContain("127.91.0.1/8");
  });

  test("takes settings from the run's own params", async () => {
    await carryOut(bench, "net", { params: { action: "reconfigure" } }, moving("127.91.0.2", "600").params);
    expect(await answersAt()).toEqual(["127.91.0.2"]);
    await expect(
      begin(bench, "net", { params: { action: "reconfigure" } }, { params: { rollback_seconds: "x" } }),
    ).rejects.toMatchObject({
      disposition: "fail",
      message: expect.stringContaining("rollback_seconds"),
    });
  });

  test("to an address where nobody answers is reverted by the machine itself", async () => {
    const { params } = moving("127.91.0.3", "5");
    const step = await begin(bench, "net", { params: { ...params, ssh_address: "127.91.0.4" } });
    await step.act();
    await vi.waitFor(async () => expect(await answersAt()).toEqual(["127.91.0.3"]), { timeout: 20_000 });
    await expect(untilDone(bench, step)).rejects.toMatchObject({
      disposition: "retry",
      message: expect.stringContaining("was reverted"),
    });
    expect([await changes(), await answersAt()]).toEqual([2, usual()]);
    const left = await bench.site.can.exec.readFile(
      { ...site.ssh(bench.simulated, bench.machine.spec.ssh?.hostKey ?? null) },
      "/etc/netplan/90-millwright.yaml",
      { signal: new AbortController().signal, subject: "test", mayTouchDevice: (wanted) => wanted },
    );
    expect(left.text).toBeUndefined();
  });

  test("that makes no sense is refused by the machine, which stays as it was", async () => {
    const step = await begin(bench, "net", { params: { netplan: "network: {ethernets: 7}" } });
    await step.act();
    await expect(untilDone(bench, step)).rejects.toThrow("was reverted");
    expect(await answersAt()).toEqual(usual());
    expect(bench.log.join("")).toContain("ethernets");
  });

  test("goes on where another process stopped, and is applied once", async () => {
    const step = await begin(bench, "net", moving("127.91.0.5", "600"));
    await step.act();
    await step.act().catch(() => {}); // The successor acts again only when nothing had begun; here it finds nobody where it was.
    await untilDone(bench, step);
    expect([await changes(), await answersAt()]).toEqual([1, ["127.91.0.5"]]);
  });
});

describe("rma", () => {
  test("notes what the machine is, turns it off and lights its locator", async () => {
    const step = await begin(bench, "rma", { reason: "hardware failure" }, { params: { ticket: "T-1" } });
    expect(step.evidence).toMatchObject({
      reason: "hardware failure",
      ticket: "T-1",
      serial: bench.simulated.serial,
      systemUuid: bench.simulated.system_uuid,
    });
    expect(step.evidence.firmware).toContainEqual({ name: "BIOS", version: "U46-2.20" });
    expect(await step.probe()).toMatchObject({ state: "not_done" });
    await step.act();
    expect((await untilDone(bench, step)).message).toContain("ticket T-1");
    expect(await truth()).toMatchObject({ power: "off", locator_lit: true, effects: { power_off_commands: 1 } });
  });
});
