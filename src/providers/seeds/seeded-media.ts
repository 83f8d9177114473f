import { createHash, type Hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { SeededMedia, SeededMedium, SeededOrder } from "../../capabilities/seeds/seeded-media.ts";
import { unlessAborted } from "../../kernel/time/unless-aborted.ts";
import type { Called } from "../transport/allowed-networks.ts";
import { createDownload, type DownloadOptions } from "../transport/download.ts";
import { addToVolume, type IsoAddition } from "./iso-addition.ts";
import { type IsoOutline, readOutline } from "./iso-outline.ts";
import { createReadIso, findSource, type IsoSource, namingImage, type ReadIso, unfit } from "./iso-source.ts";
import { createSlots, type Slots } from "./slots.ts";

const IMAGE_SERVER: Called = { at: "image_server", name: "image server", setting: "install.image_networks" };
/** Of what BMCs read of an image they read the neighbours next. */
const BLOCK_BYTES = 1_048_576;
/** In all, for all installations of this process. */
const MOST_BLOCKS = 32;
/** Of one image: who asks for a byte here and a byte there makes us fetch a block for each. */
const MOST_FETCHES = 8;
/** Up to so much at once is read in blocks that are kept; who asks for more reads on, and needs none of it again. */
const READ_IN_BLOCKS = 4 * BLOCK_BYTES;
const MOST_OUTLINES = 16;
/** More than are installed at the same time. */
const MOST_IMAGES = 1_000;
/** What many wait for must not end with the first who gives up. */
const LONGEST_BLOCK_MS = 120_000;

export type SeededMediaOptions = Pick<DownloadOptions, "mayReach" | "caCertificates">;

export function createSeededMedia(options: SeededMediaOptions): SeededMedia {
  const download = createDownload({ ...options, called: IMAGE_SERVER });
  const readIso = createReadIso(download);
  const blocks: Blocks = new LRUCache({ max: MOST_BLOCKS });
  const outlines = new LRUCache<string, Promise<IsoOutline>>({ max: MOST_OUTLINES });
  const fetches = new LRUCache<string, Slots>({ max: MOST_IMAGES });
  return {
    async examine(location, signal) {
      const source = await findSource(download, location, signal);
      // Not one that is kept: a server that says nothing of versions may have another one by now.
      const outline = await readOutlineOf(readIso, source, signal);
      checkAddition(source, outline);
      return { bytes: source.bytes, version: source.version, digest: outline.digest };
    },

    async open(order) {
      const { location, seen } = order;
      const source: IsoSource = { location, bytes: seen.bytes, version: seen.version };
      const outline = await once(outlines, keyOf(source), () =>
        readOutlineOf(readIso, source, AbortSignal.timeout(LONGEST_BLOCK_MS)),
      );
      if (outline.digest !== seen.digest)
        throw unfit(location, "is another one than it was when the installation began; start it again");
      const slots = fetches.get(location) ?? createSlots(MOST_FETCHES);
      fetches.set(location, slots);
      return mediumOf(order, addToVolume(outline, order.files, order.at), { source, readIso, blocks, slots });
    },
  };
}

/** An image to which nothing can be added is refused before the installation begins, and not each time that its BMC reads. */
function checkAddition({ location }: IsoSource, outline: IsoOutline): void {
  try {
    addToVolume(outline, [], new Date(0));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw unfit(location, "has directories to which no seed can be added");
  }
}

/** Who asks for what is on its way waits for that. What failed is asked for again by the next. */
function once<T>(known: LRUCache<string, Promise<T>>, key: string, ask: () => Promise<T>): Promise<T> {
  const found = known.get(key);
  if (found !== undefined) return found;
  const asked = ask();
  known.set(key, asked);
  asked.catch(() => known.peek(key) === asked && known.delete(key));
  return asked;
}

const keyOf = ({ location, bytes, version }: IsoSource): string => JSON.stringify([location, bytes, version]);

async function readOutlineOf(readIso: ReadIso, source: IsoSource, signal: AbortSignal): Promise<IsoOutline> {
  const readAt = async (offset: number, length: number) => {
    const parts: Buffer[] = [];
    for await (const part of readIso(source, { from: offset, to: offset + length - 1 }, signal)) parts.push(part);
    return Buffer.concat(parts);
  };
  try {
    return await readOutline(readAt, source.bytes);
  } catch (error) {
    throw namingImage(source.location, error);
  }
}

/**
 * A few pieces of images: a BMC that streams its medium asks for kilobytes at a time, and each of them would be a request to the image's
 * server.
 */
type Blocks = LRUCache<string, Promise<Buffer>>;

interface Reading {
  readonly source: IsoSource;
  readonly readIso: ReadIso;
  readonly blocks: Blocks;
  readonly slots: Slots;
}

function mediumOf({ location, digest }: SeededOrder, addition: IsoAddition, reading: Reading): SeededMedium {
  const { source } = reading;
  return {
    bytes: addition.bytes,
    async *read({ start, end }, signal) {
      const isWhole = start === 0 && end === addition.bytes - 1;
      const hash = isWhole ? createHash("sha256") : undefined;
      if (start < source.bytes) {
        const range = { from: start, to: Math.min(end, source.bytes - 1) };
        yield* patched(hashed(bytesOf(reading, range, signal), hash), start, addition);
      }
      const shown = hash && `sha256:${hash.digest("hex")}`;
      if (shown !== undefined && shown !== digest)
        throw unfit(location, `has the digest ${shown} instead of ${digest}`);
      const gap = Buffer.alloc(addition.tail.at - source.bytes);
      for (const [at, bytes] of [
        [source.bytes, gap],
        [addition.tail.at, addition.tail.bytes],
      ] as const) {
        const [from, to] = [Math.max(start, at), Math.min(end + 1, at + bytes.length)];
        if (from < to) yield bytes.subarray(from - at, to - at);
      }
    },
  };
}

async function* hashed(chunks: AsyncIterable<Buffer>, hash: Hash | undefined): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    hash?.update(chunk);
    yield chunk;
  }
}

