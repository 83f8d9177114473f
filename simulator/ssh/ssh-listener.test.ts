import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createSeededValues } from "../seeded-values.ts";
import { signIn } from "../testing/ssh-client.ts";
import { type MachineRow, startTemporarySimulator, temporaryDataDir } from "../testing/temporary-simulator.ts";
import { ed25519Key } from "./ed25519-key.ts";

interface Device {
  readonly os: { readonly up: boolean; readonly boot_id: string; readonly host_key: string };
  readonly effects: Readonly<Record<string, number>>;
}

const files = temporaryDataDir();
let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
let rows: MachineRow[];
const reports: string[] = [];

beforeAll(async () => {
  const file = join(files.path, "site.json");
  writeFileSync(
    file,
    JSON.stringify({
      racks: [
        { shelves: 0, machines: 12 },
        { shelves: 0, machines: 1, behind_bastion: true },
      ],
    }),
  );
  site = await startTemporarySimulator({ site: file, speed: 1_000, log: (line) => reports.push(line) });
  rows = (await site.control<MachineRow[]>("GET", "/inventory/machines")).body;
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  files[Symbol.dispose]();
  expect(reports).toEqual([]);
});
beforeEach(async () => {
  await site.control("DELETE", "/faults");
});

const row = (id: string): MachineRow => {
  const found = rows.find(({ machine_id }) => machine_id === id);
  if (found === undefined) throw new Error(`no machine ${id}`);
  return found;
};
const device = async (id: string) => (await site.control<Device>("GET", `/devices/${id}`)).body;

