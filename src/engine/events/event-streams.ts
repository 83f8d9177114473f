import { setTimeout as pause } from "node:timers/promises";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { DeviceEvents } from "../../capabilities/events/device-events.ts";
import { causeOf, messageOf, StepFailure } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import * as streams from "../../store/device/event-streams.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import type { Database } from "../../store/postgres/database.ts";
import { EventStream, type StreamHost } from "./event-stream.ts";
import { type EventAddresses, Inboxes } from "./inboxes.ts";
import { pauseAfter, STREAM_BACK_OFF, type StreamBackOff, type StreamEnd } from "./stream-back-off.ts";

/** What is told for metrics. */
export interface EventsObserver {
  nudged(kind: string): void;
  ended(seen: { readonly kind: string; readonly reason: StreamEnd }): void;
}

/** Where the events of a device are followed. */
export interface EventPlace {
  readonly events: DeviceEvents;
  readonly target: BmcTarget;
}

export interface EventStreamsOptions {
  readonly db: Database;
  readonly log: Log;
  readonly owner: string;
  /** In the order of the keys. Undefined, or the failure: its events cannot be followed. */
  readonly placesOf: (keys: readonly ThingKey[]) => Promise<readonly (EventPlace | StepFailure)[]>;
  /** Has the device read soon, by whichever replica. */
  readonly nudge: (key: ThingKey) => Promise<void>;
  /** Streams at a time. */
  readonly most: number;
  readonly silence: Duration;
  /** For devices that send their events instead of streaming them. Absent: they are polled. */
  readonly addresses?: EventAddresses | undefined;
  readonly pollsEvery: (kind: string) => Duration;
  readonly clock?: Clock;
  readonly observer?: EventsObserver;
  readonly backOff?: StreamBackOff;
}

const TICK: Duration = seconds(1);
/** A replica that is not heard of for this long holds no streams any more. */
const HOLDS_FOR: Duration = seconds(15);
const HOLD_ON_EVERY: Duration = seconds(5);
const NOTE_DEVICES_EVERY: Duration = seconds(5);
/** Opened in one tick, so that a fleet is not connected to as one. */
const OPENED_AT_ONCE = 20;

const keyOf = ({ kind, id }: ThingKey): string => `${kind} ${id}`;

/**
 * Follows the events of devices. An event is only a nudge: the device is read soon, as it always is, and nothing in the event is
 * believed. Replicas share the devices by the database; each BMC has one stream.
 */
export class EventStreams {
  readonly #options: Required<Omit<EventStreamsOptions, "addresses">>;
  readonly #inboxes: Inboxes | undefined;
  readonly #held = new Map<string, EventStream>();
  readonly #underWay = new Set<Promise<void>>();
  /** Writes of whether a stream lives, and its release, one after the other. */
  readonly #writes = new Map<EventStream, Promise<void>>();
  readonly #host: StreamHost;
  #heldOnAt = Number.NEGATIVE_INFINITY;
  #notedAt = Number.NEGATIVE_INFINITY;

  constructor({ addresses, ...options }: EventStreamsOptions) {
    this.#inboxes = addresses && new Inboxes(options.db, addresses);
    const unobserved = { nudged() {}, ended() {} };
    this.#options = { clock: systemClock, observer: unobserved, backOff: STREAM_BACK_OFF, ...options };
    const { clock, silence, pollsEvery, log } = this.#options;
    this.#host = {
      clock,
      silence,
      pollsEvery,
      mayHold: () => {
        if (!this.#mayHold) throw new StepFailure("stopped", "another replica may follow these events by now");
      },
      opened: ({ claimed: { kind, id } }) => log.info({ kind, id }, "events are followed"),
      nudge: ({ claimed }) => this.#nudge(claimed),
      liveChanged: (stream, isLive) => this.#liveChanged(stream, isLive),
    };
  }

