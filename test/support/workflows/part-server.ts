import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One thing that a stage has made. */
export interface Part {
  readonly id: string;
  /** Who made it: the run's job, as its steps name it. */
  readonly job: string;
  readonly stage: string;
  /** Made before the part, so that whoever lost the answer finds it again. */
  readonly key: string;
  /** Why it is of no use; empty when it is. */
  readonly fault: string;
}

/** What was asked of the server, in its order: `made deploy`, `unmade prepare`. */
export type Deed = { readonly job: string; readonly deed: string };

/**
 * The outside world of the test workflow, over HTTP on loopback: it makes a part for each command, however often the same is sent, and
 * so shows what was done twice. It outlives the processes that call it.
 */
export class PartServer {
  readonly parts = new Map<string, Part>();
  readonly deeds: Deed[] = [];
  readonly #server: Server;
  #made = 0;
  readonly #held = new Map<string, Promise<void>>();
  /** Commands that are held back now. */
  waiting = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<PartServer> {
    const started = new PartServer();
    await new Promise<void>((resolve) => started.#server.listen(0, "127.0.0.1", resolve));
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  deedsOf(job: string): string[] {
    return this.deeds.filter((one) => one.job === job).map(({ deed }) => deed);
  }

  partsOf(job: string): Part[] {
    return [...this.parts.values()].filter((part) => part.job === job);
  }

  /** The next part of the stage is made, and answered, once the promise is kept. */
  hold(stage: string, until: Promise<void>): void {
    this.#held.set(stage, until);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://parts");
    const body = await textOf(request);
    if (request.method === "POST") await this.#turnOf((JSON.parse(body) as Part).stage);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(this.#do(request.method ?? "GET", url, body) ?? null));
  }

  async #turnOf(stage: string): Promise<void> {
    const until = this.#held.get(stage);
    if (!until) return;
    this.#held.delete(stage);
    this.waiting += 1;
    await until;
    this.waiting -= 1;
  }

  #do(method: string, url: URL, body: string): Part | number | undefined {
    const { job, stage, key } = Object.fromEntries(url.searchParams);
    if (url.pathname === "/count") return this.deedsOf(job ?? "").filter((deed) => deed === `made ${stage}`).length;
    const id = url.pathname.split("/")[2] ?? "";
    if (method === "POST") return this.#make(JSON.parse(body) as Omit<Part, "id">);
    if (method === "DELETE") return this.#unmake(id);
    return id === "" ? [...this.parts.values()].find((part) => part.key === key) : this.parts.get(id);
  }

  #make(wanted: Omit<Part, "id">): Part {
    this.#made += 1;
    const part = { ...wanted, id: `part-${this.#made}` };
    this.parts.set(part.id, part);
    this.deeds.push({ job: part.job, deed: `made ${part.stage}` });
    return part;
  }

  #unmake(id: string): undefined {
    const part = this.parts.get(id);
    if (part) this.deeds.push({ job: part.job, deed: `unmade ${part.stage}` });
    this.parts.delete(id);
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request) text += String(piece);
  return text;
}
