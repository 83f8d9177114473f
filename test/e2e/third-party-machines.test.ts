import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { aCall } from "../../src/capabilities/conformance/device-bench.ts";
import { eventually } from "../support/eventually.ts";
import { type MachineSite, type SimulatedMachine, startMachineSite } from "../support/machine-site.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** Programs that we did not write work with the simulated machines, so that these are not just what we took them to be. */
let site: MachineSite;
let directory: string;
beforeAll(async () => {
  site = await startMachineSite({ speed: 100 });
  directory = await mkdtemp(join(tmpdir(), "millwright-third-party-"));
});
afterAll(async () => {
  await site.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Debian puts its modules where only its own Python looks, which need not be the first on PATH. */
const python = ["/usr/bin/python3", "python3"].find(
  (candidate) => spawnSync(candidate, ["-c", "import sushy"]).status === 0,
);
const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;

async function run(command: string, ...args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, HOME: directory }, stdio: "pipe" });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(code, `${command} ${args.join(" ")}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

function machineAt(index: number): SimulatedMachine {
  const machine = site.machines[index];
  if (machine === undefined) throw new Error("the site has too few machines");
  return machine;
}

test("python3-sushy switches a machine, its boot override and its LED, puts a medium in and out, and reads parts and services", async ({
  skip,
}) => {
  if (python === undefined) skip("needs Debian's python3-sushy");
  const machine = machineAt(0);
  const [image] = site.images;
  const script = join(import.meta.dirname, "third-party", "drive_machine.py");
  const { bmc_endpoint, bmc_username, bmc_password } = machine;
  const url = image?.location ?? "";
  const seen = JSON.parse(await run(python ?? "", script, `https://${bmc_endpoint}`, bmc_username, bmc_password, url));
  expect(seen).toEqual({
    uuid: machine.system_uuid,
    power: ["On", "Off", "On"],
    boot: { target: "Pxe", enabled: "Once" },
    led: "Lit",
    services: ["UpdateService", "EventService"],
    firmware: [expect.any(String), expect.any(String)],
    parts: { processors: ["cpu0", "cpu1"], drives: ["disk0", "disk1"], bios: "Uefi", secure_boot: false },
    inserted: { image: url, inserted: true },
    ejected: { image: null, inserted: false },
  });
  const { effects, boot_override, media } = await site.truth(machine.machine_id);
  expect(effects).toMatchObject({ power_off_commands: 1, power_on_commands: 1, media_inserts: 1, media_ejects: 1 });
  expect(effects.boot_override_changes).toBe(2);
  expect(boot_override).toMatchObject({ enabled: "Disabled" });
  expect(media).toBeNull();
});

test("python3-sushy replaces the firmware of a power supply and reads its new version", async ({ skip }) => {
  if (python === undefined) skip("needs Debian's python3-sushy");
  const [shelf] = await site.control<
    { bmc_ip_address: string; bmc_username: string; bmc_password: string; metadata: { name: string } }[]
  >("GET", "/inventory");
  if (shelf === undefined) throw new Error("the site has no shelf");
  const { model } = await site.control<{ model: string }>("GET", `/devices/${shelf.metadata.name}`);
  await using image = await serveText(`MILLWRIGHT-FW ${model} psu 0300\n`);
  const script = join(import.meta.dirname, "third-party", "update_firmware.py");
  const { bmc_ip_address, bmc_username, bmc_password } = shelf;
  const args = [`https://${bmc_ip_address}`, bmc_username, bmc_password, image.url, "psu"];
  const seen = JSON.parse(await run(python ?? "", script, ...args));
  expect(seen).toEqual({ before: "0204", states: ["Running", "Completed"], after: "0300" });
});

async function serveText(text: string): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer((_request, response) => response.end(text)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/image`, [Symbol.asyncDispose]: async () => void server.close() };
}

describe("kubectl", () => {
  interface NodeObject {
    readonly status: { readonly nodeInfo: { readonly systemUUID: string; readonly bootID: string } };
  }
  const kubectl = (...args: readonly string[]) =>
    run("kubectl", "--kubeconfig", join(directory, "kubeconfig"), ...args);
  /** As our own client sees it. */
  const ourNode = async () => {
    const [cluster] = site.clusters;
    if (cluster === undefined) throw new Error("the site has no cluster");
    const identity = { systemUuid: machineAt(1).system_uuid, serial: null, addresses: [] };
    return site.can.cluster.findNode(cluster, identity, aCall());
  };
  const nodes = async () =>
    (JSON.parse(await kubectl("get", "nodes", "-o", "json")) as { readonly items: readonly NodeObject[] }).items;

  beforeAll(async () => {
    const [cluster] = await site.control<{ kubeconfig: string }[]>("GET", "/clusters");
    writeFileSync(join(directory, "kubeconfig"), cluster?.kubeconfig ?? "", { mode: 0o600 });
    await site.control("POST", `/devices/${machineAt(1).machine_id}/join`, { cluster: site.clusters[0]?.name });
    await eventually(async () => (await ourNode())?.ready, { what: "the machine is a node that is ready" });
  });

  test("lists the nodes, and tells which machine each is", async ({ skip }) => {
    if (!hasKubectl) skip("needs kubectl");
    const machine = machineAt(1);
    const { boot_id } = (await site.truth(machine.machine_id)).os;
    expect((await nodes()).map(({ status }) => status.nodeInfo)).toContainEqual(
      expect.objectContaining({ systemUUID: machine.system_uuid, bootID: boot_id }),
    );
    expect(await kubectl("get", "nodes")).toMatch(/^NAME\s+STATUS\s+ROLES\s+AGE\s+VERSION\n.*\bReady\b/);
  });

  test("cordons a node and lets it take work again, as our own client sees it", async ({ skip }) => {
    if (!hasKubectl) skip("needs kubectl");
    const name = (await ourNode())?.name ?? "";
    for (const [verb, unschedulable] of [
      ["cordon", true],
      ["uncordon", false],
    ] as const) {
      expect(await kubectl(verb, name)).toContain(`node/${name} ${verb}ed`);
      expect(await ourNode()).toMatchObject({ unschedulable });
    }
  });
});
