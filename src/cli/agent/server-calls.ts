import { createHttpClient, type TlsFiles } from "../client/http-client.ts";

export interface AgentIdentity {
  readonly node: string;
  readonly server: string;
  readonly bearer: string;
  /** PEM: what tasks are signed with. */
  readonly publicKey: string;
}

export interface OfferedTask {
  readonly signed: string;
  readonly signature: string;
}

/** The server did not take the call, and would not take it again. */
export class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface Call {
  readonly path: string;
  readonly bearer?: string;
  readonly body?: object;
}

const MOST_ANSWER = 1024 * 1024;

/** The agent's side of `/internal/v1/nodes/{id}`. Calls throw `Refused`, or whatever kept the answer from coming. */
export class ServerCalls {
  readonly #server: string;
  readonly #node: string;
  readonly #send: ReturnType<typeof createHttpClient>;

  constructor(options: { readonly server: string; readonly node: string; readonly tls: TlsFiles }) {
    this.#server = options.server.replace(/\/+$/, "");
    this.#node = options.node;
    this.#send = createHttpClient(options.tls);
  }

  /** With the same nonce it may be asked again for as long as the bearer was not used. */
  async enrol(token: string, nonce: string, signal: AbortSignal): Promise<AgentIdentity> {
    const answer = await this.#call({ path: "enroll", body: { token, nonce } }, signal);
    const { bearer, public_key: publicKey } = answer;
    if (typeof bearer !== "string" || typeof publicKey !== "string") throw new Error("the enrolment has an odd answer");
    return { node: this.#node, server: this.#server, bearer, publicKey };
  }

  /** With the same claim it is given the same task: an answer that was lost is asked for again. */
  async wait(
    { bearer }: AgentIdentity,
    { claim, seconds }: { readonly claim: string; readonly seconds: number },
    signal: AbortSignal,
  ): Promise<OfferedTask | null> {
    const { task } = await this.#call({ path: `tasks/wait?wait_seconds=${seconds}&claim=${claim}`, bearer }, signal);
    return (task ?? null) as OfferedTask | null;
  }

  async renew({ bearer }: AgentIdentity, task: string, signal: AbortSignal): Promise<void> {
    await this.#call({ path: `tasks/${encodeURIComponent(task)}/renew`, bearer, body: {} }, signal);
  }

  async answer({ bearer }: AgentIdentity, task: string, outcome: object, signal: AbortSignal): Promise<void> {
    await this.#call({ path: `tasks/${encodeURIComponent(task)}/result`, bearer, body: outcome }, signal);
  }

  async sayHealth({ bearer }: AgentIdentity, health: object, signal: AbortSignal): Promise<void> {
    await this.#call({ path: "heartbeat", bearer, body: health }, signal);
  }

  async #call({ path, bearer, body }: Call, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
    const header = new Headers({ accept: "application/json" });
    if (bearer !== undefined) header.set("authorization", `Bearer ${bearer}`);
    if (body !== undefined) header.set("content-type", "application/json");
    const response = await this.#send({
      url: `${this.#server}/internal/v1/nodes/${encodeURIComponent(this.#node)}/${path}`,
      method: body === undefined ? "GET" : "POST",
      header,
      body: once(body === undefined ? "" : JSON.stringify(body)),
      signal,
    });
    const text = await textOf(response.body);
    if (response.status === 200) return JSON.parse(text) as Readonly<Record<string, unknown>>;
    const message = `the server answered ${response.status}: ${text.slice(0, 300)}`;
    if (response.status >= 500 || response.status === 429) throw new Error(message);
    throw new Refused(response.status, message);
  }
}

async function* once(text: string): AsyncIterable<Uint8Array> {
  if (text !== "") yield Buffer.from(text);
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MOST_ANSWER) throw new Error("the answer of the server is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
