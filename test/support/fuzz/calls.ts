import http from "node:http";
import { connect } from "node:http2";
import { type DescMethod, fromBinary, toJson } from "@bufbuild/protobuf";

/** How a call ended; `broken`: not as the protocol has it. */
export interface Ended {
  /** A gRPC code as a word, or an HTTP status. */
  readonly code: string;
  readonly message: string;
  /** Of a call that was answered: what was in the answer. */
  readonly answer?: unknown;
}

export interface FuzzCalls {
  grpc(method: DescMethod, body: Uint8Array): Promise<Ended>;
  grpcWeb(method: DescMethod, body: Uint8Array): Promise<Ended>;
  connectProto(method: DescMethod, body: Uint8Array): Promise<Ended>;
  connectJson(method: DescMethod, text: string): Promise<Ended>;
  rest(verb: string, path: string, body: string | undefined): Promise<Ended>;
  close(): void;
}

/** A stream that goes on is left after this. */
const PATIENCE_MS = 300;
/** Nothing that ends by itself takes as long as this. */
const LONGEST_MS = 20_000;
const CODES = [
  ...[
    "ok",
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
  ],
  ...[
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
  ],
  ...["data_loss", "unauthenticated"],
];
const LEFT: Ended = { code: "left", message: "" };

const framed = (message: Uint8Array): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

const pathOf = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`;
const isUnary = ({ methodKind }: DescMethod) => methodKind === "unary";

export function openFuzzCalls(grpcAddress: string, httpUrl: string, token: string): FuzzCalls {
  // What breaks the connection is seen by the calls on it.
  const open = () => connect(`http://${grpcAddress}`).on("error", () => undefined);
  let session = open();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const authorization = `Bearer ${token}`;
  const post = (method: DescMethod, type: string, body: Buffer) =>
    send(agent, {
      url: `${httpUrl}${pathOf(method)}`,
      verb: "POST",
      headers: { authorization, "content-type": type },
      body,
      leaveAfter: isUnary(method) ? undefined : PATIENCE_MS,
    });
  return {
    grpc(method, body) {
      if (session.destroyed || session.closed) session = open();
      return new Promise((resolve) => {
        const stream = session.request({
          ...{ ":method": "POST", ":path": pathOf(method), authorization },
          ...{ "content-type": "application/grpc", te: "trailers" },
        });
        const seen: Record<string, unknown> = {};
        const parts: Buffer[] = [];
        const note = (headers: Record<string, unknown>) => Object.assign(seen, headers);
        const timer = setTimeout(() => stream.close(8), isUnary(method) ? LONGEST_MS : PATIENCE_MS);
        stream
          .on("response", note)
          .on("trailers", note)
          .on("error", () => undefined);
        stream.on("data", (part: Buffer) => parts.push(part));
        stream.on("close", () => {
          clearTimeout(timer);
          const status = seen["grpc-status"];
          if (status === undefined)
            return resolve(
              isUnary(method) ? { code: "broken", message: `ended without a status: ${JSON.stringify(seen)}` } : LEFT,
            );
          const code = CODES[Number(status)] ?? `code ${status}`;
          resolve({
            ...{ code, message: decodeURIComponent(String(seen["grpc-message"] ?? "")) },
            ...(code === "ok" && isUnary(method) && { answer: decoded(method, Buffer.concat(parts).subarray(5)) }),
          });
        });
        stream.end(framed(body));
      });
    },
    async grpcWeb(method, body) {
      const { status, text, isLeft } = await post(method, "application/grpc-web+proto", framed(body));
      if (isLeft) return LEFT;
      const [, code] = /grpc-status: ?(\d+)/i.exec(text) ?? [];
      const [, message = ""] = /grpc-message: ?([^\r\n]*)/i.exec(text) ?? [];
      return {
        code: code === undefined ? `HTTP ${status}` : (CODES[Number(code)] ?? code),
        message: decodeURIComponent(message),
      };
    },
    async connectProto(method, body) {
      if (!isUnary(method)) return LEFT;
      const { status, text, isLeft } = await post(method, "application/proto", Buffer.from(body));
      return isLeft ? LEFT : connectEnd(status, text);
    },
    async connectJson(method, json) {
      const body = Buffer.from(json);
      const [type, sent] = isUnary(method) ? ["application/json", body] : ["application/connect+json", framed(body)];
      const { status, text, isLeft } = await post(method, type, sent);
      if (isLeft) return LEFT;
      if (isUnary(method)) return connectEnd(status, text);
      const [, code = "ok"] = /"error":\{"code":"(\w+)"/.exec(text) ?? [];
      return { code, message: text.slice(0, 300) };
    },
    async rest(verb, path, body) {
      const headers = { authorization, ...(body !== undefined && { "content-type": "application/json" }) };
      const { status, text, isLeft } = await send(agent, {
        ...{ url: `${httpUrl}${path}`, verb, headers },
        body: Buffer.from(body ?? ""),
        leaveAfter: undefined,
      });
      return isLeft
        ? LEFT
        : { code: `HTTP ${status}`, message: text.slice(0, 300), answer: status < 300 ? parsed(text) : undefined };
    },
    close() {
      session.close();
      agent.destroy();
    },
  };
}

const connectEnd = (status: number, text: string): Ended => {
  if (status === 200) return { code: "ok", message: "", answer: parsed(text) };
  const { code = `HTTP ${status}`, message = text.slice(0, 300) } = (parsed(text) ?? {}) as {
    code?: string;
    message?: string;
  };
  return { code, message };
};

function decoded(method: DescMethod, bytes: Uint8Array): unknown {
  try {
    return toJson(method.output, fromBinary(method.output, bytes), { useProtoFieldName: true });
  } catch {
    return undefined; // such as a number that JSON has no words for
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface Sent {
  readonly status: number;
  readonly text: string;
  readonly isLeft: boolean;
}

interface HttpCall {
  readonly url: string;
  readonly verb: string;
  readonly headers: object;
  readonly body: Buffer;
  /** Of a stream: it may go on for as long as it likes. */
  readonly leaveAfter: number | undefined;
}

function send(agent: http.Agent, { url, verb, headers, body, leaveAfter }: HttpCall): Promise<Sent> {
  return new Promise((resolve, reject) => {
    let isLeft = false;
    const request = http.request(url, { agent, method: verb, headers: { ...headers, "content-length": body.length } });
    const leave = () => {
      isLeft = leaveAfter !== undefined;
      request.destroy();
    };
    const timer = setTimeout(leave, leaveAfter ?? LONGEST_MS);
    const end = (status: number, parts: readonly Buffer[]) => {
      clearTimeout(timer);
      resolve({ status, text: Buffer.concat(parts).toString("utf8"), isLeft });
    };
    request.on("error", (error) => (isLeft ? end(0, []) : reject(error)));
    request.on("response", (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      const status = response.statusCode ?? 0;
      response.on("end", () => end(status, parts)).on("error", () => end(status, parts));
    });
    request.end(body);
  });
}
