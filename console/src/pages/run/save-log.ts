import type { FollowedLog } from "./followed-log.ts";

/** The whole log, byte for byte as it was written, as a file. */
export async function saveLog(runId: string, log: FollowedLog): Promise<void> {
  await log.readAll();
  const file = URL.createObjectURL(new Blob(log.chunks.map(({ data }) => data as Uint8Array<ArrayBuffer>)));
  const link = document.createElement("a");
  link.href = file;
  link.download = `${runId}.log`;
  link.click();
  URL.revokeObjectURL(file);
}
