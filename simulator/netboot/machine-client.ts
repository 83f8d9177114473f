import { createHash } from "node:crypto";
import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

const LONGEST_TEXT = 1_048_576;
const SILENCE_MS = 30_000;

/** Answered, but not with what was asked for. */
export class Refusal extends Error {
  readonly status: number;
  constructor(url: string, status: number) {
    super(`${url}: ${status}`);
    this.status = status;
  }
}

/** A client of the network that a machine is in: what it asks comes from the machine's own address. */
export class MachineClient {
  readonly #address: string;
  readonly #signal: AbortSignal;

  constructor(address: string, signal: AbortSignal) {
    this.#address = address;
    this.#signal = signal;
  }

  async text(url: string): Promise<string> {
    return readText(await this.#open(url));
  }

  async post(url: string, body: unknown): Promise<string> {
    return readText(await this.#open(url, JSON.stringify(body)));
  }

  /** All of it, and `sha256:…` of that. */
  async digest(url: string): Promise<string> {
    const hash = createHash("sha256");
    for await (const piece of await this.#open(url)) hash.update(piece as Buffer);
    return `sha256:${hash.digest("hex")}`;
  }

  #open(url: string, body?: string): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const open = url.startsWith("https:") ? requestHttps : requestHttp;
    const asked: ClientRequest = open(
      url,
      {
        method: body === undefined ? "GET" : "POST",
        ...(isLoopback(url) && { localAddress: this.#address }),
        ...(body !== undefined && { headers: { "content-type": "application/json" } }),
        signal: this.#signal,
        agent: false,
        // Like the environment, it checks none.
        rejectUnauthorized: false,
        timeout: SILENCE_MS,
      },
      (answer) => {
        if (answer.statusCode === 200) return resolve(answer);
        answer.resume();
        reject(new Refusal(url, answer.statusCode ?? 0));
      },
    );
    asked.on("error", reject).on("timeout", () => asked.destroy(new Error(`${url}: no answer`)));
    asked.end(body);
    return promise;
  }
}

/** From there the machine's own address, which is on loopback too, can call. */
const isLoopback = (url: string): boolean => /^127\./.test(URL.parse(url)?.hostname ?? "");

async function readText(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) {
    text += String(piece);
    if (text.length > LONGEST_TEXT) throw new Error("the answer is too long");
  }
  return text;
}
