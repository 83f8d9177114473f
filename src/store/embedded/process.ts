import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/**
 * One process, for all time: a pid alone is given out again, sooner or later to a stranger,
 * and after a reboot or in another container at once.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks between boot and the start of the process. */
  readonly startTicks: number;
  readonly bootId: string;
}

const bootId = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** The live process with this pid; a zombie is dead, although its parent has not collected it yet. */
export function findProcess(pid: number): ProcessIdentity | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The second field is the command in brackets and may hold blanks and brackets itself.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[0];
  if (state === "Z" || state === "X") return undefined;
  return { pid, startTicks: Number(fields[19]), bootId: bootId() };
}

export function isRunning(identity: ProcessIdentity): boolean {
  const found = findProcess(identity.pid);
  return found !== undefined && found.startTicks === identity.startTicks && found.bootId === identity.bootId;
}

export function ownIdentity(): ProcessIdentity {
  const self = findProcess(process.pid);
  if (self === undefined) throw new Error("this process is not in /proc: the embedded database needs a mounted /proc");
  return self;
}

/** The directory a process works in; undefined when it is gone or belongs to somebody else. */
export function workingDirectory(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

/** True once the process is gone, false when it still runs after `timeoutMs`. Works for processes that are not our children. */
export async function waitForExit(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (isRunning(identity)) {
    if (performance.now() > deadline) return false;
    await delay(20);
  }
  return true;
}