describe("SSH to a machine", () => {
  test("opens with the site's key, shows the machine's host key, and says which boot is up", async () => {
    using shell = await signIn(row("m-rack1-01"));
    const { os } = await device("m-rack1-01");
    expect(shell.hostKey).toBe(os.host_key);
    expect(await shell.run("cat /proc/sys/kernel/random/boot_id")).toEqual({
      code: 0,
      stdout: `${os.boot_id}\n`,
      stderr: "",
    });
    expect((await shell.run("cat /sys/class/dmi/id/product_uuid")).stdout.trim()).toBe(row("m-rack1-01").system_uuid);
    expect((await device("m-rack1-01")).effects.ssh_commands).toBe(2);
  });

  test("opens with the machine's password, and for ubuntu too", async () => {
    const { ssh_password } = row("m-rack1-01");
    using shell = await signIn(row("m-rack1-01"), { username: "ubuntu", password: ssh_password });
    expect((await shell.run("whoami")).stdout).toBe("ubuntu\n");
  });

  test.each([
    ["another key", { privateKey: ed25519Key(createSeededValues(99).hex("x", 64)).privateKey }],
    ["another password", { password: "wrong" }],
    ["another user", { username: "nobody" }],
  ])("stays closed to %s", async (_what, how) => {
    await expect(signIn(row("m-rack1-01"), how)).rejects.toThrow(/authentication methods failed/);
  });

  test("takes a script on standard input, with variables from both sides", async () => {
    using shell = await signIn(row("m-rack1-01"));
    const script = `set -eu
if [ "$MODE" = full ]; then
  echo "mode $MODE on $(hostname)"
fi
echo trouble >&2
false || exit 7
echo never
`;
    expect(await shell.run("MODE=full sh -s", { stdin: script })).toEqual({
      code: 7,
      stdout: "mode full on m-rack1-01\n",
      stderr: "trouble\n",
    });
    expect((await shell.run("sh -s -- a b", { stdin: 'echo "$2 $GREETING"', env: { GREETING: "hi" } })).stdout).toBe(
      "b hi\n",
    );
  });

  test("answers 127 for what it does not know", async () => {
    using shell = await signIn(row("m-rack1-01"));
    expect(await shell.run("frobnicate --all")).toMatchObject({
      code: 127,
      stderr: expect.stringContaining("not found"),
    });
  });

  test("ends with the machine's reboot, and is there again with another boot id", async () => {
    const id = "m-rack1-02";
    using shell = await signIn(row(id));
    const before = (await shell.run("cat /proc/sys/kernel/random/boot_id")).stdout;
    const closed = new Promise<void>((resolve) => shell.client.on("close", () => resolve()));
    shell.client.on("error", () => {});
    expect((await shell.run("sudo systemctl reboot")).code).toBe(0);
    await closed;
    await expect.poll(async () => (await device(id)).os.up, { timeout: 9_000 }).toBe(true);
    using again = await signIn(row(id));
    expect((await again.run("cat /proc/sys/kernel/random/boot_id")).stdout).not.toBe(before);
    expect((await device(id)).effects).toMatchObject({ boots: 1, reboots_from_inside: 1, resets: 0 });
  });

  test("is refused while the machine is off, and ends when it crashes", async () => {
    const id = "m-rack1-03";
    using shell = await signIn(row(id));
    shell.client.on("error", () => {});
    const closed = new Promise<void>((resolve) => shell.client.on("close", () => resolve()));
    const waiting = shell.run("sleep 1000h");
    await expect.poll(async () => (await device(id)).effects.ssh_commands, { timeout: 9_000 }).toBe(1);
    await site.control("POST", `/devices/${id}/crash`);
    await closed;
    expect((await waiting).code).toBeNull();
    await expect(signIn(row(id))).rejects.toThrow(/ECONNRESET|closed|socket/i);
    await site.control("POST", `/devices/${id}/power`, { power: "off" });
    await expect(signIn(row(id))).rejects.toThrow(/ECONNRESET|closed|socket/i);
  });

  test("can be refused, silent, or somebody else's", async () => {
    const id = "m-rack1-04";
    await site.control("POST", "/faults", { device: id, fault: { type: "ssh_refused" }, times: 1 });
    await expect(signIn(row(id))).rejects.toThrow(/ECONNRESET|closed|socket/i);
    await site.control("POST", "/faults", { device: id, fault: { type: "wrong_host_key" }, times: 1 });
    using impostor = await signIn(row(id));
    using honest = await signIn(row(id));
    expect(impostor.hostKey).not.toBe(honest.hostKey);
    expect(honest.hostKey).toBe((await device(id)).os.host_key);
    await site.control("POST", "/faults", { device: id, fault: { type: "ssh_hang" } });
    const hung = signIn(row(id));
    const first = await Promise.race([hung.catch(() => "failed"), site.control("GET", "/faults").then(() => "silent")]);
    expect(first).toBe("silent");
    await site.control("POST", `/devices/${id}/power`, { power: "off" });
    await expect(hung).rejects.toThrow();
  });
});

describe("the bastion", () => {
  const bastion = async () => {
    const { body } = await site.control<{ endpoint: string; username: string; private_key: string }>("GET", "/bastion");
    return { ssh_endpoint: body.endpoint, ssh_username: body.username, ssh_private_key: body.private_key };
  };

  test("is the only way to a machine behind it, whose inventory row says so", async () => {
    const hidden = row("m-rack2-01");
    expect(hidden.jump?.endpoint).toMatch(/^127\.66\.0\.1:/);
    await expect(signIn(hidden)).rejects.toThrow(/ECONNRESET|closed|socket/i);
    using jump = await signIn(await bastion());
    using shell = await signIn(hidden, { through: await jump.forward(hidden.ssh_endpoint) });
    expect((await shell.run("hostname")).stdout).toBe("m-rack2-01\n");
  });

  test("leads nowhere else, and runs nothing", async () => {
    using jump = await signIn(await bastion());
    await expect(jump.forward(`127.0.0.1:${new URL(site.simulator.controlUrl).port}`)).rejects.toThrow(/refused|fail/i);
    expect((await jump.run("hostname")).code).toBe(1);
  });
});
