import { createHash, type Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { ArtifactOrder, Artifacts } from "../../capabilities/rack/artifacts.ts";
import type { StreamCall } from "../../capabilities/stream.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { createDownload, type Download, type Downloading, type DownloadOptions } from "../transport/download.ts";
import { ArtifactDirectory, type FreeBytes, trouble } from "./artifact-directory.ts";

export interface ArtifactOptions extends DownloadOptions {
  readonly directory: string;
  readonly largest: number;
  /** Absent: as the disk says. */
  readonly freeBytes?: FreeBytes;
}

/** Firmware files in a directory, downloaded over HTTP. */
export function createArtifacts({ directory: path, largest, freeBytes, ...options }: ArtifactOptions): Artifacts {
  const directory = new ArtifactDirectory(path, freeBytes);
  const download = createDownload(options);
  return {
    find: (digest) => directory.find(digest),
    sweep: (named) => directory.sweep(named),
    async fetch(order, stream) {
      const kept = await directory.find(order.digest);
      if (kept) {
        // Also what was whole once may have been changed since: nobody asks for a download without a reason.
        const hash = createHash("sha256");
        await hashInto(hash, kept.chunks(), stream.signal);
        if (`sha256:${hash.digest("hex")}` === order.digest) return kept.bytes;
        await directory.remove(order.digest);
      }
      const file = await directory.openPart(order);
      try {
        const bytes = await complete({ file, order, stream, download, directory, largest });
        await file.sync();
        await directory.promote(order);
        return bytes;
      } catch (error) {
        const failure = trouble(path, error);
        if (failure instanceof StepFailure && failure.code === "no_room") await directory.removePart(order);
        throw failure;
      } finally {
        await file.close();
      }
    },
  };
}

const ROOM_EVERY = 1_024 * 1_024;

interface Completing {
  readonly file: FileHandle;
  readonly order: ArtifactOrder;
  readonly stream: StreamCall;
  readonly download: Download;
  readonly directory: ArtifactDirectory;
  readonly largest: number;
}

/** Leaves the file whole, or throws. What was written stays for the next attempt, unless it is of another file. */
async function complete(work: Completing): Promise<number> {
  const { file, order, stream, download } = work;
  const before = createHash("sha256");
  const from = await hashInto(before, readAll(file), stream.signal);
  const answer = await download({ ...order, from, signal: stream.signal });
  const isWholeThere = answer === "nothing_left";
  // A server that cannot go on sends all of it: what is here is written over.
  const startsOver = !isWholeThere && answer.start === 0;
  if (startsOver) await file.truncate(0);
  const hash = startsOver ? createHash("sha256") : before;
  const bytes = isWholeThere ? from : await append(work, answer, hash);
  const shown = `sha256:${hash.digest("hex")}`;
  if (shown === order.digest && (order.bytes === null || order.bytes === bytes)) return bytes;
  await file.truncate(0);
  // What an earlier attempt left may be of a file that was replaced since: all of it is read again, once.
  if (!startsOver) return complete(work);
  const why =
    shown === order.digest
      ? `has ${bytes} bytes instead of ${order.bytes}`
      : `has the digest ${shown} instead of ${order.digest}`;
  throw new StepFailure("artifact_wrong", `the file at ${withoutSecrets(order.url)} ${why}`, {
    disposition: "fail",
    facts: { expected: order.digest, shown },
  });
}

async function append(work: Completing, answer: Downloading, hash: Hash): Promise<number> {
  const { file, order, stream, directory, largest } = work;
  let at = answer.start;
  try {
    const expected = answer.total ?? order.bytes ?? 0;
    checkSize(expected, order, largest);
    await directory.checkRoom(Math.max(0, expected - at));
    let checkedAt = at;
    for await (const chunk of answer.chunks) {
      // Others write there too, and not every server says how much is to come.
      if (at - checkedAt >= ROOM_EVERY) {
        await directory.checkRoom(Math.max(chunk.length, expected - at));
        checkedAt = at;
      }
      checkSize(at + chunk.length, order, largest);
      // The lease is checked just before: the replica that takes over goes on with this file.
      await stream.sendChunk(() => writeAll(file, chunk, at));
      hash.update(chunk);
      at += chunk.length;
      stream.report({ bytes: at });
    }
    return at;
  } finally {
    answer.close();
  }
}

async function writeAll(file: FileHandle, chunk: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < chunk.length; ) {
    done += (await file.write(chunk, done, chunk.length - done, at + done)).bytesWritten;
  }
}

function checkSize(bytes: number, { url }: ArtifactOrder, largest: number): void {
  if (bytes <= largest) return;
  const message = `the file at ${withoutSecrets(url)} is larger than ${largest} bytes: raise firmware.max_artifact_bytes if it is right`;
  throw new StepFailure("artifact_wrong", message, { disposition: "fail" });
}

async function* readAll(file: FileHandle): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(1 << 20);
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Returns how many bytes there were. */
async function hashInto(hash: Hash, chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    hash.update(chunk);
    bytes += chunk.length;
  }
  return bytes;
}

const withoutSecrets = (url: string): string => {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
};
