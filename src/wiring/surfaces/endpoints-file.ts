import { accessSync, constants, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";

/** Tells local clients where this server listens; there only while it does. */
export interface EndpointsFile {
  remove(): void;
}

/** A server with a database and a key of its own elsewhere needs no data directory: a container may have a root that is read-only. */
export function makeDataDir(dataDir: string, log: Log): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.W_OK);
  } catch (error) {
    if (!isNotWritable(error)) throw error;
    const lost = `firmware files need firmware.directory, and a restored backup may not be recognised after a start (serve --restored)`;
    log.warn({ data_dir: dataDir, error: messageOf(error) }, `nothing can be written to the data directory: ${lost}`);
  }
}

const isNotWritable = (error: unknown): boolean =>
  error instanceof Error && "code" in error && ["EROFS", "EACCES", "EPERM"].includes(String(error.code));

export function writeEndpointsFile(
  dataDir: string,
  endpoints: { readonly http: string; readonly grpc: string },
  log: Log,
): EndpointsFile {
  const path = join(dataDir, "endpoints.json");
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, `${JSON.stringify({ ...endpoints, pid: process.pid })}\n`, { mode: 0o644 });
    renameSync(temporary, path);
  } catch (error) {
    // Command lines on this host have to be told where the server is; nothing else reads it.
    log.debug({ error: messageOf(error) }, "endpoints.json cannot be written");
    return { remove() {} };
  }
  return {
    remove() {
      // Another replica with the same directory may have written its own since.
      if (ownerOf(path) === process.pid) rmSync(path, { force: true });
    },
  };
}

function ownerOf(path: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(path, "utf8")) as { pid?: number }).pid;
  } catch {
    return undefined;
  }
}
