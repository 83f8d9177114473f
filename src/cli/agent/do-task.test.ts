import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseAgentConfig } from "./config.ts";
import { doTask } from "./do-task.ts";
import type { TaskType } from "./trusted-task.ts";
import { usedBy } from "./wipe.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-agent-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const full = (name: string, bytes = 3_000_000): string => {
  const path = join(directory, name);
  writeFileSync(path, Buffer.alloc(bytes, 0xa5));
  return path;
};
const isBlank = (path: string): boolean => readFileSync(path).every((byte) => byte === 0);
const never = new AbortController().signal;
const run = (type: TaskType, config: object, params = {}) =>
  doTask(parseAgentConfig(config, "agent.json"), { id: "ft-1", type, params }, never);

describe("cleaning storage", () => {
  test("overwrites all of each listed device, and reads it back", async () => {
    const [one, two, other] = [full("one"), full("two", 12_345), full("other")];
    expect(await run("node.cleanup_storage", { storage: { devices: [one, two] } })).toMatchObject({
      outcome: "completed",
      result: {
        devices: [
          { device: one, wiped: true },
          { device: two, wiped: true },
        ],
      },
    });
    expect([isBlank(one), isBlank(two), isBlank(other)]).toEqual([true, true, false]);
    expect(readFileSync(one)).toHaveLength(3_000_000);
  });

  test("wipes only what was asked for, and nothing at all where one of it is not listed", async () => {
    const [one, two, other] = [full("one"), full("two"), full("other")];
    const config = { storage: { devices: [one, two] } };
    expect(await run("node.cleanup_storage", config, { devices: [two] })).toMatchObject({ outcome: "completed" });
    expect([isBlank(one), isBlank(two)]).toEqual([false, true]);
    for (const devices of [[one, other], other, [{}], [null]])
      expect(await run("node.cleanup_storage", config, { devices })).toMatchObject({ outcome: "failed" });
    expect([isBlank(one), isBlank(other)]).toEqual([false, false]);
  });

  test("fails for what is no device, and says for each what became of it", async () => {
    const one = full("one");
    const gone = join(directory, "gone");
    expect(await run("node.cleanup_storage", { storage: { devices: [gone, one, directory] } })).toMatchObject({
      outcome: "failed",
      result: {
        devices: [
          { device: gone, wiped: false },
          { device: one, wiped: true },
          { device: directory, wiped: false },
        ],
      },
    });
  });

  test("leaves alone what is mounted, also in part", () => {
    const mounts = "/dev/nvme0n1p2 / ext4 rw 0 0\n/dev/sdaa1 /a ext4 rw 0 0\n/dev/sdb /b xfs rw 0 0\n";
    expect(["/dev/nvme0n1", "/dev/nvme0n1p2", "/dev/sdb", "/dev/sdaa"].map((each) => usedBy(each, mounts))).toEqual([
      "/dev/nvme0n1p2",
      "/dev/nvme0n1p2",
      "/dev/sdb",
      "/dev/sdaa1",
    ]);
    expect(["/dev/nvme0n", "/dev/nvme1n1", "/dev/sda"].map((each) => usedBy(each, mounts))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe("a node is clean", () => {
  test("where its devices are blank and its owner's check agrees", async () => {
    const one = full("one");
    const config = { storage: { devices: [one] }, validate: { command: ["/bin/true"] } };
    expect(await run("node.validate_clean", config)).toMatchObject({
      result: { clean: false, findings: [`${one} is not blank`] },
    });
    await run("node.cleanup_storage", config);
    expect(await run("node.validate_clean", config)).toMatchObject({ result: { clean: true, findings: [] } });
    const strict = { ...config, validate: { command: ["/bin/sh", "-c", "echo a job runs; exit 3"] } };
    expect(await run("node.validate_clean", strict)).toMatchObject({
      result: { clean: false, findings: ["/bin/sh ended with 3: a job runs"] },
    });
  });
});

describe("what the configuration does not say", () => {
  test.each<TaskType>(["node.drain", "node.cleanup_storage", "node.scrub_gpu", "node.validate_clean"])(
    "%s cannot be done, and the agent says so",
    async (type) => {
      expect(await run(type, {})).toMatchObject({
        outcome: "failed",
        message: expect.stringContaining("this agent cannot"),
      });
    },
  );

  test("is taken from nothing that the server sends", async () => {
    const marker = join(directory, "marker");
    const params = { command: ["/usr/bin/touch", marker], args: [marker], env: { A: `$(touch ${marker})` } };
    expect(await run("node.drain", { drain: { command: ["/bin/true", "$(touch x)"] } }, params)).toMatchObject({
      outcome: "completed",
      result: { drained: true },
    });
    expect(() => readFileSync(marker)).toThrow("ENOENT");
  });

  test("is refused where it is unknown, or no program of a fixed place", () => {
    for (const odd of [
      { shell: "rm" },
      { drain: { command: "rm -rf /" } },
      { drain: { command: ["rm"] } },
      { drain: { command: ["/bin/true"], timeout_seconds: 0 } },
      { storage: { devices: ["sda"] } },
      [],
    ])
      expect(() => parseAgentConfig(odd, "agent.json")).toThrow("agent.json");
  });
});

test("a program that does not end is ended", async () => {
  const config = { drain: { command: ["/bin/sleep", "600"], timeout_seconds: 0.05 } };
  expect(await run("node.drain", config)).toMatchObject({
    outcome: "failed",
    message: expect.stringContaining("SIGKILL"),
  });
});

test("health is what the owner's check says; without one the agent's own life is", async () => {
  expect(await run("diag.health_probe", {})).toMatchObject({ result: { health: "healthy" } });
  expect(await run("diag.health_probe", { health: { command: ["/bin/false"] } })).toMatchObject({
    result: { health: "unhealthy" },
  });
});
