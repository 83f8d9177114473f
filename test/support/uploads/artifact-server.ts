import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";

/** A file server as sites have them, and what is wrong with it. */
export interface ArtifactServer {
  readonly url: string;
  /** What was asked for, in order. */
  readonly asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  readonly files: Map<string, Buffer>;
  /** By path; what it leaves undone is done as usual. */
  readonly faults: Map<string, Fault>;
  close(): Promise<void>;
}

export interface Fault {
  /** Answered instead of the file. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** It sends the whole file, whatever part was asked for. */
  readonly noRanges?: boolean;
  /** It does not say how large the file is. */
  readonly noLength?: boolean;
  /** It sends so many bytes, and the rest when the promise resolves; or then cuts the connection. */
  readonly pauseAfter?: { readonly bytes: number; readonly until: Promise<unknown>; readonly thenCut?: true };
}

export async function startArtifactServer(
  options: { readonly tls?: { readonly key: string; readonly cert: string } } = {},
): Promise<ArtifactServer> {
  const asked: ArtifactServer["asked"] = [];
  const files = new Map<string, Buffer>();
  const faults = new Map<string, Fault>();
  const listener: RequestListener = async (request, response) => {
    const path = new URL(request.url ?? "/", "http://x").pathname;
    asked.push({ path, headers: request.headers });
    const fault = faults.get(path) ?? {};
    const file = files.get(path);
    if (fault.status !== undefined || file === undefined) {
      response.writeHead(fault.status ?? 404, fault.headers).end();
      return;
    }
    const from = fault.noRanges ? 0 : Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    if (from >= file.length && from > 0) {
      response.writeHead(416, { "content-range": `bytes */${file.length}` }).end();
      return;
    }
    const body = file.subarray(from);
    response.writeHead(from === 0 ? 200 : 206, {
      ...(!fault.noLength && { "content-length": body.length }),
      ...(from > 0 && { "content-range": `bytes ${from}-${file.length - 1}/${file.length}` }),
    });
    if (fault.pauseAfter) {
      response.write(body.subarray(0, fault.pauseAfter.bytes));
      await fault.pauseAfter.until;
      if (fault.pauseAfter.thenCut) response.destroy();
      else response.end(body.subarray(fault.pauseAfter.bytes));
      return;
    }
    response.end(body);
  };
  const server: Server = options.tls ? createHttpsServer(options.tls, listener) : createHttpServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.tls ? "https" : "http"}://127.0.0.1:${port}`,
    asked,
    files,
    faults,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
