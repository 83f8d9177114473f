import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type BootNetwork, openBootNetwork, whyNoBootNetwork } from "../support/counterparts/boot-network.ts";
import { findDebianKernel } from "../support/counterparts/debian-kernel.ts";
import { ipmiMissing, startIpmiSimulator } from "../support/counterparts/ipmi-simulator.ts";
import { needing } from "../support/counterparts/needing.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench, ROOT, type StartedProcess } from "../support/processes/process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** A machine boots over the network from firmware to the last report, with the configuration and the environment that we write. */
const MIB = 1_048_576;
const DISK_BYTES = 24 * MIB;
/** Not a whole number of anything. */
const IMAGE = diskImage(17 * MIB + 12_345);
const USER_DATA = "#cloud-config\nhostname: told-by-a-step\n";
const kernel = findKernel();
const BOOTS = 2 * 60_000;

function findKernel(): ReturnType<typeof findDebianKernel> {
  return whyNoBootNetwork() ?? findDebianKernel();
}

/** A partition table, a filesystem in its one partition, and things that nobody can guess. */
function diskImage(bytes: number): Buffer {
  const image = randomBytes(bytes);
  const table = Buffer.alloc(512);
  // One entry: Linux, from the first MiB on, 8 MiB long; and the mark of a table.
  table.set([0, 0xfe, 0xff, 0xff, 0x83, 0xfe, 0xff, 0xff], 446);
  table.writeUInt32LE(MIB / 512, 454);
  table.writeUInt32LE((8 * MIB) / 512, 458);
  table.set([0x55, 0xaa], 510);
  const directory = mkdtempSync(join(tmpdir(), "millwright-filesystem-"));
  try {
    const file = join(directory, "part");
    writeFileSync(file, Buffer.alloc(8 * MIB));
    if (spawnSync("busybox", ["mke2fs", "-F", file]).status === 0) image.set(readFileSync(file), MIB);
  } finally {
    rmSync(directory, { recursive: true });
  }
  image.set(table, 0);
  return image;
}

let bench: ProcessBench;
let database: TestDatabase;
let network: BootNetwork;
let server: ServerProcess;
let dnsmasq: StartedProcess;
let token: string;

const inBench = (...names: string[]) => join(bench.directory, ...names);

async function runCli(...args: string[]): Promise<void> {
  const started = bench.start({ command: join(ROOT, "bin", "millwright"), args, env: { HOME: bench.directory } });
  expect(await started.exited, started.transcript()).toEqual({ code: 0, signal: null });
}

describe.skipIf(typeof kernel === "string")("a machine that boots from the network", () => {
  beforeAll(async () => {
    if (typeof kernel === "string") return;
    bench = openProcessBench();
    database = await createTestDatabase();
    network = openBootNetwork(bench);
    mkdirSync(inBench("files"));
    writeFileSync(inBench("files", "disk.img"), IMAGE);
    copyFileSync("/usr/lib/ipxe/snponly.efi", inBench("files", "snponly.efi"));
    const { image, modules } = kernel;
    const environment = ["--kernel", image, "--busybox", "/bin/busybox", "--modules", modules];
    const drivers = ["--module", "virtio_pci", "virtio_net", "virtio_blk"];
    await runCli("netboot", "environment", ...environment, ...drivers, "--out", inBench("files", "environment"));
    server = await startServerProcess(bench, {
      command: "serve",
      databaseUrl: database.url,
      env: {
        MILLWRIGHT_HTTP_LISTEN: `${network.hostAddress}:0`,
        MILLWRIGHT_INSTALL_FILES_DIR: inBench("files"),
        MILLWRIGHT_INSTALL_REQUIRE_REPORT_TOKENS: "true",
        MILLWRIGHT_INSTALL_ERASE_KERNEL: "/files/environment/vmlinuz",
        MILLWRIGHT_INSTALL_ERASE_INITRD: "/files/environment/initrd",
      },
    });
    token = await adminToken(database);
    dnsmasq = await startDnsmasq("--range", network.range);
    await rest("POST", "/workflows", workflow());
    await rest("POST", "/workflows", { ...workflow("steps"), steps: STEPS });
  }, BOOTS);

  afterAll(async () => {
    try {
      await bench?.close();
    } finally {
      network?.close();
      await database?.drop();
    }
  });

  test(
    "from its BIOS installs an image with the steps of its workflow and, later, erases its disk",
    { timeout: 2 * BOOTS },
    () => installAndErase("02:00:00:00:b0:01", "bios"),
  );

  test.skipIf(ipmiMissing !== "")(
    needing("is installed by a run, over a BMC that knows nothing but IPMI", ipmiMissing),
    { timeout: 2 * BOOTS },
    () => installByRun("02:00:00:00:b0:04"),
  );

  test("from UEFI, over TFTP, installs an image", { timeout: 3 * BOOTS }, async () => {
    await installed("02:00:00:00:b0:02", "uefi");
  });

  test(
    "whose image is not what it should be fails three times, by itself, and then waits for people",
    {
      timeout: 2 * BOOTS,
    },
    () => failThreeTimes("02:00:00:00:b0:05"),
  );

  test("from UEFI over HTTP gets iPXE without TFTP", { timeout: BOOTS }, async () => {
    await replaceDnsmasq("--range", network.range, "--http-boot", "/files/snponly.efi");
    await discover("02:00:00:00:b0:06", "uefi_http");
    expect(dnsmasq.transcript()).not.toContain("dnsmasq-tftp: sent");
  });

  describe("where another DHCP server gives out addresses", () => {
    let other: StartedProcess;
    beforeAll(async () => {
      other = startAnotherDhcpServer();
      await replaceDnsmasq("--proxy", network.subnet, "--http-boot", "/files/snponly.efi");
    });

    test.each([
      ["bios", "02:00:00:00:b0:07"],
      ["uefi", "02:00:00:00:b0:03"],
      ["uefi_http", "02:00:00:00:b0:08"],
    ] as const)("is told by a proxy what to boot: %s", { timeout: BOOTS }, async (firmware, mac) => {
      await discover(mac, firmware);
      expect(other.transcript()).toMatch(new RegExp(`DHCPACK\\(eth0\\) \\S+ ${mac}`));
    });
  });
});

