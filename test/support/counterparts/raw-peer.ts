import { connect, type Socket } from "node:net";

/** A peer that writes what it likes, from an address of its choice below 127.0.0.0/8. */
export interface RawPeer {
  readonly socket: Socket;
  /** Everything that came, so far. */
  received(): Buffer;
  /** Resolves when the other end has closed the connection, in whatever way. */
  readonly closed: Promise<void>;
}

export async function connectRaw(address: string, { from = "127.0.0.1" } = {}): Promise<RawPeer> {
  const { hostname: host, port } = new URL(address.includes("://") ? address : `http://${address}`);
  const socket = connect({ host, port: Number(port), localAddress: from });
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.on("error", () => {}); // a reset is one way of being closed
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await Promise.race([new Promise<void>((resolve) => socket.once("connect", () => resolve())), closed]);
  return { socket, received: () => Buffer.concat(parts), closed };
}

const FRAME_TYPES = { DATA: 0, HEADERS: 1, RST_STREAM: 3, SETTINGS: 4, PING: 6, CONTINUATION: 9 } as const;

export const END_STREAM = 1;
export const END_HEADERS = 4;

interface Frame {
  readonly type: keyof typeof FRAME_TYPES;
  readonly flags?: number;
  readonly stream?: number;
  readonly payload?: Buffer;
}

export function frame({ type, flags = 0, stream = 0, payload = Buffer.alloc(0) }: Frame): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(FRAME_TYPES[type], 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** What HTTP/2 begins with: preface and empty settings. */
export const HTTP2_BEGIN = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  frame({ type: "SETTINGS" }),
]);

/** A header as HPACK has it without any table, for short names and values up to 16 kB. */
export function header(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), lengthOf(value), Buffer.from(value)]);
}

function lengthOf({ length }: string): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

export const callHeaders = (path: string): Buffer =>
  Buffer.concat([
    ...[header(":method", "POST"), header(":scheme", "http"), header(":path", path), header(":authority", "localhost")],
    ...[header("content-type", "application/grpc"), header("te", "trailers")],
  ]);
