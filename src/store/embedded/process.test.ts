import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { findProcess, isRunning, ownIdentity, waitForExit, workingDirectory } from "./process.ts";

test("we ourselves run, under no other start or boot than ours", () => {
  const self = ownIdentity();
  expect(self.pid).toBe(process.pid);
  expect(isRunning(self)).toBe(true);
  expect(isRunning({ ...self, startTicks: self.startTicks - 1 })).toBe(false);
  expect(isRunning({ ...self, bootId: "another" })).toBe(false);
  expect(workingDirectory(process.pid)).toBe(process.cwd());
});

test("a process is awaited until it is gone, and only so long", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  await once(child, "spawn");
  const identity = findProcess(child.pid ?? 0);
  expect(identity).toBeDefined();
  if (identity === undefined) return;
  expect(await waitForExit(identity, 30)).toBe(false);
  child.kill("SIGKILL");
  expect(await waitForExit(identity, 5_000)).toBe(true);
  expect(findProcess(identity.pid)).toBeUndefined();
});

test("a dead process that its parent has not collected is dead", async () => {
  // The shell's child ends at once; what the shell has become does not collect it.
  const parent = spawn("/bin/sh", [
    "-c",
    'sleep 0 & echo $!; exec "$0" -e "setInterval(() => {}, 1000)"',
    process.execPath,
  ]);
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  await expect.poll(() => findProcess(pid), { timeout: 9_000 }).toBeUndefined();
  parent.kill("SIGKILL");
});