test("a machine can boot from the network here", ({ skip }) => {
  if (typeof kernel === "string") skip(kernel);
  expect(kernel).toHaveProperty("image");
});

const OWN_WAYS = ["--keep-in-foreground", "--log-facility=-", "--log-dhcp", "--user=root", "--pid-file"];

/** With the configuration that we write. */
async function startDnsmasq(...options: string[]): Promise<StartedProcess> {
  const file = inBench("dnsmasq.conf");
  const boot = ["--interface", network.bridge, "--boot-url", server.httpUrl];
  await runCli("netboot", "dnsmasq", ...boot, ...options, "--out", file);
  return network.start("dnsmasq", `--conf-file=${file}`, ...OWN_WAYS, `--dhcp-leasefile=${inBench("leases")}`);
}

async function replaceDnsmasq(...options: string[]): Promise<void> {
  dnsmasq.signal("SIGTERM");
  await dnsmasq.exited;
  dnsmasq = await startDnsmasq(...options);
}

/** A DHCP server that knows nothing of us. */
const startAnotherDhcpServer = () =>
  network.startNextDoor(
    "dnsmasq",
    ...["--conf-file=/dev/null", "--port=0", "--interface=eth0", `--dhcp-range=${network.range}`],
    ...[...OWN_WAYS, `--dhcp-leasefile=${inBench("other-leases")}`],
  );

const workflow = (id = "image", image: Buffer = IMAGE) => ({
  id,
  name: id,
  boot: {
    method: "image",
    kernel_url: "/files/environment/vmlinuz",
    initrd_url: "/files/environment/initrd",
    cmdline: "console=ttyS0 panic=5 quiet millwright.pause=0",
    image_url: "/files/disk.img",
    image_digest: `sha256:${createHash("sha256").update(image).digest("hex")}`,
  },
});

const STEPS = [
  { sequence: 1, name: "disks", type: "disk_scan", config: { min_bytes: 2 * MIB } },
  { sequence: 2, name: "image", type: "boot", timeout: 120, on_failure: "retry" },
  { sequence: 3, name: "seed", type: "cloud_init", config: { user_data: USER_DATA } },
  { sequence: 4, name: "note", type: "script", config: { url: "/files/note.sh" }, on_failure: "skip" },
  { sequence: 5, name: "slow", type: "wait", config: { seconds: 60 }, timeout: 1, on_failure: "skip" },
];

interface Node {
  readonly id: string;
  readonly state: string;
  readonly boot_mode: string;
  readonly ip_address: string;
  readonly last_install_error: string | null;
  readonly erased_disks: readonly unknown[];
}

async function rest<T = Node>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${server.httpUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (JSON.parse(text) as { data: T }).data;
}

/** With something on it that was there before. */
function newDisk(name: string): string {
  const disk = inBench(`${name}.disk`);
  writeFileSync(disk, randomBytes(MIB));
  truncateSync(disk, DISK_BYTES);
  return disk;
}

type Firmware = "bios" | "uefi" | "uefi_http";

