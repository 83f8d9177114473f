import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly command: string;
}

/** Living processes that name the directory in their command line or work in it: a server, its database, its simulator. */
export function processesIn(directory: string): ProcessEntry[] {
  return living(
    (pid, command) => command.includes(directory) || readlinkSync(`/proc/${pid}/cwd`).startsWith(directory),
  );
}

/** Living processes of ours that were told of the directory by their environment. */
export function processesTold(directory: string): ProcessEntry[] {
  return living((pid) => readFileSync(`/proc/${pid}/environ`, "utf8").includes(directory));
}

function living(isMeant: (pid: number, command: string) => boolean): ProcessEntry[] {
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!/^\d+$/.test(name) || pid === process.pid) return [];
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      const isZombie = /^State:\s+[ZX]/m.test(readFileSync(`/proc/${name}/status`, "utf8"));
      return !isZombie && isMeant(pid, command) ? [{ pid, command }] : [];
    } catch {
      return []; // it ended while we looked, or is another user's
    }
  });
}

/** With kill -9. A process may end by itself meanwhile, such as a database's when its parent was killed first. */
export function killAll(processes: readonly ProcessEntry[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** What the process holds in memory now, in bytes. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (!line) throw new Error(`process ${pid} has no VmRSS: is it still there?`);
  return Number(line[1]) * 1_024;
}

/** Whether the process was stopped by SIGSTOP and waits to be continued. */
export const isPaused = (pid: number): boolean => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
