import { join } from "node:path";
import { describeBuild, readBuild } from "../config/build.ts";
import { EXIT } from "./client/errors.ts";
import { runCli } from "./run-cli.ts";
import { createProcessTerminal } from "./terminal/process-terminal.ts";

const version = describeBuild(readBuild(join(import.meta.dirname, "..", "..")));

// Whoever reads our output may stop reading (`| head`); that is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? EXIT.ok : EXIT.internal));
}

const code = await runCli(process.argv.slice(2), { version, terminal: createProcessTerminal() });
// What a pipe did not take at once is still ours, and would be lost.
const handedOver = (stream: NodeJS.WriteStream) => new Promise<void>((resolve) => stream.write("", () => resolve()));
await Promise.all([process.stdout, process.stderr].map(handedOver));
// Idle connections to the server would hold the process for seconds.
process.exit(code);
