import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { eventually } from "../../support/eventually.ts";
import { insertNode, placeNode } from "../../support/fleet/fleet-node.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type InstallsUnderTest, type Node, type Page, startInstalls } from "./installs-under-test.ts";
import { ScriptedMachine } from "./scripted-machine.ts";

const KERNEL = randomBytes(200_000);
const INITRD = randomBytes(150_001);
const IMAGE = randomBytes(300_123);
const IMAGE_DIGEST = `sha256:${createHash("sha256").update(IMAGE).digest("hex")}`;
const OTHER_DIGEST = `sha256:${createHash("sha256").update("another image").digest("hex")}`;

let files: string;
let api: InstallsUnderTest;

beforeAll(async () => {
  files = mkdtempSync(join(tmpdir(), "millwright-files-"));
  for (const [name, data] of Object.entries({ vmlinuz: KERNEL, initrd: INITRD, "disk.img": IMAGE }))
    writeFileSync(join(files, name), data);
  api = await startInstalls({ filesDirectory: files });
  for (const [id, digest] of [
    ["good", IMAGE_DIGEST],
    ["bad", OTHER_DIGEST],
  ] as const)
    await addWorkflow(api, id, digest);
});
afterAll(async () => {
  await api.close();
  rmSync(files, { recursive: true, force: true });
});

/** As workflows and iPXE write them. */
const variable = (name: string) => `\${${name}}`;
const boot = (digest: string, more: object = {}) => ({
  method: "image",
  kernel_url: "/files/vmlinuz",
  initrd_url: `${variable("server")}/files/initrd`,
  cmdline: `console=ttyS0 node=${variable("node_id")}`,
  image_url: "/files/disk.img",
  image_digest: digest,
  ...more,
});
const addWorkflow = (to: InstallsUnderTest, id: string, digest: string) =>
  to.ask("POST", "/api/v1/workflows", { id, name: id, boot: boot(digest) });

let count = 0;
const newMachine = (on = api) => new ScriptedMachine(on, `0a:00:00:00:00:${(++count).toString(16).padStart(2, "0")}`);
const idOf = ({ mac }: ScriptedMachine) => `m-${mac.replaceAll(":", "")}`;
const nodeOf = (machine: ScriptedMachine, on = api) => on.ask<Node>("GET", `/api/v1/nodes/${idOf(machine)}`);
const eventsOf = async (machine: ScriptedMachine, type: string) =>
  (await api.call<Page<{ message: string }>>("GET", `/api/v1/nodes/${idOf(machine)}/events?event_type=${type}`)).body
    .data;

/** On record, approved, and with a workflow. */
async function approved(workflow: string | null, on = api): Promise<ScriptedMachine> {
  const machine = newMachine(on);
  await machine.boot();
  if (workflow !== null) await on.ask("PATCH", `/api/v1/nodes/${idOf(machine)}`, { workflow_id: workflow });
  await on.move(idOf(machine), "pending");
  return machine;
}

