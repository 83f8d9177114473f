import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { runCli } from "../../../src/cli/run-cli.ts";
import { type CliRun, createFakeTerminal, type FakeTerminalOptions } from "./fake-terminal.ts";

/** What a command sent. */
export interface SentCall {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: unknown;
  readonly authorization?: string;
}

/** For tests: a REST server that answers as the test says, and keeps what it was asked. */
export interface FakeRest {
  readonly calls: SentCall[];
  /** By method and path, without the query: the answer, or a status with a body. */
  readonly answers: Map<string, unknown | ((call: SentCall) => unknown)>;
  run(line: string | readonly string[], options?: FakeTerminalOptions): Promise<CliRun>;
  close(): Promise<void>;
}

/** An answer that is no success. */
export class Refusal {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

export async function startFakeRest(): Promise<FakeRest> {
  const calls: SentCall[] = [];
  const answers: FakeRest["answers"] = new Map();
  const server = createServer(async (request, response) => {
    const call = await read(request);
    calls.push(call);
    const found = answers.get(`${call.method} ${call.path.split("?", 1)[0]}`);
    const answer = typeof found === "function" ? found(call) : found;
    const { status, body, headers } =
      answer instanceof Refusal ? answer : { status: answer === undefined ? 404 : 200, body: answer, headers: {} };
    response.writeHead(status, { ...headers, "content-type": "application/json" });
    response.end(JSON.stringify(body ?? { detail: "Not Found" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    calls,
    answers,
    async run(line, options = {}) {
      const terminal = createFakeTerminal(options);
      const words = typeof line === "string" ? line.split(" ").filter((word) => word !== "") : line;
      const args = ["--server", `http://127.0.0.1:${port}`, "--token", "tok", ...words];
      const code = await runCli(args, { version: "1.2.3", terminal });
      return { code, out: terminal.out(), err: terminal.err() };
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function read(request: IncomingMessage): Promise<SentCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const { authorization } = request.headers;
  return {
    method: request.method ?? "",
    path: request.url ?? "",
    ...(text !== "" && { body: JSON.parse(text) as unknown }),
    ...(authorization !== undefined && { authorization }),
  };
}