/** All the way to the script of ours, and no further: that is where the ways to boot end. */
async function discover(mac: string, firmware: Firmware): Promise<void> {
  const machine = network.start("qemu-system-x86_64", ...machineArguments(mac, firmware, newDisk(mac)));
  const id = `m-${mac.replaceAll(":", "")}`;
  const found = async () => (await rest<Node[]>("GET", "/nodes")).find((node) => node.id === id);
  try {
    await eventually(async () => (await found()) !== undefined, {
      what: "the machine has asked for its script",
      within: BOOTS,
      seen: () => `${machine.transcript()}\n${dnsmasq.transcript().slice(-5_000)}`,
    });
  } finally {
    machine.signal("SIGKILL");
    await machine.exited;
  }
  expect(await found()).toMatchObject({ state: "discovered", boot_mode: firmware === "bios" ? "bios" : "uefi" });
}

/** One machine that is switched on once: it boots again by itself after each failure. */
async function failThreeTimes(mac: string): Promise<void> {
  writeFileSync(inBench("files", "small.img"), "not what the workflow says");
  const wrong = workflow("another-image", Buffer.from("what nobody serves"));
  await rest("POST", "/workflows", { ...wrong, boot: { ...wrong.boot, image_url: "/files/small.img" } });
  const { id } = await approve(mac, "another-image");
  const disk = newDisk("failing");
  const before = readFileSync(disk);
  const args = machineArguments(mac, "bios", disk).filter((each) => each !== "-no-reboot");
  const machine = network.start("qemu-system-x86_64", ...args);
  try {
    await eventually(async () => (await rest("GET", `/nodes/${id}`)).state === "install_failed", {
      what: "the third attempt has failed",
      within: BOOTS,
      seen: machine.transcript,
    });
  } finally {
    machine.signal("SIGKILL");
    await machine.exited;
  }
  expect(await rest("GET", `/nodes/${id}`)).toMatchObject({
    install_attempts: 3,
    last_install_error: expect.stringContaining("the image has the digest"),
  });
  const events = await rest<{ event_type: string }[]>("GET", `/nodes/${id}/events?event_type=script_handed_out`);
  expect(events).toHaveLength(3);
  // What makes a disk bootable was never written.
  expect(readFileSync(disk).subarray(0, MIB).equals(before.subarray(0, MIB))).toBe(true);
}

async function approve(mac: string, workflowId: string): Promise<Node> {
  const { id } = await rest("POST", "/nodes", { mac_address: mac });
  return rest("PATCH", `/nodes/${id}/state`, { state: "pending", workflow_id: workflowId });
}

async function install(mac: string, firmware: "bios" | "uefi", disk: string, workflowId: string): Promise<string> {
  const { id } = await approve(mac, workflowId);
  await boot(mac, firmware, disk, id, "installed");
  return id;
}

/** The machine is switched on by hand when its BMC was told to reset it: that is all that its BMC has to do with it. */
async function installByRun(mac: string): Promise<void> {
  const bmc = await startIpmiSimulator();
  try {
    const ask = <T = unknown>(method: string, body: object) => server.ask<T>(method, body, token);
    const machineId = "m-by-run";
    const { address, port, username, password } = bmc.target;
    const spec = { provider: "ipmi", bmc_endpoint: `${address}:${port}`, mac_addresses: [mac] };
    await ask("baremetal.v1.MachineService/RegisterMachine", { machine: { machine_id: machineId, spec } });
    const credentials = { machine_id: machineId, bmc_username: username, bmc_password: password };
    await ask("millwright.v1.MachineLifecycleService/SetMachineCredentials", credentials);
    await ask("millwright.v1.MachineLifecycleService/AcceptMachine", { machine_id: machineId });
    const { image_digest: digest } = workflow().boot;
    const image = { name: "golden", kind: "netboot", location: "image", digest, success_proof: "token" };
    await ask("millwright.v1.ImageService/CreateImage", image);
    const step = { name: "install", timeout_seconds: 600, max_retries: 0, repave: { image_ref: "golden" } };
    await ask("millwright.v1.PlanCatalogService/CreatePlan", { plan: { plan_id: "plan-golden", steps: [step] } });
    const start = { request_id: "golden", machine_id: machineId, plan_id: "plan-golden" };
    const { runId } = await ask<{ runId: string }>("baremetal.v1.RunService/StartRun", start);
    const show = () => ask<{ phase: string }>("baremetal.v1.RunService/GetRun", { run_id: runId });
    await eventually(async () => (await bmc.told()).includes("reset 1"), {
      what: "the BMC was told to restart it",
      seen: async () => `${await bmc.told()}\n${JSON.stringify(await show())}`,
    });
    expect(await bmc.told()).toEqual(["boot pxe", "reset 1"]);
    const disk = newDisk("by-run");
    await boot(mac, "bios", disk, machineId, /^(installed|active)$/);
    await eventually(async () => (await show()).phase === "SUCCEEDED", {
      what: "the run has its proof",
      seen: async () => JSON.stringify(await show()),
    });
    expect(await rest("GET", `/nodes/${machineId}`)).toMatchObject({ state: "active", vendor: "QEMU" });
    expect(readFileSync(disk).subarray(0, IMAGE.length).equals(IMAGE)).toBe(true);
    expect(await bmc.boot()).toBe("none");
  } finally {
    await bmc.stop();
  }
}

