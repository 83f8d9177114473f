import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { OpenStream, StreamCall, StreamEnd, StreamOptions, StreamProgress } from "../../capabilities/stream.ts";
import { describeDuration } from "../../kernel/time/duration.ts";
import { failPoint } from "../../store/postgres/fail-points.ts";

/**
 * A device call that goes on between the passes over its thing, under one lease.
 *
 * The check of the lease before each chunk is what keeps two replicas apart. A process that was stopped in the middle of a chunk
 * finds on the monotonic clock that the lease is over, whatever its timers say, and sends no further one; the chunk itself was over
 * before anybody could take over, since the lease in the database outlasts ours by the longest chunk.
 */
export class LeaseStream implements OpenStream {
  readonly ended: Promise<void>;
  readonly #call: CallContext;
  readonly #options: StreamOptions;
  readonly #stopping = new AbortController();
  readonly #withdrawn = new AbortController();
  readonly #signal: AbortSignal;
  /** The chunk that was sent last; resolves when its sender is done with it. */
  #chunk: Promise<unknown> = Promise.resolve();
  #progress: StreamProgress | undefined;
  #end: StreamEnd | undefined;
  #isTaken = false;

  /** `call` is the frame of the lease, and not of one pass. */
  constructor(call: CallContext, options: StreamOptions, work: (call: StreamCall) => Promise<unknown>) {
    this.#call = call;
    this.#options = options;
    this.#signal = AbortSignal.any([call.signal, this.#stopping.signal]);
    this.ended = this.#run(work);
  }

  get progress(): StreamProgress | undefined {
    return this.#progress;
  }

  /** A pass has taken its end: nothing is on its way any more. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  take(): StreamEnd | undefined {
    this.#isTaken = this.#end !== undefined;
    return this.#end;
  }

  /** What came of its end was not written: the next pass takes it again. */
  putBack(): void {
    this.#isTaken = false;
  }

  withdraw(): void {
    this.#withdrawn.abort();
  }

  async stop(reason: Error): Promise<void> {
    if (this.#end !== undefined) return;
    this.#stopping.abort(reason);
    await this.#withinChunk(this.ended);
    // Work that does not listen is left behind: it can send nothing more, and what it sent last has had its time.
    this.#end ??= { error: reason };
  }

  async #run(work: (call: StreamCall) => Promise<unknown>): Promise<void> {
    const end = await work(this.#frame()).then(
      (value) => ({ value }),
      // Why it was stopped tells more than what came of it.
      (error: unknown) => ({ error: this.#signal.aborted ? this.#signal.reason : error }),
    );
    await this.#withinChunk(this.#chunk); // it may have been given up, and still be on its way
    this.#end ??= end;
  }

  async #withinChunk(waitedFor: Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const isOver = new Promise((resolve) => (timer = setTimeout(resolve, this.#options.longestChunk)));
    await Promise.race([waitedFor, isOver]);
    clearTimeout(timer);
  }

  #frame(): StreamCall {
    return {
      subject: this.#call.subject,
      signal: this.#signal,
      withdrawn: this.#withdrawn.signal,
      mayTouchDevice: (wanted) => {
        this.#signal.throwIfAborted();
        return this.#call.mayTouchDevice(wanted);
      },
      sendChunk: (send) => this.#sendChunk(send),
      report: (progress) => {
        this.#progress = progress;
      },
    };
  }

  async #sendChunk<T>(send: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { to, longestChunk } = this.#options;
    const limit = new AbortController();
    const over = Promise.withResolvers<never>();
    const giveUp = (reason: unknown) => {
      limit.abort(reason);
      over.reject(reason);
    };
    const onAbort = () => giveUp(this.#signal.reason);
    const late = () =>
      giveUp(new DeviceFailure("timed_out", to, `a chunk was not taken within ${describeDuration(longestChunk)}`));
    const timer = setTimeout(late, longestChunk);
    this.#signal.addEventListener("abort", onAbort, { once: true });
    try {
      this.#signal.throwIfAborted();
      this.#call.mayTouchDevice(longestChunk); // the last thing before it leaves
      const sending = send(limit.signal);
      this.#chunk = sending.catch(() => undefined);
      const taken = await Promise.race([sending, over.promise]);
      failPoint("stream:chunk-sent");
      return taken;
    } finally {
      clearTimeout(timer);
      this.#signal.removeEventListener("abort", onAbort);
      over.promise.catch(() => undefined);
    }
  }
}
