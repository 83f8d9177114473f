import { hash } from "node:crypto";

const WITHIN_MS = 5_000;
const MOST_BYTES = 64 * 1_024 * 1_024;

/** What a controller has of a medium that it downloads, or why it has nothing. */
export type Fetched = { readonly content: Buffer } | { readonly why: string };

export async function fetchMedium(url: string): Promise<Fetched> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(WITHIN_MS) });
    if (!answer.ok) return { why: `status ${answer.status}` };
    const content = Buffer.from(await answer.arrayBuffer());
    return content.length > MOST_BYTES ? { why: "it is too large" } : { content };
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
}

export const sha256Of = (content: Buffer): string => `sha256:${hash("sha256", content)}`;
