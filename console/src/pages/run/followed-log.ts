import { Code, ConnectError } from "@connectrpc/connect";
import type { LogChunk } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { clientOf } from "../../api/services.ts";
import { type Lines, LogLines } from "./log-lines.ts";

export interface LogState {
  readonly lines: Lines;
  readonly error: unknown;
  /** The run has ended: nothing more will be written. */
  readonly hasEnded: boolean;
  /** There is more before the first line that is here. */
  readonly hasEarlier: boolean;
}

export const NO_LOG: LogState = {
  ...{ lines: new LogLines().all(), error: null, hasEnded: false, hasEarlier: false },
};

/** What is read at once, in chunks: first for what a screen shows, then for who goes up. */
const TAIL_CHUNKS = 200;
const EARLIER_CHUNKS = 1_000;
const SHOW_EVERY_MS = 100;
const AGAIN_AFTER_MS = 1_500;
const HOPELESS: ReadonlySet<Code> = new Set([Code.NotFound, Code.PermissionDenied, Code.Unauthenticated]);

/**
 * The log of a run: its end first, then what is written, and what stands before for who asks. One stream, which goes on where it broke,
 * and is closed while nobody looks, since browsers open six connections to a server.
 */
export class FollowedLog {
  readonly #runId: string;
  readonly #show: (state: LogState) => void;
  readonly #lines = new LogLines();
  readonly #ended = new AbortController();
  #stream = new AbortController();
  #hasEnded = false;
  #timer: number | undefined;
  #reading: Promise<void> | undefined;

  constructor(runId: string, show: (state: LogState) => void) {
    this.#runId = runId;
    this.#show = show;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.#visibilityChanged);
    void this.#follow();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#visibilityChanged);
    window.clearTimeout(this.#timer);
    this.#ended.abort();
    this.#stream.abort();
  }

  get chunks(): readonly LogChunk[] {
    return this.#lines.chunks;
  }

  /** Some of what stands before the first line that is here. */
  readEarlier(): Promise<void> {
    return this.#readOnce(async () => {
      const before = this.#firstSeq;
      const { chunks } = await clientOf(RunService).readRunLog(
        { runId: this.#runId, before, limit: EARLIER_CHUNKS },
        { signal: this.#ended.signal },
      );
      this.#lines.prepend(chunks);
    });
  }

  /** Everything that stands before: for who searches. A log is a few megabytes at most. */
  readAll(): Promise<void> {
    return this.#readOnce(async () => {
      const before = this.#firstSeq;
      const chunks: LogChunk[] = [];
      const enough = new AbortController();
      const signal = AbortSignal.any([enough.signal, this.#ended.signal]);
      const stream = clientOf(RunService).streamRunLogs({ runId: this.#runId, noFollow: true }, { signal });
      for await (const { chunk } of stream) {
        if (!chunk || chunk.seq >= before) break;
        chunks.push(chunk);
      }
      enough.abort();
      this.#lines.prepend(chunks);
    });
  }

  get #firstSeq(): bigint {
    return this.#lines.chunks[0]?.seq ?? 0n;
  }

  get #hasEarlier(): boolean {
    return this.#firstSeq > 1n;
  }

  async #readOnce(read: () => Promise<void>): Promise<void> {
    await this.#reading;
    if (!this.#hasEarlier || this.#ended.signal.aborted) return;
    this.#reading = read()
      .then(
        () => this.#say(),
        (error: unknown) => this.#say(error),
      )
      .finally(() => {
        this.#reading = undefined;
      });
    await this.#reading;
  }

  #visibilityChanged = (): void => {
    if (document.hidden) this.#stream.abort();
    else if (this.#stream.signal.aborted && !this.#hasEnded) void this.#follow();
  };

  async #follow(): Promise<void> {
    this.#stream = new AbortController();
    const { signal } = this.#stream;
    while (!signal.aborted) {
      try {
        await this.#read(signal);
        this.#hasEnded = true;
        return this.#say();
      } catch (error) {
        if (signal.aborted) return;
        if (HOPELESS.has(ConnectError.from(error).code)) return this.#say(error);
        await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
      }
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const runId = this.#runId;
    const client = clientOf(RunService);
    if (this.#lines.chunks.length === 0) {
      const { chunks } = await client.readRunLog({ runId, limit: TAIL_CHUNKS }, { signal });
      for (const chunk of chunks) this.#lines.append(chunk);
      this.#say();
    }
    const after = this.#lines.chunks.at(-1)?.seq ?? 0n;
    for await (const { chunk } of client.streamRunLogs({ runId, after }, { signal })) {
      if (chunk) this.#lines.append(chunk);
      this.#timer ??= window.setTimeout(() => this.#say(), SHOW_EVERY_MS);
    }
  }

  #say(error: unknown = null): void {
    window.clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#ended.signal.aborted) return;
    this.#show({
      ...{ lines: this.#lines.all(), error, hasEnded: this.#hasEnded, hasEarlier: this.#hasEarlier },
    });
  }
}
