import type { CallContext } from "../../capabilities/call.ts";
import type { OpenStream, StreamCall, StreamOptions, Streams } from "../../capabilities/stream.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { ClaimedWork } from "../../store/lifecycle/work.ts";
import type { Lease } from "./lease.ts";
import { LeaseStream } from "./lease-stream.ts";

export interface StreamHost {
  readonly clock: Clock;
  /** Prolongs the lease in the database; false when it is not ours any more. */
  prolong(work: ClaimedWork, leaseFor: Duration): Promise<boolean>;
  isFull(): boolean;
}

/** What passes under a lease know of its stream. */
export class LeaseStreams implements Streams {
  readonly #lease: Lease;
  readonly #call: CallContext;
  readonly #host: StreamHost;

  /** `call` is the frame of the lease, and not of one pass. */
  constructor(lease: Lease, call: CallContext, host: StreamHost) {
    this.#lease = lease;
    this.#call = call;
    this.#host = host;
  }

  get underWay(): OpenStream | undefined {
    return this.#lease.stream;
  }

  get isFull(): boolean {
    return this.#host.isFull();
  }

  async open<T>(options: StreamOptions, work: (call: StreamCall) => Promise<T>): Promise<OpenStream<T>> {
    const lease = this.#lease;
    if (lease.stream !== undefined) throw new Error(`${this.#call.subject} has a stream already`);
    lease.cover(options.longestChunk);
    // One that is on its way asks for less, and must not arrive after ours.
    await lease.renewal?.catch(() => undefined);
    const askedAt = this.#host.clock.monotonic();
    if (!(await this.#host.prolong(lease.work, lease.inDatabase))) {
      lease.lose();
      throw new StepFailure("stopped", "the lease was lost before the stream began; another replica goes on");
    }
    lease.renewed(askedAt);
    const stream = new LeaseStream(this.#call, options, work);
    lease.stream = stream;
    return stream as OpenStream<T>;
  }
}
