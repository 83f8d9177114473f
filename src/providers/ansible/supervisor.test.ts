import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { SUPERVISOR } from "./supervisor.ts";

/** One that has ended, and that nobody has asked for, is not alive. */
const isAlive = (pid: number): boolean => {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

/** A command with a child in a session of its own, which says its process id. */
async function supervise(
  command: string,
): Promise<{ child: ChildProcess; pid: number; directory: string; exit: Promise<unknown> }> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-supervised-"));
  const child = spawn("bash", ["-c", SUPERVISOR, "play", directory, "1", "sh", "-c", command], {
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
  });
  child.stdin?.on("error", () => undefined);
  const exit = new Promise((resolve) => child.once("exit", resolve));
  const pid = await new Promise<number>((resolve) =>
    child.stdout?.once("data", (text: Buffer) => resolve(Number(text))),
  );
  return { child, pid, directory, exit };
}
const ENDLESS = "setsid sleep 1000 & echo $!; wait";
/** Says its process id when its parent has ended, so that it is no child of the command any more. */
const ORPHAN = "orphan=$(setsid sleep 60 >/dev/null & echo $!); echo $orphan";

describe("the supervisor of a play", () => {
  test("lets it go on while lines come, and ends with its exit code", async () => {
    const { child, exit, directory } = await supervise("echo $$; sleep 2; exit 7");
    const beating = setInterval(() => child.stdin?.write("\n"), 200);
    expect(await exit).toBe(7);
    clearInterval(beating);
    expect(existsSync(directory)).toBe(false);
  });

  const gone = async (pid: number) => {
    for (let left = 20; isAlive(pid) && left > 0; left -= 1) await pause(50);
    return !isAlive(pid);
  };

  test.each([
    ["its server is gone", ENDLESS, (child: ChildProcess) => void child.stdin?.end()],
    ["its server stands still", ENDLESS, () => undefined],
    ["its server is gone, with orphans", `${ORPHAN}; sleep 1000`, (child: ChildProcess) => void child.stdin?.end()],
    ["it ends by itself and leaves orphans", ORPHAN, () => undefined],
  ])("ends all of it when %s, and removes what it was given", async (_, command, cause) => {
    const { child, pid, exit, directory } = await supervise(command);
    cause(child);
    await exit;
    expect(await gone(pid)).toBe(true);
    expect(existsSync(directory)).toBe(false);
  });
});
