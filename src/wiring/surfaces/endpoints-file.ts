import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Tells local clients where this server listens; there only while it does. */
export interface EndpointsFile {
  remove(): void;
}

export function writeEndpointsFile(
  dataDir: string,
  endpoints: { readonly http: string; readonly grpc: string },
): EndpointsFile {
  const path = join(dataDir, "endpoints.json");
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, `${JSON.stringify({ ...endpoints, pid: process.pid })}\n`, { mode: 0o644 });
  renameSync(temporary, path);
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