describe("a machine that nobody knows", () => {
  test("is discovered with what its firmware says, and boots from its disk", async () => {
    const machine = newMachine();
    const told = "&vendor=Acme%20Ltd&model=A1&serial=S-1&uuid=u-1&arch=i386&platform=efi";
    expect(await machine.boot(told)).toMatchObject({
      type: "disk",
      screen: expect.stringContaining("awaits approval"),
    });
    expect(await nodeOf(machine)).toMatchObject({
      state: "discovered",
      vendor: "Acme Ltd",
      model: "A1",
      serial_number: "S-1",
      system_uuid: "u-1",
      arch: "x86_64",
      boot_mode: "uefi",
      ip_address: "127.0.0.1",
      last_seen_at: expect.any(String),
    });
  });

  test("that did not know its hardware at first may tell of it later; what is known stays", async () => {
    const machine = newMachine();
    await machine.boot("&vendor=&model=");
    expect(await nodeOf(machine)).toMatchObject({ vendor: null, model: null });
    await machine.boot("&vendor=Acme");
    await machine.boot("&vendor=Other&model=A1");
    expect(await nodeOf(machine)).toMatchObject({ vendor: "Acme", model: "A1" });
  });

  test("is seen again at each boot, where it is then", async () => {
    const machine = newMachine();
    await machine.boot();
    await api.db.execute(
      `update installs set basis = basis + 1,
         facts = facts || '{"ipAddress": "192.0.2.9", "lastSeenAt": "2026-01-01T00:00:00.000Z"}' where id = $1`,
      [idOf(machine)],
    );
    expect(await nodeOf(machine)).toMatchObject({ ip_address: "192.0.2.9", last_seen_at: "2026-01-01T00:00:00.000Z" });
    const before = Date.now();
    await machine.boot();
    const { ip_address, last_seen_at } = await nodeOf(machine);
    expect(ip_address).toBe("127.0.0.1");
    expect(Date.parse(String(last_seen_at))).toBeGreaterThanOrEqual(before - 1_000);
  });

  test("is on record once, however often it boots at the same moment", { tags: "race" }, async () => {
    const machine = newMachine();
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => machine.boot()));
    expect(new Set(outcomes.map(({ type }) => type))).toEqual(new Set(["disk"]));
    expect((await nodeOf(machine)).state).toBe("discovered");
  });

  test("is not put on record where that is switched off", async () => {
    api.boot.autoRegister = false;
    try {
      const machine = newMachine();
      expect(await machine.boot()).toMatchObject({ type: "disk", screen: expect.stringContaining("not on record") });
      expect((await api.call("GET", `/api/v1/nodes/${idOf(machine)}`)).status).toBe(404);
    } finally {
      api.boot.autoRegister = true;
    }
  });

  test("gets 400 for an address that is none, and every notation of one is the same machine", async () => {
    const wrong = await api.call("GET", "/api/v1/boot?mac=0a:00:00", undefined, { as: null });
    expect(wrong.status).toBe(400);
    const machine = newMachine();
    await machine.boot();
    for (const mac of [machine.mac.replaceAll(":", "-").toUpperCase(), machine.mac.replaceAll(":", "")])
      expect(await new ScriptedMachine(api, mac).fetchScript()).toContain(idOf(machine));
  });
});

