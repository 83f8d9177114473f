import type { Server as HttpServer, ServerResponse } from "node:http";
import type { Http2SecureServer, Http2Server, ServerHttp2Stream } from "node:http2";
import type { LimitLedger } from "./limit-ledger.ts";

const CHECK_EVERY_MS = 250;

/** An answer that may wait for its reader. */
interface Answer {
  waiting(): number;
  end(): void;
  readonly address: string | null;
}

/**
 * What has been written for callers who do not read it, on all listeners together. Above the limit the largest answers are broken off, until
 * the rest is within it: one who takes whole lists and reads none would otherwise fill the memory, a megabyte a call.
 */
export class UnreadAnswers {
  readonly #most: number;
  readonly #ledger: LimitLedger;
  readonly #open = new Set<Answer>();
  #timer: NodeJS.Timeout | undefined;

  constructor(most: number, ledger: LimitLedger) {
    this.#most = most;
    this.#ledger = ledger;
    ledger.show("unread_bytes", most, () => this.#sum());
  }

  guardHttp2(server: Http2Server | Http2SecureServer): void {
    server.on("stream", (stream: ServerHttp2Stream) => {
      const address = stream.session?.socket.remoteAddress ?? null;
      // Not closed with a code: what waits to be written would fail as if it were a fault of ours.
      const end = () => stream.destroy();
      stream.once("close", this.#keep({ address, end, waiting: () => stream.writableLength }));
    });
  }

  guardHttp1(server: HttpServer): void {
    server.on("request", (request, response: ServerResponse) => {
      const address = request.socket.remoteAddress ?? null;
      const end = () => void response.destroy();
      response.once("close", this.#keep({ address, end, waiting: () => response.writableLength }));
    });
  }

  #keep(answer: Answer): () => void {
    this.#open.add(answer);
    this.#timer ??= setInterval(() => this.#check(), CHECK_EVERY_MS).unref();
    return () => {
      this.#open.delete(answer);
      if (this.#open.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #sum(): number {
    let sum = 0;
    for (const answer of this.#open) sum += answer.waiting();
    return sum;
  }

  #check(): void {
    let over = this.#sum() - this.#most;
    if (over <= 0) return;
    const waiting = [...this.#open].map((answer) => ({ answer, bytes: answer.waiting() }));
    for (const { answer, bytes } of waiting.sort((a, b) => b.bytes - a.bytes)) {
      if (over <= 0) return;
      over -= bytes;
      this.#open.delete(answer);
      this.#ledger.refuse("unread_bytes", { address: answer.address, unread: bytes });
      answer.end();
    }
  }
}