  /** Streams that stand now. */
  get open(): number {
    return [...this.#held.values()].filter(({ isOpen }) => isOpen).length;
  }

  /** Runs until the signal aborts; then ends all streams, leaves their devices to the others, and resolves. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, log, owner } = this.#options;
    while (!signal.aborted) {
      await this.#tick().catch((error: unknown) => {
        log.warn({ err: error }, "events could not be looked after; trying again");
      });
      if (!this.#mayHold) this.#endAll("stopped");
      for (const stream of this.#held.values()) stream.noticeSilence();
      await pause(TICK, undefined, { signal }).catch(() => undefined);
    }
    this.#endAll("stopped");
    await Promise.all(this.#underWay);
    await streams.letGo(db, owner).catch(() => undefined); // else others find out by themselves
  }

  get #mayHold(): boolean {
    return this.#options.clock.monotonic() - this.#heldOnAt < HOLDS_FOR;
  }

  async #tick(): Promise<void> {
    const { db, owner, clock, most } = this.#options;
    const now = clock.monotonic();
    if (now - this.#heldOnAt >= HOLD_ON_EVERY) {
      await streams.holdOn(db, owner, HOLDS_FOR);
      this.#heldOnAt = now; // from before the question: the others count from later on
    }
    await this.#endWhatIsNotOurs();
    await this.#inboxes?.collect();
    if (now - this.#notedAt >= NOTE_DEVICES_EVERY) {
      this.#notedAt = now;
      await streams.noteDevices(db);
      await streams.shareStreams(db, owner);
    }
    const limit = Math.min(OPENED_AT_ONCE, most - this.#held.size);
    if (limit > 0) this.#openAll(await streams.claimStreams(db, { owner, limit }));
  }

  /** Devices that are gone or have moved, have other credentials, or are another replica's by now. */
  async #endWhatIsNotOurs(): Promise<void> {
    const held = [...this.#held.values()];
    const kept = await streams.findHeld(
      this.#options.db,
      held.map(({ claimed }) => claimed),
    );
    const keptKeys = new Set(kept.map(keyOf));
    const lost = held.filter(({ claimed }) => !keptKeys.has(keyOf(claimed)));
    for (const stream of lost) stream.end("changed");
    // Before one of them is claimed again: where it is now is to be on record.
    if (lost.length > 0) this.#notedAt = Number.NEGATIVE_INFINITY;
  }

  #openAll(claimed: readonly streams.ClaimedStream[]): void {
    if (claimed.length === 0) return;
    const opened = claimed.map((one) => new EventStream(one, this.#host));
    for (const stream of opened) this.#held.set(keyOf(stream.claimed), stream);
    // Claimed together, looked up together.
    const places = this.#options.placesOf(claimed);
    for (const [index, stream] of opened.entries()) {
      const following = this.#follow(
        stream,
        places.then((all) => all[index]),
      ).finally(() => {
        if (this.#held.get(keyOf(stream.claimed)) === stream) this.#held.delete(keyOf(stream.claimed));
        this.#underWay.delete(following);
      });
      this.#underWay.add(following);
    }
  }

  async #follow(stream: EventStream, placed: Promise<EventPlace | StepFailure | undefined>): Promise<void> {
    const { observer, log, backOff } = this.#options;
    const { kind, id, failures } = stream.claimed;
    const inbox = this.#inboxes?.openFor(stream.claimed);
    try {
      const place = await placed;
      if (place === undefined || place instanceof Error) throw place ?? new Error("the device was not found");
      await stream.follow(place.events, place.target, inbox);
      throw new StepFailure("stopped", "the stream was ended");
    } catch (error) {
      inbox?.close();
      const ours = stream.endedBecause;
      const reason: StreamEnd = ours ?? causeOf(error).code;
      observer.ended({ kind, reason });
      log.info(
        { kind, id, reason, ...(ours === undefined && { message: messageOf(error) }) },
        "events are not followed",
      );
      const isNoFailure = ours === "stopped" || ours === "changed";
      const count = isNoFailure ? 0 : stream.wasOfUse ? 1 : failures + 1;
      const after = isNoFailure ? milliseconds(0) : pauseAfter(error, count, backOff);
      await this.#release(stream, { after, failures: count, reason: isNoFailure ? null : reason });
    }
  }

  /** First that there is no stream any more, then the nudge: the pass that follows polls at the full rate again. */
  async #release(
    stream: EventStream,
    { after, failures, reason }: Pick<streams.StreamRelease, "after" | "failures" | "reason">,
  ): Promise<void> {
    const { db, log, owner } = this.#options;
    await this.#writes.get(stream);
    this.#writes.delete(stream);
    const { kind, id, epoch, bmc } = stream.claimed;
    await streams
      .releaseStreams(db, [{ kind, id, epoch, bmc, owner, after, failures, reason }])
      .catch((error: unknown) => {
        log.debug({ err: error, kind, id }, "a stream could not be released; another replica finds out");
      });
    if (stream.wasOpened) this.#nudge(stream.claimed);
  }

  #liveChanged(stream: EventStream, isLive: boolean): void {
    const { db, log } = this.#options;
    const { kind, id } = stream.claimed;
    log.debug({ kind, id, isLive }, "whether a stream of events gives signs of life has changed");
    const before = this.#writes.get(stream) ?? Promise.resolve();
    const written = before
      .then(() => streams.setLive(db, stream.claimed, isLive))
      .then((isOurs) => {
        if (isOurs && !isLive && stream.isOpen) this.#nudge(stream.claimed);
      })
      .catch((error: unknown) => {
        // A device that is polled too often is no harm; one that is polled too rarely is.
        log.debug({ err: error, kind, id }, "it could not be written whether a stream lives");
        stream.end("silent");
      });
    this.#writes.set(stream, written);
  }

  /** An event says nothing of which of the systems behind a BMC it is about that we would believe: all of them are read. */
  #nudge(claimed: streams.ClaimedStream): void {
    const { log } = this.#options;
    this.#nudgeAll(claimed).catch((error: unknown) => {
      const { kind, id } = claimed;
      log.debug({ err: error, kind, id }, "a device could not be nudged; it is polled");
    });
  }

  async #nudgeAll(claimed: streams.ClaimedStream): Promise<void> {
    const { db, nudge, observer } = this.#options;
    for (const key of await streams.findSharing(db, claimed)) {
      observer.nudged(key.kind);
      await nudge(key);
    }
  }

  #endAll(why: StreamEnd): void {
    for (const stream of this.#held.values()) stream.end(why);
  }
}