describe("an approved machine", () => {
  test("waits while nobody has said what to install, and installs once somebody has", async () => {
    const machine = await approved(null);
    const waits = await machine.boot();
    expect(waits).toMatchObject({
      type: "waits",
      next: expect.stringContaining(`${api.url}/api/v1/boot?mac=${machine.mac}&`),
    });
    await api.ask("PATCH", `/api/v1/nodes/${idOf(machine)}`, { workflow_id: "good" });
    expect(await machine.boot()).toMatchObject({ type: "kernel" });
  });

  test("that is a live fleet node boots from its disk, and is not even seen; it installs once the node is removed", async () => {
    const machine = await approved("good");
    const before = await nodeOf(machine);
    const { id } = await insertNode(api.db, idOf(machine));
    for (const state of ["enrolling", "active", "retired"]) {
      await placeNode(api.db, id, state);
      expect(await machine.boot(), state).toMatchObject({
        type: "disk",
        screen: expect.stringContaining("its system is not installed by this server"),
      });
    }
    expect(await nodeOf(machine)).toEqual(before);
    await placeNode(api.db, id, "deleted");
    expect(await machine.boot()).toMatchObject({ type: "kernel" });
  });

  test("installs: kernel, initrd and image arrive whole, in ranges, and its reports lead to installed", async () => {
    const machine = await approved("good");
    const outcome = await machine.boot();
    expect(outcome).toMatchObject({
      type: "kernel",
      words: { initrd: "initrd", console: "ttyS0", node: idOf(machine), mac: machine.mac, server: api.url },
    });
    if (outcome.type !== "kernel") throw new Error("it did not boot a kernel");
    expect(outcome.kernel.equals(KERNEL) && outcome.initrd.equals(INITRD)).toBe(true);
    expect(await machine.install()).toBe("Installation completed");
    expect(await nodeOf(machine)).toMatchObject({ state: "installed", installation_progress: 100 });
    expect(await machine.boot()).toMatchObject({ type: "disk" });
  });

  test("that fails twice is installed at its third boot, without an operator", async () => {
    const machine = await approved("bad");
    for (const attempt of [1, 2]) {
      expect(await machine.boot()).toMatchObject({ screen: expect.stringContaining(`attempt ${attempt}`) });
      expect(await machine.install()).toBe(`Installation failed (attempt ${attempt}), will retry`);
      expect(await nodeOf(machine)).toMatchObject({ state: "installing", install_attempts: attempt });
    }
    // Whoever keeps the image mends it; nobody touches the node.
    await api.ask("PUT", "/api/v1/workflows/bad", { name: "bad", boot: boot(IMAGE_DIGEST) });
    await machine.boot();
    expect(await machine.install()).toBe("Installation completed");
    expect(await nodeOf(machine)).toMatchObject({ state: "installed", install_attempts: 0, last_install_error: null });
    await api.ask("PUT", "/api/v1/workflows/bad", { name: "bad", boot: boot(OTHER_DIGEST) });
  });

  test("is not begun again by its installer's own reboot", async () => {
    const machine = await approved("good");
    await machine.boot();
    await machine.report({ installation_status: "started" });
    expect(await machine.boot()).toMatchObject({ type: "disk", screen: expect.stringContaining("under way") });
  });

  test("that failed three times shows why, and what it reported never becomes a command", async () => {
    const machine = await approved("good");
    await machine.boot();
    await machine.report({ installation_status: "started" });
    const installation_error = `no disk ; shell || shell && shell\nshell\r${variable("net0/mac")}`;
    for (const attempt of [1, 2, 3])
      await machine.report({ installation_status: "failed", installation_error }, `${attempt}`);
    expect((await nodeOf(machine)).state).toBe("install_failed");
    const script = await machine.fetchScript();
    const [line = ""] = script.split("\n").filter((each) => each.includes("no disk"));
    expect(line).toMatch(/^echo /);
    expect(line).not.toMatch(/[;|&$\r]/);
    expect(script.split("\n").map((each) => each.split(" ")[0])).toEqual(["#!ipxe", "echo", "sleep", "exit", ""]);
  });

  test("whose workflow was deleted says so on its screen for 30 s, and boots from its disk", async () => {
    await addWorkflow(api, "withdrawn", IMAGE_DIGEST);
    const machine = await approved("withdrawn");
    await api.ask("DELETE", "/api/v1/workflows/withdrawn");
    const script = await machine.fetchScript();
    expect(script).toMatch(/^#!ipxe\necho .*its workflow does not exist any more.*\nsleep 30\nexit\n$/);
    expect((await nodeOf(machine)).state).toBe("pending");
  });

  test("boots on when the files that it is to load are not there", async () => {
    await api.ask("POST", "/api/v1/workflows", {
      id: "gone",
      name: "gone",
      boot: { method: "kernel", kernel_url: "/files/nothing" },
    });
    const machine = await approved("gone");
    expect(await machine.boot()).toMatchObject({
      type: "disk",
      screen: expect.stringContaining("could not be loaded"),
    });
    expect((await nodeOf(machine)).state).toBe("pending");
  });

  test.each(["constructor", "__proto__", "toString", "vax"])(
    "boots also when its firmware calls itself %s",
    async (word) => {
      const machine = newMachine();
      for (const round of [1, 2])
        expect(await machine.boot(`&arch=${word}&platform=${word}`), `boot ${round}`).toMatchObject({ type: "disk" });
      expect(await nodeOf(machine)).toMatchObject({ arch: "x86_64", boot_mode: "bios" });
    },
  );

  test("boots as its firmware says, whatever was guessed at its registration", async () => {
    await api.ask("POST", "/api/v1/workflows", {
      id: "uefi",
      name: "uefi",
      boot_mode: "uefi",
      boot: boot(IMAGE_DIGEST),
    });
    const machine = await approved("uefi");
    expect(await machine.boot("&platform=pcbios")).toMatchObject({
      screen: expect.stringContaining("boots with bios"),
    });
    expect(await machine.boot("&platform=efi")).toMatchObject({ type: "kernel" });
    expect((await nodeOf(machine)).boot_mode).toBe("uefi");
  });
});

describe("a script", () => {
  test.each([
    ["cmdline", { cmdline: "quiet\nshell" }],
    ["cmdline", { cmdline: "quiet || shell" }],
    ["cmdline", { cmdline: "quiet ; shell" }],
    ["kernel_url", { kernel_url: "/files/a b" }],
    ["kernel_url", { kernel_url: "http://x/a\nshell" }],
    ["kernel_url", { kernel_url: "files/vmlinuz" }],
    ["initrd_url", { initrd_url: "javascript:alert(1)" }],
    ["image_url", { image_url: "tftp://x/image" }],
    ["target_device", { target_device: "/dev/sda millwright.image=http://x" }],
  ])("cannot be broken out of by a workflow's %s: %j", async (field, more) => {
    const answer = await api.call<{ detail: { loc: string[] }[] }>("POST", "/api/v1/workflows", {
      name: "broken",
      boot: boot(IMAGE_DIGEST, more),
    });
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0]?.loc).toContain(field);
  });

  test("names the server as the machine found it, and a Host that is none is refused", async () => {
    expect(await askAs("boot.example:8080")).toMatchObject({
      status: 200,
      text: expect.stringContaining(`http://boot.example:8080/api/v1/boot?mac=${variable("netX/mac")}&`),
    });
    expect(await askAs("[fd00::1]:8080")).toMatchObject({
      status: 200,
      text: expect.stringContaining("http://[fd00::1]:8080/"),
    });
    expect(await askAs("x || shell")).toMatchObject({ status: 400 });
  });
});

