import { hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, stat, statfs, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { ArtifactOrder, KeptArtifact } from "../../capabilities/rack/artifacts.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { hours } from "../../kernel/time/duration.ts";

const DIGEST = /^sha256:([0-9a-f]{64})$/;
const FILE = /^[0-9a-f]{64}(-[0-9a-f]{16}\.part)?$/;
const CHUNK = 64 * 1_024;
/** The record that names a file may be in the making: what changed lately is left alone. */
const YOUNG = hours(1);
/** No download pauses for so long: a part that nothing was written to is of a replica that does not come back. */
const ABANDONED = hours(48);
/** Left to whoever else writes there. */
const KEPT_FREE = 64 * 1_024 * 1_024;

/** How many bytes can be written to the disk of a directory. */
export type FreeBytes = (path: string) => Promise<number>;
const freeBytesOf: FreeBytes = async (path) => {
  const { bavail, bsize } = await statfs(path);
  return Number(bavail) * Number(bsize);
};

/** A file that is not whole, by who wants it. */
type Part = Pick<ArtifactOrder, "digest" | "wantedBy">;

/** The place of each file: its digest once it is whole, and until then a part for each that wants it. */
export class ArtifactDirectory {
  readonly #path: string;
  readonly #freeBytes: FreeBytes;

  constructor(path: string, freeBytes: FreeBytes = freeBytesOf) {
    this.#path = path;
    this.#freeBytes = freeBytes;
  }

  async find(digest: string): Promise<KeptArtifact | undefined> {
    const path = this.#whole(digest);
    if (path === undefined) return undefined;
    try {
      const { size, mtime } = await stat(path);
      return { bytes: size, changedAt: mtime, chunks: (range) => readChunks(path, range) };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw trouble(this.#path, error);
    }
  }

  /** What an earlier attempt has written stays. The caller closes it, and is the only one who writes to it. */
  async openPart({ digest, wantedBy }: Part): Promise<FileHandle> {
    try {
      await mkdir(this.#path, { recursive: true, mode: 0o700 });
      return await open(this.#part(digest, wantedBy), constants.O_RDWR | constants.O_CREAT, 0o600);
    } catch (error) {
      throw trouble(this.#path, error);
    }
  }

  /** The part is whole, and is what its digest says. From here on it is found, whatever happens to the process or the machine. */
  async promote({ digest, wantedBy }: Part): Promise<void> {
    const whole = this.#whole(digest);
    if (whole === undefined) throw new Error(`${digest} is no digest`);
    await rename(this.#part(digest, wantedBy), whole);
    const directory = await open(this.#path, constants.O_RDONLY);
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }

  /** Of a whole file that is not what its digest says. */
  async remove(digest: string): Promise<void> {
    const path = this.#whole(digest);
    if (path !== undefined) await unlinkIfThere(path);
  }

  /** @throws StepFailure when so many bytes more have no room: before they are downloaded, and not after. */
  async checkRoom(bytes: number): Promise<void> {
    const free = await this.#freeBytes(this.#path);
    if (bytes + KEPT_FREE <= free) return;
    const wanted = `${megabytes(bytes)} more are to come and ${megabytes(KEPT_FREE)} are left to others`;
    throw new StepFailure("no_room", `the firmware directory ${this.#path} has ${megabytes(free)} free, ${wanted}`, {
      facts: { name: this.#path },
    });
  }

  /** Of a file that has no room: half of it would keep the disk full. */
  async removePart({ digest, wantedBy }: Part): Promise<void> {
    await unlinkIfThere(this.#part(digest, wantedBy));
  }

  async sweep(named: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#path).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    for (const name of names) {
      if (!FILE.test(name)) continue;
      const path = join(this.#path, name);
      const changed = await stat(path).catch(() => undefined);
      const isNamed = named.has(`sha256:${name.slice(0, 64)}`);
      const keptFor = !isNamed ? YOUNG : name.endsWith(".part") ? ABANDONED : Number.POSITIVE_INFINITY;
      if (changed && Date.now() - changed.mtimeMs > keptFor) await unlinkIfThere(path);
    }
  }

  /** Undefined for what is no digest: nothing else becomes part of a path. */
  #whole(digest: string): string | undefined {
    const [, hex] = DIGEST.exec(digest) ?? [];
    return hex === undefined ? undefined : join(this.#path, hex);
  }

  #part(digest: string, wantedBy: string): string {
    const whole = this.#whole(digest);
    if (whole === undefined) throw new Error(`${digest} is no digest`);
    return `${whole}-${hash("sha256", wantedBy).slice(0, 16)}.part`;
  }
}

async function* readChunks(
  path: string,
  range?: { readonly start: number; readonly end: number },
): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY);
  try {
    let at = range?.start ?? 0;
    const end = range === undefined ? Number.POSITIVE_INFINITY : range.end + 1;
    while (at < end) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, end - at));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(0)} MB`;

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);
const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT";

async function unlinkIfThere(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
}

/** The disk is full, read-only or broken: nothing that the record or the artifact server could help. */
export function trouble(path: string, error: unknown): unknown {
  const code = codeOf(error);
  if (typeof code !== "string" || error instanceof StepFailure) return error;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new StepFailure("no_room", `the firmware directory ${path} is full`, {
      facts: { name: path },
      cause: error,
    });
  return new StepFailure("server_trouble", `the firmware directory ${path} cannot be written to (${code})`, {
    cause: error,
  });
}
