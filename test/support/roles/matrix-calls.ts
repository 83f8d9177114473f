import http from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { create, type DescMethod, toBinary, toJson } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";

/** How a call ended: `denied` lacks a role, `anonymous` lacks credentials, anything else was let in. */
export type Outcome = "denied" | "anonymous" | { readonly letIn: string };

export interface MatrixCalls {
  /** Undefined: without credentials. */
  grpc(method: DescMethod, token: string | undefined, field?: string): Promise<Outcome>;
  json(method: DescMethod, token: string | undefined, field?: string): Promise<Outcome>;
  rest(route: string, token: string | undefined): Promise<Outcome>;
  close(): void;
}

const outcomeOf = (word: string): Outcome =>
  word === "permission_denied" ? "denied" : word === "unauthenticated" ? "anonymous" : { letIn: word };

/** Roles are checked before a body is read: with one that nobody can read, who is let in does nothing. */
const UNREADABLE = { grpc: Uint8Array.of(0xff), json: Buffer.from("[]"), rest: Buffer.from("{") };

const framed = (message: Uint8Array): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

/** A request that says nothing but that the field is set. */
const setting = ({ input }: DescMethod, name: string) => {
  const field = input.fields.find((each) => each.name === name);
  if (!field) throw new Error(`${input.typeName} has no field ${name}`);
  return create(input, { [field.localName]: field.fieldKind === "scalar" && field.scalar === 9 ? "x" : true });
};

/** Raw calls over few connections: thousands of them must not take longer than the rest of the tests. */
export function openMatrixCalls(grpcAddress: string, httpUrl: string): MatrixCalls {
  const session = connect(`http://${grpcAddress}`);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const bearing = (token: string | undefined) => (token === undefined ? {} : { authorization: `Bearer ${token}` });
  const send = (verb: string, path: string, headers: object, body: Buffer) =>
    sendHttp(agent, { verb, url: `${httpUrl}${path}`, headers, body });
  return {
    async grpc(method, token, field) {
      const path = `/${method.parent.typeName}/${method.name}`;
      const message = field === undefined ? UNREADABLE.grpc : toBinary(method.input, setting(method, field));
      const code = await sendGrpc(session, { ":path": path, ...bearing(token) }, framed(message));
      return outcomeOf(
        Code[code]?.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase() ?? `code ${code}`,
      );
    },
    async json(method, token, field) {
      const message =
        field === undefined
          ? UNREADABLE.json
          : Buffer.from(JSON.stringify(toJson(method.input, setting(method, field))));
      const isUnary = method.methodKind === "unary";
      const headers = { ...bearing(token), "content-type": isUnary ? "application/json" : "application/connect+json" };
      const path = `/${method.parent.typeName}/${method.name}`;
      const { status, body } = await send("POST", path, headers, isUnary ? message : framed(message));
      if (isUnary) return outcomeOf(status === 200 ? "ok" : (JSON.parse(body.toString()) as { code: string }).code);
      if (status !== 200) return outcomeOf(`HTTP ${status}`);
      const { error } = JSON.parse(body.subarray(5).toString()) as { error?: { code: string } };
      return outcomeOf(error?.code ?? "ok");
    },
    async rest(route, token) {
      const [verb = "", path = ""] = route.split(" ");
      const body = verb === "GET" ? Buffer.alloc(0) : UNREADABLE.rest;
      const headers = { ...bearing(token), ...(verb !== "GET" && { "content-type": "application/json" }) };
      const { status } = await send(verb, `${path}?unreadable=1`, headers, body);
      return status === 403 ? "denied" : status === 401 ? "anonymous" : { letIn: `HTTP ${status}` };
    },
    close() {
      session.close();
      agent.destroy();
    },
  };
}

/** The code of the trailers, or of the headers of an answer that has nothing else. */
function sendGrpc(session: ClientHttp2Session, headers: object, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const fixed = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };
    const stream = session.request({ ...fixed, ...headers });
    let code: unknown;
    const note = (seen: Record<string, unknown>) => {
      code = seen["grpc-status"] ?? code;
    };
    stream.on("response", note).on("trailers", note).on("error", reject).resume();
    stream.on("close", () => resolve(Number(code ?? -1)));
    stream.end(body);
  });
}

interface HttpCall {
  readonly verb: string;
  readonly url: string;
  readonly headers: object;
  readonly body: Buffer;
}

function sendHttp(
  agent: http.Agent,
  { verb, url, headers, body }: HttpCall,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { agent, method: verb, headers: { ...headers, "content-length": body.length } });
    request.on("error", reject).on("response", (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts) }));
      response.on("error", reject);
    });
    request.end(body);
  });
}
