import { hash } from "node:crypto";
import { realpathSync } from "node:fs";
import { createServer } from "node:net";

/**
 * One simulator per data directory; two would write over each other's devices.
 *
 * The lock is a Linux abstract socket rather than a file: the kernel drops it with the process, also after kill -9, so there
 * is never a stale one to judge.
 */
export async function lockDataDirectory(dataDir: string): Promise<() => void> {
  if (process.platform !== "linux") return () => {};
  const server = createServer((socket) => socket.destroy());
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(`\0millwright-simulator/${hash("sha256", realpathSync(dataDir)).slice(0, 32)}`, resolve);
  try {
    await promise;
  } catch (error) {
    throw new Error(`another simulator is running on ${dataDir}; stop it, or choose another data directory`, {
      cause: error,
    });
  }
  server.unref();
  return () => server.close();
}
