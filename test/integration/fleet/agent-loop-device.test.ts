import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAgentConfig } from "../../../src/cli/agent/config.ts";
import { doTask } from "../../../src/cli/agent/do-task.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** The reference agent on a block device of this host: a file behind a loop device, which the kernel guards as it guards a disk. */
const BYTES = 4 * 1_024 * 1_024;
const command = (name: string, ...args: string[]) => spawnSync(name, args, { encoding: "utf8" });
const directory = mkdtempSync(join(tmpdir(), "millwright-loop-"));
const image = join(directory, "disk.img");
writeFileSync(image, Buffer.alloc(BYTES, 0x5a));
const attached = command("losetup", "--find", "--show", image);
const device = attached.stdout?.trim() ?? "";
const missing = attached.status === 0 ? "" : "util-linux (losetup), root and loop devices";
afterAll(() => {
  if (missing === "") command("losetup", "--detach", device);
  rmSync(directory, { recursive: true });
});

const cleanUp = () =>
  doTask(
    parseAgentConfig({ storage: { devices: [device] } }, "agent.json"),
    { id: "ft-1", type: "node.cleanup_storage", params: {} },
    new AbortController().signal,
  );
const onDisk = () => {
  command("sync");
  command("blockdev", "--flushbufs", device);
  return readFileSync(image);
};

const canMount = () => {
  const point = mkdtempSync(join(directory, "try-"));
  const made = command("mount", "-t", "tmpfs", "tmpfs", point).status === 0;
  if (made) command("umount", point);
  return made;
};

describe.skipIf(missing !== "")(needing("the agent on a block device", missing), () => {
  beforeAll(() => writeFileSync(image, Buffer.alloc(BYTES, 0x5a), { flag: "r+" }));

  test("wipes all of it, and reads it back", async () => {
    expect(await cleanUp()).toMatchObject({ outcome: "completed", result: { devices: [{ device, wiped: true }] } });
    const left = onDisk();
    expect(left).toHaveLength(BYTES);
    expect(left.every((byte) => byte === 0)).toBe(true);
  });

  const without = canMount() ? "" : "the right to mount";
  test.skipIf(without !== "")(needing("leaves alone one that is mounted, and says so", without), async () => {
    const mountPoint = mkdtempSync(join(directory, "mounted-"));
    expect(command("mkfs.ext4", "-q", "-F", device)).toMatchObject({ status: 0 });
    expect(command("mount", device, mountPoint)).toMatchObject({ status: 0 });
    try {
      writeFileSync(join(mountPoint, "data"), "of a tenant");
      expect(await cleanUp()).toMatchObject({
        outcome: "failed",
        message: expect.stringContaining("is in use"),
        result: { devices: [{ device, wiped: false }] },
      });
      expect(readFileSync(join(mountPoint, "data"), "utf8")).toBe("of a tenant");
    } finally {
      command("umount", mountPoint);
    }
    expect(await cleanUp()).toMatchObject({ outcome: "completed" });
  });
});