/** The image is on the disk, and what is known of the machine is true. */
async function installed(
  mac: string,
  firmware: "bios" | "uefi",
  workflowId = "image",
): Promise<{ id: string; disk: string }> {
  const disk = newDisk(firmware);
  const id = await install(mac, firmware, disk, workflowId);
  // Steps may have written into the partition.
  const from = workflowId === "image" ? 0 : 9 * MIB;
  expect(readFileSync(disk).subarray(from, IMAGE.length).equals(IMAGE.subarray(from))).toBe(true);
  expect(await rest("GET", `/nodes/${id}`)).toMatchObject({
    boot_mode: firmware,
    ip_address: expect.stringContaining(network.hostAddress.replace(/1$/, "")),
    vendor: "QEMU",
  });
  const history = await rest<{ from_state: string; to_state: string }[]>("GET", `/nodes/${id}/history`);
  expect(history.map((each) => `${each.from_state} → ${each.to_state}`)).toEqual([
    "installing → installed",
    "pending → installing",
    "discovered → pending",
  ]);
  return { id, disk };
}

async function installAndErase(mac: string, firmware: "bios" | "uefi"): Promise<void> {
  writeFileSync(inBench("files", "note.sh"), 'echo "on $MILLWRIGHT_TARGET"\n');
  const { id, disk } = await installed(mac, firmware, "steps");
  expect(readFileSync(disk).includes(USER_DATA)).toBe(true);
  expect(await rest<object>("GET", `/nodes/${id}`)).toMatchObject({
    installation_steps: [
      { state: "completed", message: expect.stringContaining("/dev/vda") },
      { state: "completed" },
      { state: "completed" },
      { state: "completed", message: "on /dev/vda" },
      { state: "skipped", message: "not done within 1 s" },
    ],
  });
  for (const state of ["active", "deprovisioning"]) await rest("PATCH", `/nodes/${id}/state`, { state });
  await boot(mac, firmware, disk, id, "retired");
  expect(await rest("GET", `/nodes/${id}`)).toMatchObject({
    erased_disks: [{ disk: "/dev/vda", serial: `disk-of-${firmware}`, verified: true }],
  });
  expect(readFileSync(disk).every((byte) => byte === 0)).toBe(true);
}

/** Switches the machine on; it ends by itself once it has reported. */
async function boot(
  mac: string,
  firmware: "bios" | "uefi",
  disk: string,
  id: string,
  until: string | RegExp,
): Promise<void> {
  const machine = network.start("qemu-system-x86_64", ...machineArguments(mac, firmware, disk));
  const seen = () => `${machine.transcript()}\n${dnsmasq.transcript().slice(-5_000)}`;
  await eventually(async () => machine.hasExited(), {
    what: `the machine has reported that it is ${until}, and has ended`,
    within: firmware === "bios" ? BOOTS : 1.5 * BOOTS,
    seen,
  }).finally(() => machine.hasExited() || machine.signal("SIGKILL"));
  const state = typeof until === "string" ? until : expect.stringMatching(until);
  expect(await rest("GET", `/nodes/${id}`), seen()).toMatchObject({ state, last_install_error: null });
}

const without = (feature: string) => ["-fw_cfg", `name=opt/org.tianocore/${feature},string=no`];

function machineArguments(mac: string, firmware: Firmware, disk: string): string[] {
  const uefi = () => {
    const variables = `${disk}.vars`;
    copyFileSync("/usr/share/OVMF/OVMF_VARS_4M.fd", variables);
    return [
      ...["-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"],
      ...["-drive", `if=pflash,format=raw,unit=1,file=${variables}`],
    ];
  };
  return [
    ...["-machine", "q35,accel=tcg", "-cpu", "max", "-m", "512"],
    ...["-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot"],
    ...(firmware === "bios" ? [] : uefi()),
    // Firmware whose order of booting has nothing but HTTP.
    ...(firmware === "uefi_http" ? ["IPv4PXESupport", "IPv6PXESupport"].flatMap(without) : []),
    ...["-netdev", `tap,id=net,ifname=${network.tap},script=no,downscript=no`],
    // Without a ROM of its own, UEFI's network boot is not iPXE: it is sent there over TFTP.
    ...["-device", `virtio-net-pci,netdev=net,mac=${mac},bootindex=1${firmware === "bios" ? "" : ",romfile="}`],
    ...["-drive", `if=none,id=disk,format=raw,file=${disk}`],
    ...["-device", `virtio-blk-pci,drive=disk,serial=disk-of-${firmware}`],
  ];
}
