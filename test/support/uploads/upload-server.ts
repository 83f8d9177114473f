import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** One upload, as the device saw it. Times are those of the test's own clock. */
export interface Upload {
  readonly key: string;
  /** The replica that sent it. */
  readonly from: string;
  readonly size: number;
  readonly startedAt: number;
  /** When the device took its last byte so far. */
  lastByteAt: number;
  bytes: number;
  /** Absent while it goes on. */
  end?: "whole" | "cut";
}

/** A command or a question, and who sent it. */
export interface Touch {
  readonly key: string;
  readonly from: string;
  readonly method: string;
  readonly at: number;
}

/**
 * A device that takes uploads over HTTP, and no faster than so many bytes a second: the network fills up, and the sender has to
 * wait. It keeps an image only when all of it has come. It outlives the processes that call it.
 */
export class UploadServer {
  readonly uploads: Upload[] = [];
  readonly touches: Touch[] = [];
  readonly #images = new Map<string, number>();
  readonly #server: Server;
  readonly #bytesPerSecond: number;

  private constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.requestTimeout = 0; // it is slow on purpose
  }

  static async start({ bytesPerSecond }: { readonly bytesPerSecond: number }): Promise<UploadServer> {
    const started = new UploadServer(bytesPerSecond);
    await new Promise<void>((resolve) => started.#server.listen(0, "127.0.0.1", resolve));
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  uploadsOf(key: string): Upload[] {
    return this.uploads.filter((one) => one.key === key);
  }

  touchesOf(key: string): Touch[] {
    return this.touches.filter((one) => one.key === key);
  }

  has(key: string): boolean {
    return this.#images.has(key);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = (request.url ?? "/").slice(1);
    const from = String(request.headers["x-replica"] ?? "");
    const method = request.method ?? "GET";
    this.touches.push({ key, from, method, at: performance.now() });
    if (method === "PUT" && !(await this.#take(request, key, from))) return;
    if (method === "DELETE") this.#images.delete(key);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ bytes: this.#images.get(key) ?? 0 }));
  }

  async #take(request: IncomingMessage, key: string, from: string): Promise<boolean> {
    const now = performance.now();
    const size = Number(request.headers["content-length"]);
    const upload: Upload = { key, from, size, startedAt: now, lastByteAt: now, bytes: 0 };
    this.uploads.push(upload);
    try {
      for await (const piece of request) {
        upload.bytes += (piece as Buffer).length;
        upload.lastByteAt = performance.now();
        const due = now + (1_000 * upload.bytes) / this.#bytesPerSecond;
        await pause(Math.max(0, due - upload.lastByteAt));
      }
    } catch {
      // The sender has cut it.
    }
    upload.end = upload.bytes === size ? "whole" : "cut";
    if (upload.end === "whole") this.#images.set(key, size);
    return upload.end === "whole";
  }
}
