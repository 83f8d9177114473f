import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../kernel/log.ts";

/** Only a checkout has it: a package has its console built already. */
const BUILD = join(import.meta.dirname, "..", "..", "..", "scripts", "console", "build.ts");

/**
 * Builds the console where its sources differ from what was built. Resolves in any case: without a console, or with that of an earlier
 * build, everything else works.
 */
export async function buildConsole({
  log,
  signal,
}: {
  readonly log: Log;
  readonly signal: AbortSignal;
}): Promise<void> {
  if (!existsSync(BUILD)) return;
  const child = spawn(process.execPath, [BUILD, "--if-changed"], { stdio: ["ignore", "ignore", "pipe"], signal });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = `${said}${chunk.toString()}`.slice(-4_000);
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once("error", () => resolve(null));
    child.once("close", resolve);
  });
  if (code !== 0 && !signal.aborted)
    log.warn({ output: said.trim() }, "the console could not be built; the API works without it");
}