/** The first script, asked for under a name that `fetch` would not let us choose. */
function askAs(host: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    request(`${api.url}/api/v1/boot.ipxe`, { headers: { host } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
    })
      .on("error", reject)
      .end();
  });
}

describe("where report tokens are required", () => {
  let strict: InstallsUnderTest;
  beforeAll(async () => {
    strict = await startInstalls({ filesDirectory: files, requireTokens: true });
    await addWorkflow(strict, "good", IMAGE_DIGEST);
  });
  afterAll(() => strict.close());

  test("only the node's last boot may report", async () => {
    const machine = await approved("good", strict);
    const before = await machine.boot();
    // Ordered anew: what an earlier boot was given is worth nothing.
    for (const state of ["install_failed", "pending"]) {
      if (state === "pending") await strict.move(idOf(machine), state);
      else await strict.place(idOf(machine), state);
    }
    const now = await machine.boot();
    const again = await machine.boot();
    if (before.type !== "kernel" || now.type !== "kernel" || again.type !== "kernel")
      throw new Error("it did not boot a kernel");
    expect(before.words.token).not.toBe(now.words.token);
    expect(again.words.token).toBe(now.words.token);
    for (const report_token of [undefined, "", "guess", before.words.token])
      expect((await machine.report({ installation_status: "started", report_token })).status).toBe(401);
    expect((await nodeOf(machine, strict)).state).toBe("pending");
    // Under the ids that the strangers used.
    expect(await machine.install()).toBe("Installation completed");
  });
});

test("an attempt that is never heard of again counts as failed, and so does the one after it", async () => {
  const hasty = await startInstalls({ filesDirectory: files, engine: true, installTimeout: milliseconds(300) });
  try {
    await addWorkflow(hasty, "good", IMAGE_DIGEST);
    const machine = await approved("good", hasty);
    await machine.boot();
    await machine.report({ installation_status: "started" });
    const failed = await eventually(
      async () => {
        const node = await nodeOf(machine, hasty);
        return node.state === "install_failed" && node;
      },
      { what: "the node is install_failed" },
    );
    expect(failed).toMatchObject({ install_attempts: 3, last_install_error: expect.stringContaining("not complete") });
  } finally {
    await hasty.close();
  }
});

