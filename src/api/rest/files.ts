import { constants, type Stats } from "node:fs";
import { type FileHandle, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../kernel/errors.ts";
import { toRestError } from "./route.ts";

export interface FilesDeps {
  /** What is below it is served to every caller. Null: nothing is. */
  readonly directory: string | null;
  readonly reportUnexpected: (cause: unknown, request: FastifyRequest) => string;
}

const notFound = (): AppError => new AppError("not_found", "There is no such file");

/** Kernels, initrds and images for machines that boot from the network, with range requests: firmware asks in pieces. */
export function createFiles({ directory, reportUnexpected }: FilesDeps): FastifyPluginAsync {
  return async (app) => {
    app.route({
      method: ["GET", "HEAD"],
      url: "/files/*",
      handler: (request, reply) => send(directory, (request.params as { "*": string })["*"], request, reply),
      errorHandler: (error, request, reply) => {
        const { status, body } = toRestError(error, (cause) => reportUnexpected(cause, request));
        return reply.code(status).send(body);
      },
    });
  };
}

async function send(
  directory: string | null,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const file = directory === null ? undefined : await openBelow(directory, path);
  if (file === undefined) throw notFound();
  const bytes = answerFor(file.stats, request, reply);
  if (bytes === undefined) {
    await file.handle.close();
    return reply.send();
  }
  // Of the file that was looked at, also when another one takes its place meanwhile. The stream closes it.
  return reply.send(file.handle.createReadStream(bytes));
}

/** Sets code and headers; the bytes to send, or undefined when the answer has none. */
export function answerFor(
  { size, mtime }: Pick<Stats, "size" | "mtime">,
  { headers, method }: FastifyRequest,
  reply: FastifyReply,
): { readonly start: number; readonly end: number } | undefined {
  const etag = `"${size.toString(16)}-${Math.floor(mtime.getTime()).toString(16)}"`;
  reply
    .header("accept-ranges", "bytes")
    .header("etag", etag)
    .header("last-modified", mtime.toUTCString())
    .type("application/octet-stream");
  if (headers["if-none-match"] === etag) {
    reply.code(304);
    return undefined;
  }
  // A range of another version of the file would be stitched together with this one.
  const isSame = headers["if-range"] === undefined || headers["if-range"] === etag;
  const range = isSame ? parseRange(headers.range, size) : undefined;
  if (range === "unsatisfiable") {
    reply.code(416).header("content-range", `bytes */${size}`);
    return undefined;
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  if (range) reply.code(206).header("content-range", `bytes ${start}-${end}/${size}`);
  reply.header("content-length", Math.max(0, end - start + 1));
  return method === "HEAD" || size === 0 ? undefined : { start, end };
}

/** Links are followed first: what counts is where the file really is. Whoever gets the handle closes it. */
async function openBelow(
  directory: string,
  path: string,
): Promise<{ readonly handle: FileHandle; readonly stats: Stats } | undefined> {
  if (path === "" || path.includes("\0")) return undefined;
  let handle: FileHandle | undefined;
  try {
    const root = await realpath(directory);
    const real = await realpath(join(root, path));
    if (!real.startsWith(root + sep)) return undefined;
    // A pipe that nobody writes to must not hold us.
    handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (stats.isFile()) return { handle, stats };
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  await handle?.close();
  return undefined;
}

const MISSING = new Set(["ENOENT", "ENOTDIR", "EACCES", "ELOOP", "ENAMETOOLONG", "EISDIR", "ENXIO"]);
const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && MISSING.has(String(error.code));

/** One range of bytes; several at once, and what is no range, are answered with the whole file, as HTTP allows. */
export function parseRange(
  header: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= size ? "unsatisfiable" : { start, end };
}
