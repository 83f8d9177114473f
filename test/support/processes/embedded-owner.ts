import { silentLog } from "../../../src/kernel/log.ts";
import { startEmbedded } from "../../../src/store/embedded/embedded.ts";

/** A process that owns an embedded database: says so in one line, and stops it when its input ends. */
const [dataDir = ""] = process.argv.slice(2);
try {
  const embedded = await startEmbedded({ dataDir, log: silentLog });
  process.stdout.write(`${JSON.stringify({ url: embedded.url, adopted: embedded.adopted, pid: embedded.pid })}\n`);
  process.stdin.resume().once("end", () => void embedded.stop());
} catch (error) {
  process.stdout.write(`${JSON.stringify({ refused: error instanceof Error ? error.message : String(error) })}\n`);
}
