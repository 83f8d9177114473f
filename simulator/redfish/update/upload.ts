import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** An image that came as the body of a request: its beginning, how long it is, and what it is. The rest is not kept. */
export interface Upload {
  readonly contentType: string;
  readonly head: Buffer;
  readonly bytes: number;
  /** Of the whole body. */
  readonly digest: string;
}

const HEAD_KEPT = 65_536;

/** Throws when the sender goes away within it. */
export async function readUpload(request: IncomingMessage): Promise<Upload> {
  const hash = createHash("sha256");
  const head: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if (bytes < HEAD_KEPT) head.push(chunk.subarray(0, HEAD_KEPT - bytes));
    bytes += chunk.length;
    hash.update(chunk);
  }
  const contentType = request.headers["content-type"] ?? "";
  return { contentType, head: Buffer.concat(head), bytes, digest: `sha256:${hash.digest("hex")}` };
}
