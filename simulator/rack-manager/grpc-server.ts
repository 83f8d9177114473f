import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { FaultBook } from "../faults/fault-book.ts";
import type { RackManagerCall } from "./numbering.ts";
import type { RackManager } from "./rack-manager.ts";
import { decode, encode } from "./wire.ts";

/** What fault rules call it. */
export const RACK_MANAGER = "rack-manager";
const SERVICE = "/rack_manager.RackManager/";
const MOST_BYTES = 4 * 1_024 * 1_024;
const PREFIX_BYTES = 5;
const INVALID_ARGUMENT = 3;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

/** Unary gRPC without TLS: one message in, one out, the status in the trailers. */
export function createRackManagerServer(
  manager: RackManager,
  faults: FaultBook,
): Http2Server & { closeAllConnections(): void } {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    const path = String(headers[":path"] ?? "");
    read(stream)
      .then((body) => {
        const reply = answerTo(manager, faults, path, body);
        if (reply !== undefined) end(stream, reply);
      })
      .catch(() => stream.close());
  });
  return Object.assign(server, {
    closeAllConnections() {
      for (const session of sessions) session.destroy();
    },
  });
}

async function read(stream: ServerHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new Error("the message is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).subarray(PREFIX_BYTES);
}

interface Reply {
  readonly status: number;
  readonly why: string;
  readonly body?: Uint8Array;
}

/** Undefined: nothing is ever said. */
function answerTo(manager: RackManager, faults: FaultBook, path: string, body: Buffer): Reply | undefined {
  const { ending } = faults.transport({ device: RACK_MANAGER, method: "POST", path });
  if (ending?.type === "hang") return undefined;
  if (ending !== undefined) return { status: UNAVAILABLE, why: "the rack manager is not able to answer now" };
  const found = Object.entries(manager.numbering.methods).find(([, method]) => path === SERVICE + method.name);
  if (found === undefined) return { status: UNIMPLEMENTED, why: `there is no ${path}` };
  const [call, { request, response }] = found;
  try {
    const message = decode(request, body);
    return { status: 0, why: "", body: encode(response, manager.answer(call as RackManagerCall, message)) };
  } catch (error) {
    return { status: INVALID_ARGUMENT, why: error instanceof Error ? error.message : String(error) };
  }
}

function end(stream: ServerHttp2Stream, { status, why, body }: Reply): void {
  if (stream.destroyed) return;
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.once("wantTrailers", () =>
    stream.sendTrailers({ "grpc-status": String(status), "grpc-message": encodeURIComponent(why) }),
  );
  if (body === undefined) return void stream.end();
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(body.length, 1);
  stream.end(Buffer.concat([prefix, body]));
}
