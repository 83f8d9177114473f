import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { DeviceEvents } from "../../capabilities/events/device-events.ts";
import type { EventInbox } from "../../capabilities/events/event-inbox.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds, minutes } from "../../kernel/time/duration.ts";
import type { ClaimedStream } from "../../store/device/event-streams.ts";
import { NudgePacer } from "./nudge-pacer.ts";
import type { StreamEnd } from "./stream-back-off.ts";

/** What is known of a stream, for those who share it out. */
export interface StreamHost {
  readonly clock: Clock;
  /** So long after the last whole line a stream is not counted on any more. */
  readonly silence: Duration;
  /** How often a device of this kind is polled without events. */
  pollsEvery(kind: string): Duration;
  /** Throws when this replica may hold no streams any more. */
  mayHold(): void;
  opened(stream: EventStream): void;
  nudge(stream: EventStream): void;
  /** Called with each change, in turn; the last one counts. */
  liveChanged(stream: EventStream, isLive: boolean): void;
}

/** A stream of which nothing is heard for this long is closed, and opened again: whatever serves it may hang. */
const SILENT_FOR_GOOD: Duration = minutes(10);
/** A stream that stood for this long was of use: what ended it is no reason to wait longer for the next. */
const OF_USE: Duration = minutes(1);

/** The stream of one device, from claim to end. */
export class EventStream {
  readonly claimed: ClaimedStream;
  readonly #host: StreamHost;
  readonly #ending = new AbortController();
  readonly #pacer: NudgePacer;
  #openedAt: number | undefined;
  #heardAt = Number.NEGATIVE_INFINITY;
  #presentAt = Number.NEGATIVE_INFINITY;
  #isLive = false;
  #end: StreamEnd | undefined;

  constructor(claimed: ClaimedStream, host: StreamHost) {
    this.claimed = claimed;
    this.#host = host;
    const every = host.pollsEvery(claimed.kind);
    this.#pacer = new NudgePacer(() => host.nudge(this), { every, clock: host.clock });
  }

  get isOpen(): boolean {
    return this.#openedAt !== undefined && !this.#ending.signal.aborted;
  }

  get wasOpened(): boolean {
    return this.#openedAt !== undefined;
  }

  /** Why it was ended from our side; undefined while it was not. */
  get endedBecause(): StreamEnd | undefined {
    return this.#end;
  }

  get wasOfUse(): boolean {
    return this.#openedAt !== undefined && this.#host.clock.monotonic() - this.#openedAt > OF_USE;
  }

  /** Lasts for as long as the stream. @throws what broke it */
  async follow(events: DeviceEvents, target: BmcTarget, inbox?: EventInbox): Promise<void> {
    const { kind, id } = this.claimed;
    const call = {
      signal: this.#ending.signal,
      subject: `events of ${kind} ${id}`,
      mayTouchDevice: (wanted: Duration) => {
        this.#host.mayHold();
        return wanted;
      },
    };
    const listener = {
      // What happened while nobody listened is found by reading the device.
      opened: () => {
        this.#openedAt = this.#host.clock.monotonic();
        this.#host.opened(this);
        this.#pacer.heard();
      },
      alive: () => this.#heard(),
      // No sign of life: that its events arrive nobody knows before one does, so that the device is polled as ever.
      present: () => {
        this.#presentAt = this.#host.clock.monotonic();
      },
      happened: () => this.#pacer.heard(),
    };
    try {
      await events.follow(target, listener, call, inbox);
    } finally {
      this.#pacer.stop();
      this.#setLive(false);
    }
  }

  end(why: StreamEnd): void {
    this.#end ??= why;
    this.#ending.abort(new StepFailure("stopped", `the events are no longer followed: ${why}`));
  }

  /** Called again and again: nobody tells of silence. */
  noticeSilence(): void {
    const heardAt = Math.max(this.#heardAt, this.#openedAt ?? Infinity);
    const silentFor = (since: number) => milliseconds(this.#host.clock.monotonic() - since);
    if (silentFor(heardAt) > this.#host.silence) this.#setLive(false);
    if (silentFor(Math.max(heardAt, this.#presentAt)) > SILENT_FOR_GOOD) this.end("silent");
  }

  #heard(): void {
    this.#heardAt = this.#host.clock.monotonic();
    this.#setLive(true);
  }

  #setLive(isLive: boolean): void {
    if (isLive === this.#isLive) return;
    this.#isLive = isLive;
    this.#host.liveChanged(this, isLive);
  }
}
