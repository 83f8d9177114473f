import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../eventually.ts";
import { killAll, processesIn } from "./process-table.ts";

export const ROOT = join(import.meta.dirname, "..", "..", "..");

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface StartOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Nothing is inherited, not even where programs are. */
  readonly emptyEnvironment?: boolean;
}

/** A process that a test started. What it says is kept for failure messages. */
export interface StartedProcess {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  hasExited(): boolean;
  stdout(): string;
  stderr(): string;
  /** All of its output, for people. */
  transcript(): string;
  signal(name: NodeJS.Signals): void;
  /** As Ctrl-C does: to all processes of its group. */
  signalGroup(name: NodeJS.Signals): void;
  /** Resolves with what the pattern matched on standard output; fails when the process ends before. */
  said(pattern: RegExp, within?: number): Promise<RegExpExecArray>;
}

/** A directory of its own, and everything that runs in it. */
export interface ProcessBench {
  readonly directory: string;
  start(options: StartOptions): StartedProcess;
  /** Kills what is left, and fails if any of it was not started by `start`: somebody left a process behind. */
  close(): Promise<void>;
}

export function openProcessBench(): ProcessBench {
  const directory = mkdtempSync(join(tmpdir(), "millwright-processes-"));
  chmodSync(directory, 0o711); // as root, the embedded database runs as another user, who must get through
  const started = new Set<StartedProcess>();
  return {
    directory,
    start(options) {
      const process = startProcess(options);
      started.add(process);
      return process;
    },
    async close() {
      for (const one of started) if (!one.hasExited()) one.signal("SIGKILL");
      await Promise.all([...started].map((one) => one.exited));
      // A simulator notices within moments that its parent is gone; a database without its server has to be ended here.
      await eventually(async () => processesIn(directory).every(isDatabase), {
        what: "everything but a database has ended with the process that started it",
        within: 30_000,
        seen: () => JSON.stringify(processesIn(directory)),
      }).finally(async () => {
        killAll(processesIn(directory));
        await eventually(async () => processesIn(directory).length === 0, { what: `nothing is left in ${directory}` });
        rmSync(directory, { recursive: true, force: true });
      });
    },
  };
}

const isDatabase = ({ command }: { readonly command: string }) => /postgres/.test(command.split(" ", 1)[0] ?? "");

function startProcess({ command, args, env = {}, emptyEnvironment = false }: StartOptions): StartedProcess {
  const inherited = emptyEnvironment
    ? {}
    : { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(ROOT, "node_modules", ".cache", "millwright") };
  const child = spawn(command, [...args], {
    cwd: ROOT,
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const output = collectOutput(child);
  let exit: Exit | undefined;
  const exited = once(child, "close").then(([code, signal]): Exit => {
    exit = { code: code as number | null, signal: signal as NodeJS.Signals | null };
    return exit;
  });
  const pid = child.pid ?? 0;
  if (pid === 0) throw new Error(`${command} cannot be started`);
  const transcript = () =>
    `--- ${command} ${args.join(" ")} (pid ${pid}, ${exit ? `ended ${JSON.stringify(exit)}` : "running"})\n${output.stdout()}${output.stderr()}---`;
  return {
    pid,
    exited,
    hasExited: () => exit !== undefined,
    ...output,
    transcript,
    signal: (name) => void child.kill(name),
    signalGroup: (name) => void process.kill(-pid, name),
    said: (pattern, within = 60_000) =>
      eventually(
        async () => {
          const match = pattern.exec(output.stdout());
          if (match) return match;
          if (exit) return { ended: true } as const;
          return undefined;
        },
        { what: `it says ${pattern}`, within, seen: transcript },
      ).then((found) => {
        if ("ended" in found) throw new Error(`it ended before it said ${pattern}\n${transcript()}`);
        return found;
      }),
  };
}

/** Bounded: a chatty process must not take the test down with it. */
const MOST_CHARACTERS = 4_000_000;

function collectOutput(child: ChildProcess): { stdout(): string; stderr(): string } {
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (chunk: string) => {
      texts[name] = (texts[name] + chunk).slice(-MOST_CHARACTERS);
    });
  }
  return { stdout: () => texts.stdout, stderr: () => texts.stderr };
}
