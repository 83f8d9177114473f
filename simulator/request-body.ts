import type { IncomingMessage } from "node:http";

/** More than any request of either API needs. */
const MOST_BODY_BYTES = 65_536;

/** Undefined when the body is too large; the rest of it is then read and thrown away, so that the answer can be delivered. */
export async function readBody(request: IncomingMessage, most = MOST_BODY_BYTES): Promise<string | undefined> {
  if (request.headers["content-length"] === undefined && request.headers["transfer-encoding"] === undefined) return "";
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= most) chunks.push(chunk);
  }
  return size > most ? undefined : Buffer.concat(chunks).toString("utf8");
}

/** Splits without `new URL`, which throws on what clients may well send. */
export function splitTarget(target: string | undefined): { path: string; query: string } {
  const [whole = "/"] = (target ?? "/").split("#");
  const mark = whole.indexOf("?");
  return mark === -1 ? { path: whole, query: "" } : { path: whole.slice(0, mark), query: whole.slice(mark + 1) };
}