async function* patched(
  chunks: AsyncIterable<Buffer>,
  start: number,
  { patches }: IsoAddition,
): AsyncGenerator<Buffer> {
  let at = start;
  for await (const chunk of chunks) {
    const [from, to] = [at, at + chunk.length];
    const inside = patches.filter((patch) => patch.at < to && patch.at + patch.bytes.length > from);
    // What is kept for others must stay as it is.
    const bytes = inside.length === 0 ? chunk : Buffer.from(chunk);
    for (const patch of inside) {
      const skipped = Math.max(0, from - patch.at);
      patch.bytes.copy(bytes, Math.max(0, patch.at - from), skipped);
    }
    yield bytes;
    at = to;
  }
}

async function* bytesOf(
  reading: Reading,
  { from, to }: { readonly from: number; readonly to: number },
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { source, readIso } = reading;
  if (to - from + 1 > READ_IN_BLOCKS) return yield* readIso(source, { from, to }, signal);
  for (let at = from; at <= to; ) {
    const number = Math.floor(at / BLOCK_BYTES);
    const block = await blockOf(reading, number, signal);
    const first = number * BLOCK_BYTES;
    const part = block.subarray(at - first, Math.min(to + 1 - first, block.length));
    yield part;
    at += part.length;
  }
}

async function blockOf(reading: Reading, number: number, signal: AbortSignal): Promise<Buffer> {
  const { source, blocks, slots } = reading;
  const key = `${keyOf(source)} ${number}`;
  signal.throwIfAborted();
  const known = blocks.get(key);
  if (known !== undefined) return unlessAborted(known, signal);
  const giveBack = await slots.take(signal);
  const fetching = once(blocks, key, () => fetchBlock(reading, number));
  // Not before it is here, though its reader may have left: others may wait for it.
  fetching.then(giveBack, giveBack);
  return unlessAborted(fetching, signal);
}

async function fetchBlock({ source, readIso }: Reading, number: number): Promise<Buffer> {
  const from = number * BLOCK_BYTES;
  const to = Math.min(from + BLOCK_BYTES, source.bytes) - 1;
  const parts: Buffer[] = [];
  for await (const part of readIso(source, { from, to }, AbortSignal.timeout(LONGEST_BLOCK_MS))) parts.push(part);
  return Buffer.concat(parts);
}
