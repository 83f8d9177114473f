import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer as createWebServer, type Server } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { needing } from "../support/counterparts/needing.ts";
import { newKey } from "../support/counterparts/openssh-server.ts";
import {
  buildOrdinaryInstaller,
  type OrdinaryInstaller,
  whyNoOrdinaryInstaller,
} from "../support/counterparts/ordinary-installer.ts";
import { HOST_SEEN_FROM_INSIDE, type QemuMachine, startQemuMachine } from "../support/counterparts/qemu-bmc.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/**
 * An installer with nothing of ours in it, which reads standard seeds and reports nothing, repaves a machine behind an unhelpful BMC, from virtual
 * media and over PXE, to a proven end: the system that it leaves shows the token of this very installation.
 */
const missing = whyNoOrdinaryInstaller();
const WITHIN = 5 * 60_000;

let bench: ProcessBench;
let database: TestDatabase;
let server: ServerProcess;
let token: string;
let installer: OrdinaryInstaller;
let web: Server;
let port: number;
const machines: QemuMachine[] = [];

const ask = <T = unknown>(method: string, body: object) => server.ask<T>(method, body, token);
const digestOf = (file: string) => `sha256:${createHash("sha256").update(readFileSync(file)).digest("hex")}`;
const onWeb = (file: string) =>
  `http://${HOST_SEEN_FROM_INSIDE}:${(web.address() as AddressInfo).port}/${basename(file)}`;

describe.skipIf(missing !== "")(needing("an ordinary installer", missing), () => {
  beforeAll(async () => {
    bench = openProcessBench();
    database = await createTestDatabase();
    installer = buildOrdinaryInstaller(join(bench.directory, "ordinary"));
    web = await serveFiles(Object.values(installer) as string[]);
    port = await freePort();
    server = await startServerProcess(bench, {
      command: "serve",
      databaseUrl: database.url,
      env: {
        MILLWRIGHT_HTTP_LISTEN: `127.0.0.1:${port}`,
        MILLWRIGHT_INSTALL_IMAGE_NETWORKS: "127.0.0.0/8",
        // The BMC here has no TLS.
        MILLWRIGHT_BMC_PLAIN_HTTP: "true",
        MILLWRIGHT_INSTALL_PUBLIC_URL: `http://${HOST_SEEN_FROM_INSIDE}:${port}`,
      },
    });
    token = await adminToken(database);
    const content = "#cloud-config\nwrite_files:\n  - path: /etc/motd\n    content: |\n      of the document\n";
    await ask("millwright.v1.CloudInitService/CreateCloudInit", { name: "cloud-init/ordinary", content });
  }, WITHIN);

  afterAll(async () => {
    for (const machine of machines) await machine.stop();
    web?.close();
    try {
      await bench?.close();
    } finally {
      await database?.drop();
    }
  });

  test("repaves a machine from its ISO, with a seed on a second medium, and once", { timeout: WITHIN }, async () => {
    const machine = await aMachine("media", "02:00:00:00:c0:01");
    const image = { kind: "iso", location: onWeb(installer.iso), digest: digestOf(installer.iso), seed: "nocloud" };
    const runId = await repave("media", image);
    await eventually(async () => machine.media().every((each) => each !== null), {
      what: "both media are inserted",
      seen: () => seen(machine, runId),
    });
    const seedUrl = (machine.media()[1] ?? "").replace(HOST_SEEN_FROM_INSIDE, "127.0.0.1");
    const seed = await fetch(seedUrl);
    expect(seed.status).toBe(200);
    expect(Buffer.from(await seed.arrayBuffer()).toString("latin1")).toContain("of the document");
    await untilSucceeded(machine, runId);
    // Off, then once from the medium, then from the disk: also on a BMC that keeps the medium as boot source for every boot.
    expect(machine.boots).toEqual(["Cd", "Hdd"]);
    expect(machine.media()).toEqual([null, null]);
    expect((await fetch(seedUrl)).status).toBe(404);
    // The way to the seed is nowhere that people read.
    const key = seedUrl.split("/").at(-2) ?? "";
    for (const text of [await logsOf(runId), await historyOf(runId), server.process.transcript()])
      expect(text).not.toContain(key);
  });

  test("repaves a machine over PXE, with a seed over the network, and reports nothing", {
    timeout: WITHIN,
  }, async () => {
    const machine = await aMachine("network", "02:00:00:00:c0:02");
    const workflow = {
      id: "ordinary",
      name: "Ordinary",
      boot: {
        method: "kernel",
        kernel_url: onWeb(installer.kernel),
        initrd_url: onWeb(installer.initrd),
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a word of workflows
        cmdline: `console=ttyS0 quiet url=${onWeb(installer.system)} ds=nocloud-net;s=${"${seed}"}`,
      },
    };
    const made = await fetch(`${server.httpUrl}/api/v1/workflows`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(workflow),
    });
    expect(made.status, await made.text()).toBe(201);
    const image = { kind: "netboot", location: "ordinary", digest: digestOf(installer.system), seed: "nocloud" };
    const runId = await repave("network", image);
    await untilSucceeded(machine, runId);
    expect(machine.boots).toEqual(["Pxe", "Hdd"]);
    const { nodes } = await ask<{ nodes: { id: string; state: string }[] }>("millwright.v1.NodeService/ListNodes", {});
    expect(nodes).toMatchObject([{ state: "active" }]);
  });

  test("repaves a machine whose BMC has one drive, from its ISO with the seed in it, and once", {
    timeout: WITHIN,
  }, async () => {
    const machine = await aMachine("one-drive", "02:00:00:00:c0:03", 1);
    const location = onWeb(installer.iso).replace(HOST_SEEN_FROM_INSIDE, "127.0.0.1");
    const image = { kind: "iso", location, digest: digestOf(installer.iso), seed: "nocloud" };
    await expect(repave("one-drive-refused", image, "m-one-drive")).rejects.toThrow(
      /this BMC has one virtual drive.*install it over the network/,
    );
    expect(machine.commands).toEqual([]);
    const runId = await repave("one-drive", { ...image, seed_on: "either" });
    const url = await eventually(async () => machine.media()[0] ?? undefined, {
      what: "the medium is inserted",
      seen: () => seen(machine, runId),
    });
    await untilSucceeded(machine, runId);
    expect(machine.boots).toEqual(["Cd", "Hdd"]);
    expect(machine.media()).toEqual([null]);
    expect((await fetch(url.replace(HOST_SEEN_FROM_INSIDE, "127.0.0.1"))).status).toBe(404);
    const key = url.split("/").at(-2) ?? "";
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    for (const text of [await logsOf(runId), await historyOf(runId), server.process.transcript()])
      expect(text).not.toContain(key);
  });
});

