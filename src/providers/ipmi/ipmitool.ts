import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { messageOf, StepFailure } from "../../kernel/errors.ts";

/** How the program ended, and what it wrote. */
export interface ToolResult {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ToolCall {
  /** The program, by path or by name. */
  readonly command: string;
  readonly args: readonly string[];
  readonly password: string;
  /** Ends the program, at once. */
  readonly signal: AbortSignal;
}

export type RunTool = (call: ToolCall) => Promise<ToolResult>;

/** Far more than any answer that we ask for; what a BMC makes the program write beyond it is not kept. */
const MOST_OUTPUT = 1_024 * 1_024;

/**
 * Runs ipmitool without a shell. The password travels in its environment, where only this user and root can read it, and never
 * on the command line, which everybody on the machine can. Of our own environment it gets nothing but where programs lie.
 */
export const runIpmitool: RunTool = ({ command, args, password, signal }) =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", IPMI_PASSWORD: password, LC_ALL: "C", TZ: "UTC" };
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], signal, killSignal: "SIGKILL" });
    const stdout = collect(child, "stdout");
    const stderr = collect(child, "stderr");
    child.once("error", (error: NodeJS.ErrnoException) => {
      const missing = error.code === "ENOENT" || error.code === "EACCES";
      reject(missing ? notInstalled(command, error) : notStarted(command, error));
    });
    child.once("close", (code) => resolve({ code, stdout: stdout(), stderr: stderr() }));
  });

const notInstalled = (command: string, cause: Error): StepFailure =>
  new StepFailure(
    "not_on_this_server",
    `${command} cannot be run on this server, and BMCs that speak IPMI are reached with it: install the package ipmitool, or set ipmi.command`,
    { cause, disposition: "fail", facts: { what: "program", name: command } },
  );

/** Too many programs or open files at this moment; or it was stopped, which whoever stopped it says in better words. */
const notStarted = (command: string, cause: NodeJS.ErrnoException): StepFailure =>
  new StepFailure(
    "not_on_this_server",
    `${command} cannot be run on this server now: ${cause.code ?? messageOf(cause)}`,
    {
      cause,
      facts: { what: "program", name: command },
    },
  );

function collect(child: ChildProcessByStdio<null, Readable, Readable>, stream: "stdout" | "stderr"): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  // A process for which there were no files left has no streams.
  (child[stream] as Readable | null | undefined)?.on("data", (chunk: Buffer) => {
    if (size < MOST_OUTPUT) chunks.push(chunk);
    size += chunk.length;
  });
  return () => Buffer.concat(chunks).subarray(0, MOST_OUTPUT).toString("utf8");
}
