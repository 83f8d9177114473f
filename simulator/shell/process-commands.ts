import type { CommandCall } from "./commands.ts";
import { processesOf } from "./processes.ts";

/** Ends processes in the background, by their number or that of their group; `-0` and `-s 0` only ask. */
export function kill({ args, io, session: { machine } }: CommandCall): number {
  const processes = processesOf(machine);
  const { onlyAsks, pids } = readKill(args);
  let code = 0;
  for (const pid of pids) {
    const isThere = onlyAsks ? processes.find(Math.abs(pid)) !== undefined : processes.end(Math.abs(pid));
    if (isThere) continue;
    io.error(`sh: kill: (${pid}) - No such process\n`);
    code = 1;
  }
  return code;
}

function readKill(args: readonly string[]): { onlyAsks: boolean; pids: number[] } {
  const pids: number[] = [];
  let onlyAsks = false;
  let areAllPids = false;
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? "";
    if (areAllPids || !arg.startsWith("-")) pids.push(Number.parseInt(arg, 10));
    else if (arg === "--") areAllPids = true;
    else if (arg === "-s") onlyAsks ||= args[++index] === "0";
    else onlyAsks ||= arg === "-0";
  }
  return { onlyAsks, pids };
}