interface ShownRun {
  readonly phase: string;
  readonly error?: { readonly message: string };
}

const show = (runId: string) => ask<ShownRun>("baremetal.v1.RunService/GetRun", { run_id: runId });

const seen = async (machine: QemuMachine, runId: string): Promise<string> =>
  [
    JSON.stringify(await show(runId)),
    `boots ${machine.boots.join(" ")}; ${machine.commands.join("; ")}; media ${machine.media().join(" ")}`,
    machine.console().slice(-2_000),
  ].join("\n");

async function untilSucceeded(machine: QemuMachine, runId: string): Promise<void> {
  await eventually(async () => !["PENDING", "RUNNING"].includes((await show(runId)).phase), {
    what: "the run has ended",
    within: WITHIN,
    seen: () => seen(machine, runId),
  });
  expect(await show(runId), await seen(machine, runId)).toMatchObject({ phase: "SUCCEEDED" });
}

async function aMachine(name: string, mac: string, drives = 2): Promise<QemuMachine> {
  const bootFile = `http://${HOST_SEEN_FROM_INSIDE}:${port}/api/v1/boot.ipxe`;
  const sshPort = await freePort();
  const machine = await startQemuMachine({ directory: bench.directory, name, mac, sshPort, bootFile, drives });
  machines.push(machine);
  const spec = {
    provider: "redfish",
    bmc_endpoint: machine.bmc,
    bmc_tls_trust: "off",
    ssh_endpoint: machine.ssh,
    mac_addresses: [mac],
  };
  const machineId = `m-${name}`;
  await ask("baremetal.v1.MachineService/RegisterMachine", { machine: { machine_id: machineId, spec } });
  await ask("millwright.v1.MachineLifecycleService/SetMachineCredentials", {
    ...{ machine_id: machineId, bmc_username: machine.username, bmc_password: machine.password },
    ...{ ssh_username: "root", ssh_private_key: newKey().privateKey },
  });
  await ask("millwright.v1.MachineLifecycleService/AcceptMachine", { machine_id: machineId });
  return machine;
}

async function repave(name: string, image: object, machineId = `m-${name}`): Promise<string> {
  await ask("millwright.v1.ImageService/CreateImage", { name, ...image });
  const payload = { image_ref: name, cloud_init_ref: "cloud-init/ordinary" };
  const steps = [
    { name: "arm", timeout_seconds: 60, max_retries: 0, netboot: { mode: "PXE" } },
    { name: "install", timeout_seconds: 280, max_retries: 0, repave: payload },
  ];
  await ask("millwright.v1.PlanCatalogService/CreatePlan", { plan: { plan_id: `plan-${name}`, steps } });
  const start = { request_id: name, machine_id: machineId, plan_id: `plan-${name}` };
  return (await ask<{ runId: string }>("baremetal.v1.RunService/StartRun", start)).runId;
}

async function logsOf(runId: string): Promise<string> {
  const rows = await database.db.query<{ text: string }>(
    "select convert_from(data, 'UTF8') as text from run_logs where run_id = $1",
    [runId],
  );
  return rows.map(({ text }) => text).join("");
}

const historyOf = async (runId: string): Promise<string> =>
  JSON.stringify(await ask("millwright.v1.RunService/GetRun", { run_id: runId }));

/** A plain web server that knows a few files and nothing else. */
async function serveFiles(files: readonly string[]): Promise<Server> {
  const byName = new Map(files.map((file) => [`/${basename(file)}`, file]));
  const started = createWebServer((request, response) => {
    const file = byName.get(request.url ?? "");
    if (file === undefined) return response.writeHead(404).end();
    const content = readFileSync(file);
    const [, from, to = ""] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    if (from === undefined) return response.writeHead(200).end(content);
    const last = to === "" ? content.length - 1 : Math.min(Number(to), content.length - 1);
    response.writeHead(206, { "content-range": `bytes ${from}-${last}/${content.length}` });
    return response.end(content.subarray(Number(from), last + 1));
  });
  await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
  return started;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port: found } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return found;
}
