import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseCommandLine, USAGE } from "./command-line.ts";
import { InvalidInput } from "./invalid-input.ts";
import { startSimulator } from "./simulator.ts";

/** Exit codes of sysexits: wrong usage, and an error of our own. */
const EXIT_USAGE = 64;
const EXIT_FAILED = 1;

async function main(): Promise<void> {
  const { help, exitWithParent, options } = parseCommandLine(process.argv.slice(2));
  if (help) return void process.stdout.write(USAGE);

  const { promise: asked, resolve: stop } = Promise.withResolvers<void>();
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  if (exitWithParent) {
    // A killed parent cannot tell its children; the kernel closes its end of the pipe, and that tells us.
    process.stdin.once("end", stop).once("close", stop).once("error", stop).resume();
  }

  const simulator = await startSimulator({ ...options, log: (line) => process.stderr.write(`${line}\n`) });
  const { controlUrl, redfishPort } = simulator;
  const endpoints = join(options.dataDir, "simulator.json");
  writeFileSync(`${endpoints}.new`, `${JSON.stringify({ pid: process.pid, controlUrl, redfishPort })}\n`, {
    mode: 0o600,
  });
  renameSync(`${endpoints}.new`, endpoints);
  process.stdout.write(`${JSON.stringify({ ready: true, controlUrl, redfishPort })}\n`);

  await asked;
  rmSync(endpoints, { force: true });
  await simulator.close();
  process.exit(0);
}

// A reader that went away (a closed terminal, a killed parent) must not turn a log line into a crash.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

main().catch((error: unknown) => {
  const usage = error instanceof InvalidInput;
  process.stderr.write(`simulator: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(usage ? EXIT_USAGE : EXIT_FAILED);
});
