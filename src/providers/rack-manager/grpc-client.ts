import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import type { CallContext } from "../../capabilities/call.ts";
import { type DeviceCause, DeviceFailure } from "../../capabilities/device-failure.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { describeDuration, seconds } from "../../kernel/time/duration.ts";
import { oneLine } from "../transport/one-line.ts";
import { ownTrouble } from "../transport/own-trouble.ts";
import { isUntrusted, transportCause } from "../transport/transport-cause.ts";

/** PEM, for TLS: whom to trust, and who we are. */
export interface GrpcTls {
  readonly ca?: readonly string[];
  readonly cert?: string;
  readonly key?: string;
}

export interface GrpcOptions {
  readonly url: string;
  /** Asked for each connection: certificates are renewed while the server runs. */
  readonly tls?: () => GrpcTls;
}

export interface GrpcClient {
  /** One message out, one in. */
  call(path: string, message: Buffer, call: CallContext): Promise<Buffer>;
  close(): void;
}

const WANTED = seconds(10);
const PREFIX_BYTES = 5;
const LARGEST_ANSWER = 4 * 1_024 * 1_024;
const LONGEST_MESSAGE = 300;

/**
 * What statuses of gRPC mean that are no success: the rest are refusals. Of those that a service gives when it breaks down over a call
 * (canceled, unknown, aborted, internal, lost data) nobody knows whether it was done.
 */
const CAUSES: Readonly<Record<number, DeviceCause>> = {
  1: "busy",
  2: "busy",
  4: "timed_out",
  7: "forbidden",
  8: "busy",
  10: "busy",
  12: "unsupported",
  13: "busy",
  14: "unreachable",
  15: "busy",
  16: "credentials_rejected",
};

/** Unary gRPC over HTTP/2, over one connection that is made again when it ends, or when it has left a call without an answer. */
export function createGrpcClient({ url, tls = () => ({}) }: GrpcOptions): GrpcClient {
  let session: ClientHttp2Session | undefined;
  const failures = new WeakMap<ClientHttp2Session, unknown>();
  const connected = (): ClientHttp2Session => {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    const { ca, ...ours } = tls();
    const opened = connect(url, { ...ours, ...(ca && { ca: [...ca] }) });
    opened.on("error", (error) => {
      failures.set(opened, error); // calls that are under way are told no more than that they were canceled
      opened.destroy();
    });
    opened.unref();
    session = opened;
    return opened;
  };
  /** Calls that are under way on it come to their own ends; the next one connects anew. */
  const retire = (silent: ClientHttp2Session): void => {
    if (session === silent) session = undefined;
    silent.close();
  };
  return {
    async call(path, message, { signal, mayTouchDevice }) {
      const deadline = mayTouchDevice(WANTED);
      const limit = AbortSignal.timeout(deadline);
      const ending = AbortSignal.any([signal, limit]);
      let over: ClientHttp2Session | undefined;
      try {
        over = connected();
        return await exchange(over, path, message, ending);
      } catch (error) {
        if (signal.aborted)
          throw new StepFailure("stopped", "stopped before the rack manager answered", { cause: error });
        if (limit.aborted) {
          if (over) retire(over);
          throw failure("timed_out", path, `no answer within ${describeDuration(deadline)}`);
        }
        if (error instanceof DeviceFailure) throw error;
        const why = (over && failures.get(over)) ?? error;
        const own = ownTrouble(why);
        if (own) throw own;
        throw failure(isUntrusted(why) ? "certificate_untrusted" : "unreachable", path, transportCause(why));
      }
    },
    close() {
      session?.destroy();
    },
  };
}

const failure = (code: DeviceCause, path: string, why: string, status?: number): DeviceFailure =>
  new DeviceFailure(code, "rack_manager", `the rack manager: ${path.split("/").at(-1)}: ${why}`, {
    ...(status !== undefined && { status }),
  });

function exchange(session: ClientHttp2Session, path: string, message: Buffer, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(
      { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" },
      { signal },
    );
    const chunks: Buffer[] = [];
    let size = 0;
    let trailers: IncomingHttpHeaders = {};
    stream.on("response", (headers) => {
      // An answer without a message has its status in the headers.
      if (headers["grpc-status"] !== undefined) trailers = headers;
    });
    stream.on("trailers", (headers) => {
      trailers = headers;
    });
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > LARGEST_ANSWER) stream.destroy(new Error(`the answer is larger than ${LARGEST_ANSWER} bytes`));
    });
    stream.on("error", reject);
    stream.on("close", () => {
      const status = trailers["grpc-status"];
      if (status === undefined) return reject(new Error("the connection was closed without a status"));
      if (status !== "0") return reject(refusal(path, Number(status), String(trailers["grpc-message"] ?? "")));
      const body = Buffer.concat(chunks);
      if (body.length < PREFIX_BYTES) return reject(failure("protocol", path, "the answer has no message"));
      // We offer no compression and asked for one message.
      if (body[0] !== 0 || body.readUInt32BE(1) !== body.length - PREFIX_BYTES)
        return reject(failure("protocol", path, "the answer is not one plain message"));
      resolve(body.subarray(PREFIX_BYTES));
    });
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(message.length, 1);
    stream.end(Buffer.concat([prefix, message]));
  });
}

function refusal(path: string, status: number, said: string): DeviceFailure {
  const code = CAUSES[status] ?? "refused_by_device";
  return failure(code, path, `${oneLine(decoded(said), LONGEST_MESSAGE) || "refused"} (gRPC status ${status})`, status);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
