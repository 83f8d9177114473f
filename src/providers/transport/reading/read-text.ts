import type { IncomingMessage } from "node:http";

/** There is more of an answer than any that we ask for should have. */
export class TooLarge extends Error {}

/** The whole of an answer, as long as it is no larger than that. */
export async function readText(response: IncomingMessage, largest: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    size += chunk.length;
    if (size > largest) throw new TooLarge(`the answer is larger than ${largest} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