describe("erasing", () => {
  beforeAll(() => {
    api.boot.eraser = { method: "kernel", kernel_url: "/files/vmlinuz", initrd_url: "/files/initrd", cmdline: "" };
  });

  async function toErase(): Promise<ScriptedMachine> {
    const machine = await approved("good");
    await machine.boot();
    await machine.install();
    for (const state of ["active", "deprovisioning"]) await api.move(idOf(machine), state);
    return machine;
  }

  test("retires a node once each of its disks was read back", async () => {
    const machine = await toErase();
    expect(await machine.boot()).toMatchObject({ type: "kernel", words: { task: "erase" } });
    for (const disk of ["/dev/sda", "/dev/sdb"]) expect((await machine.eraseDisk(disk)).status).toBe(200);
    expect((await nodeOf(machine)).state).toBe("deprovisioning");
    expect((await machine.erased("/dev/sda", "/dev/sdb")).body.message).toBe("Node erased and retired");
    expect(await nodeOf(machine)).toMatchObject({
      state: "retired",
      erased_disks: [
        { disk: "/dev/sda", serial: "serial of /dev/sda", method: "overwrite", verified: true },
        { disk: "/dev/sdb", serial: "serial of /dev/sdb", method: "overwrite", verified: true },
      ],
    });
  });

  test.each([
    ["names a disk that nothing was told of", ["/dev/sda"], [], ["/dev/sda", "/dev/sdb"], "nothing of /dev/sdb"],
    ["leaves out a disk that was told of", ["/dev/sda", "/dev/sdb"], [], ["/dev/sda"], "without naming /dev/sdb"],
    ["names no disk", [], [], [], "without naming a disk"],
    [
      "follows a disk that was not read back",
      ["/dev/sda"],
      ["/dev/sdb"],
      ["/dev/sda", "/dev/sdb"],
      "/dev/sdb could not be verified",
    ],
  ])("is not over when the report %s: that is recorded, and shown", async (_, good, bad, named, why) => {
    const machine = await toErase();
    await machine.boot();
    for (const disk of good) await machine.eraseDisk(disk);
    for (const disk of bad) await machine.eraseDisk(disk, false);
    expect((await machine.erased(...named)).status).toBe(200);
    expect(await nodeOf(machine)).toMatchObject({
      state: "deprovisioning",
      last_install_error: expect.stringContaining(why),
    });
    expect(await eventsOf(machine, "report_ignored")).toMatchObject([{ message: expect.stringContaining(why) }]);
    // The next boot begins anew, with disks that may have other names.
    await machine.boot();
    expect((await nodeOf(machine)).erased_disks).toEqual([]);
    await machine.eraseDisk("/dev/nvme0n1");
    await machine.erased("/dev/nvme0n1");
    expect(await nodeOf(machine)).toMatchObject({ state: "retired", last_install_error: null });
  });

  test("is believed of nobody but the boot that was told to do it", async () => {
    const machine = await toErase();
    await machine.boot();
    const erased_disk = { disk: "/dev/sda", method: "overwrite", verified: true };
    const stranger = { report_token: "guess" };
    expect((await machine.report({ event: "disk_erased", erased_disk, ...stranger })).status).toBe(401);
    expect((await machine.report({ event: "erased", erased_disks: ["/dev/sda"], ...stranger })).status).toBe(401);
    expect(await nodeOf(machine)).toMatchObject({ state: "deprovisioning", erased_disks: [] });
  });

  test("is not believed of the boot that installed it: its token is worth nothing by now", async () => {
    const machine = await toErase();
    expect((await machine.eraseDisk("/dev/sda")).status).toBe(401);
    expect((await machine.erased("/dev/sda")).status).toBe(401);
    expect(await nodeOf(machine)).toMatchObject({ state: "deprovisioning", erased_disks: [] });
  });

  test("that fails says why", async () => {
    const machine = await toErase();
    await machine.boot();
    await machine.report({ event: "erase_failed", installation_error: "no disk was found" });
    expect(await nodeOf(machine)).toMatchObject({ state: "deprovisioning", last_install_error: "no disk was found" });
  });

  test("needs to be told which disk", async () => {
    const machine = await toErase();
    await machine.boot();
    const answer = await machine.report({ event: "disk_erased" });
    expect(answer.status).toBe(422);
    expect(answer.text).toContain("erased_disk");
  });

  test("is refused where there is no environment for it", async () => {
    const poor = await startInstalls({ canErase: false });
    try {
      const { id } = await poor.register();
      await poor.place(id, "active");
      const refused = await poor.call<{ detail: string }>("PATCH", `/api/v1/nodes/${id}/state`, {
        state: "deprovisioning",
      });
      expect(refused.status).toBe(400);
      expect(refused.body.detail).toContain("install.erase.kernel");
      expect((await poor.ask("GET", `/api/v1/nodes/${id}`)).state).toBe("active");
    } finally {
      await poor.close();
    }
  });
});
