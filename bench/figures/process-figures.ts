import { readdirSync, readFileSync } from "node:fs";

/** Linux counts processor time in hundredths of a second. */
const TICKS = 100;

const statusOf = (pid: number, field: string): number => {
  const [, kilobytes = "0"] =
    new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1_024;
};

/** Memory as the system counts it, right now. */
export const residentMbOf = (pid: number): number => statusOf(pid, "VmRSS");
/** The most that it ever had. */
export const peakMbOf = (pid: number): number => statusOf(pid, "VmHWM");

/** The fields after the name of the program, which may contain anything. */
function fieldsOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text
    .slice(text.lastIndexOf(")") + 4)
    .split(" ")
    .map(Number);
}

/** Processor time that a process has taken. */
export function cpuSecondsOf(pid: number): number {
  const fields = fieldsOf(pid);
  return ((fields[10] ?? 0) + (fields[11] ?? 0)) / TICKS;
}

/** The same of a process and of all that it has started, also those that have ended. */
export function cpuSecondsOfAll(parent: number): number {
  const fields = fieldsOf(parent);
  const ended = ((fields[12] ?? 0) + (fields[13] ?? 0)) / TICKS;
  const children = readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    try {
      return fieldsOf(pid)[0] === parent ? [cpuSecondsOf(pid)] : [];
    } catch {
      return []; // it has ended meanwhile
    }
  });
  return children.reduce((sum, one) => sum + one, cpuSecondsOf(parent) + ended);
}
