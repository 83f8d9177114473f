import { spawn } from "node:child_process";
import { delimiter, join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "..");
const binaries = join(root, "node_modules", ".bin");

export interface ToolResult {
  readonly code: number | null;
  /** What it printed, standard output and errors in the order in which they came. */
  readonly output: string;
}

/** Runs a tool that `npm ci` installed, at the root of the checkout and on our own Node. */
export function runTool(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ToolResult> {
  return new Promise((done, fail) => {
    const child = spawn(join(binaries, name), args, {
      cwd: root,
      env: { ...process.env, PATH: `${binaries}${delimiter}${process.env.PATH ?? ""}`, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.once("error", fail);
    child.once("close", (code) => done({ code, output }));
  });
}
