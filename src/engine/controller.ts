import { randomUUID } from "node:crypto";
import type { CallContext } from "../capabilities/call.ts";
import { messageOf, StepFailure } from "../kernel/errors.ts";
import { GONE, type Thing } from "../kernel/lifecycle.ts";
import type { Log } from "../kernel/log.ts";
import { type Clock, readingFor, systemClock } from "../kernel/time/clock.ts";
import { type Duration, milliseconds, seconds } from "../kernel/time/duration.ts";
import { pauseBefore, retrying } from "../kernel/time/retry.ts";
import { thingAfter } from "../store/lifecycle/commit/unit.ts";
import { announceNow } from "../store/lifecycle/journal.ts";
import { storeOf, type ThingStores, type Unreadable } from "../store/lifecycle/things.ts";
import * as work from "../store/lifecycle/work.ts";
import type { Database } from "../store/postgres/database.ts";
import { isDatabaseTrouble } from "../store/postgres/database-errors.ts";
import { failPoint } from "../store/postgres/fail-points.ts";
import { ChangeLog, isFailure } from "./change-log.ts";
import { type Committer, createCommitter, type Submitted } from "./committer.ts";
import { takeAgain, untilNextPass } from "./lease/between-passes.ts";
import { inDatabase, Lease, type LeaseTimes, STOCK_LEASE } from "./lease/lease.ts";
import { runLeaseKeeper } from "./lease/lease-keeper.ts";
import type { LeaseStream } from "./lease/lease-stream.ts";
import { LeaseStreams, type StreamHost } from "./lease/lease-streams.ts";
import { runPassInterrupter } from "./lease/pass-interrupter.ts";
import { createLoader, type Loader } from "./loader.ts";
import { type EngineObserver, unobserved } from "./observer.ts";
import { type HandlerOf, makePass, type PassResult } from "./pass.ts";
import { movesOf, nameOutcome, unitOf } from "./pass-unit.ts";

export interface ControllerOptions {
  readonly db: Database;
  readonly stores: ThingStores;
  readonly handlers: ReadonlyMap<string, HandlerOf>;
  readonly log: Log;
  readonly clock?: Clock;
  readonly observer?: EngineObserver;
  /** Names this replica in leases. */
  readonly owner?: string;
  /** Passes at the same time. */
  readonly inFlight?: number;
  /** How long passes under way may go on after a stop, before they are cut off. */
  readonly grace?: Duration;
  readonly lease?: LeaseTimes;
}

const CLAIM_BATCH = 250;
const COMMIT_BATCH = 500;
/** After so many passes in a row a thing makes room for others. */
const MOST_PASSES = 10;
/** And after so many even in the middle of something that it has announced. */
const MOST_CHAINED = 200;
/** Exported for its test. */
export const IDLE_POLL = seconds(1);
/** A pass that takes longer waits for a device. */
const SLOW_PASS = milliseconds(500);
/** Passes under way in all, those that wait for slow devices among them: so many times those that do not. */
const MOST_WAITING = 5;
/** While there is no room: soon somebody is done, or slow. */
const FULL_POLL = milliseconds(250);
const CONTENDED_PAUSE = milliseconds(10);
/** While the database does not answer, and a stream goes on. */
const AWAY_PAUSE = seconds(1);
/** Until a thing that only another version can read is due again: what this replica claims meanwhile, the other one cannot. */
const ANOTHER_COMES = seconds(10);
/** Of a stream that ends because the work under its lease does. */
const CUT_SHORT = new StepFailure("stopped", "the work was cut off in the middle of a stream");

/**
 * The one loop for all lifecycles: claim what is due, load it, decide, handle, commit.
 *
 * Any number of replicas run it on the same database. What a pass leads to is written only under its lease and against the
 * version that it saw.
 */
export class Controller {
  readonly #options: Required<ControllerOptions>;
  readonly #committer: Committer;
  readonly #changes: ChangeLog;
  readonly #loaders = new Map<string, Loader>();
  readonly #leases = new Set<Lease>();
  /** Those whose thing has said that it is about to do something: we alone know that it has not yet, so we see it through. */
  readonly #midway = new Set<Lease>();
  #cutOff = new AbortController();
  readonly #streamHost: StreamHost;
  /** Streams outlast passes: who waits for one learns of a stop at once. */
  #stopped = Promise.withResolvers<void>();
  #nudge = Promise.withResolvers<void>();
  #isNudged = false;
  #stopping = false;
  #mayHaveLostAnswers = false;

  constructor(options: ControllerOptions) {
    this.#options = {
      clock: systemClock,
      observer: unobserved,
      owner: randomUUID(),
      inFlight: 1_000,
      grace: seconds(5),
      lease: STOCK_LEASE,
      ...options,
    };
    const { db, stores } = options;
    const { owner, clock, inFlight } = this.#options;
    this.#streamHost = {
      clock,
      prolong: (held, leaseFor) => work.prolong(db, owner, { ...held, leaseFor }),
      isFull: () => [...this.#leases].filter(({ stream }) => stream !== undefined).length >= inFlight,
    };
    this.#changes = new ChangeLog(options.log);
    this.#committer = createCommitter({
      db,
      stores,
      most: COMMIT_BATCH,
      atOnce: 2,
      claimRecheck: seconds(30),
      onDue: () => this.nudge(),
    });
    for (const kind of options.handlers.keys()) this.#loaders.set(kind, createLoader(db, stores, kind));
  }

  /** Runs until the signal aborts; then hands its work over at once and resolves. May be run again after that. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, stores, log, clock, owner, grace, lease } = this.#options;
    this.#stopping = signal.aborted;
    this.#cutOff = new AbortController();
    this.#stopped = Promise.withResolvers();
    const keeping = new AbortController();
    const every = milliseconds(lease.own / 3);
    const keeper = runLeaseKeeper({ db, owner, leases: this.#leases, clock, log, every }, keeping.signal);
    const interrupter = runPassInterrupter({ db, stores, leases: this.#leases, clock, log }, keeping.signal);
    const onStop = () => {
      this.#stopping = true;
      this.#stopped.resolve();
      this.nudge();
    };
    signal.addEventListener("abort", onStop, { once: true });
    while (!signal.aborted) {
      try {
        await this.#claimAndDispatch(signal);
      } catch (error) {
        this.#mayHaveLostAnswers = true;
        log.warn({ err: error }, "work could not be claimed; trying again");
        this.#nudge = Promise.withResolvers();
        await this.#idle(seconds(1));
      }
    }
    const cut = setTimeout(() => this.#cutOff.abort(new Error("shutting down")), grace);
    while (this.#leases.size > 0) {
      this.#nudge = Promise.withResolvers();
      await this.#idle(milliseconds(50));
    }
    clearTimeout(cut);
    keeping.abort();
    await Promise.all([keeper, interrupter]);
    await announceNow(db).catch(() => undefined); // the other replicas then take over at once, not at their next poll
  }

  /** Something may be due: claim now instead of at the next poll. */
  nudge(): void {
    this.#isNudged = true;
    this.#nudge.resolve();
  }

  async #claimAndDispatch(signal: AbortSignal): Promise<void> {
    const { db, owner, clock, lease } = this.#options;
    const kinds = [...this.#loaders.keys()];
    this.#nudge = Promise.withResolvers();
    this.#isNudged = false;
    const room = this.#room();
    if (room <= 0) return this.#idle(FULL_POLL);
    const limit = Math.min(CLAIM_BATCH, room);
    await this.#recoverLeases();
    const askedAt = clock.monotonic();
    const onTime = readingFor(clock);
    const leaseFor = inDatabase(lease);
    const claimed = await work.claim(db, { owner, kinds, limit, leaseFor, onTime });
    failPoint("controller:claimed", claimed);
    for (const one of claimed) void this.#follow(new Lease(one, clock, askedAt, lease));
    // Whoever was told of something new meanwhile looks again anyway, and need not ask when the next is due.
    if (claimed.length === limit || signal.aborted || this.#isNudged) return;
    const due = await work.untilNextDue(db, kinds, readingFor(clock));
    // What is due and was not given to us is locked by somebody for the moment: no reason to ask a thousand times a second.
    const soonest = claimed.length === 0 ? CONTENDED_PAUSE : 1;
    await this.#idle(milliseconds(Math.max(soonest, Math.min(IDLE_POLL, due ?? IDLE_POLL))));
  }

  /**
   * How many more passes may begin. Passes that have long been waiting for their device give up their place: they cost next
   * to nothing, and however many devices hang, the others are not to wait for them.
   */
  #room(): number {
    const { inFlight, clock } = this.#options;
    const held = this.#leases.size;
    if (held < inFlight) return inFlight - held;
    const longSince = clock.monotonic() - SLOW_PASS;
    let slow = 0;
    for (const { handlingSince } of this.#leases) if (handlingSince < longSince) slow += 1;
    return Math.min(inFlight - (held - slow), inFlight * MOST_WAITING - held);
  }

  /** After trouble with the database: leases that nobody works under need not run out first. */
  async #recoverLeases(): Promise<void> {
    if (!this.#mayHaveLostAnswers) return;
    const { db, owner } = this.#options;
    this.#mayHaveLostAnswers = false; // before the query: an answer that is lost while it runs is for the next one
    await work.releaseUnheld(db, { owner, held: [...this.#leases].map((lease) => lease.work) });
  }

  async #idle(most: Duration): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.#nudge.promise, new Promise((resolve) => (timer = setTimeout(resolve, most)))]);
    clearTimeout(timer);
  }

  /** Makes a pass of one thing, and further ones in the same claim while it moves, or wants another one at once. */
  async #follow(lease: Lease): Promise<void> {
    this.#leases.add(lease);
    const { kind, id } = lease.work;
    try {
      let passes = 0;
      while (await this.#passUnlessCutOff(lease, passes)) passes += 1;
    } catch (error) {
      await lease.endStream(CUT_SHORT);
      this.#options.log.warn({ err: error, kind, id }, "a pass was cut short; the thing falls due again");
      await this.#giveBack(lease, error);
    } finally {
      if (lease.stream !== undefined) await lease.endStream(CUT_SHORT);
      const full = this.#leases.size >= this.#options.inFlight;
      this.#leases.delete(lease);
      this.#midway.delete(lease);
      if (full || this.#leases.size === 0) this.nudge();
    }
  }

  /** A database that is away for a moment ends no stream, as long as the lease is ours. Returns whether to go on. */
  async #passUnlessCutOff(lease: Lease, passes: number): Promise<boolean> {
    if (lease.stream !== undefined && lease.signal.aborted) return this.#abandon(lease);
    try {
      return await this.#passOnce(lease, passes);
    } catch (error) {
      if (!isDatabaseTrouble(error) || lease.stream === undefined) throw error;
      this.#options.log.debug({ err: error, ...lease.work }, "the database does not answer; the stream goes on");
      await takeAgain(lease, lease.stream, AWAY_PAUSE);
      return true;
    }
  }

  /** Returns whether to go on with the same thing. */
  async #passOnce(lease: Lease, passes: number): Promise<boolean> {
    const { clock, observer, handlers, stores, log, lease: leaseTimes } = this.#options;
    const { kind, id } = lease.work;
    const isMidway = this.#midway.delete(lease);
    if (this.#stopping && !isMidway) return this.#abandon(lease);
    const { thing, unreadable } = lease.nextThing
      ? { thing: lease.nextThing }
      : await (this.#loaders.get(kind) as Loader).submit(id);
    if (!thing) return this.#setAside(lease, unreadable);
    const where = [{ kind, state: thing.state.name }];
    failPoint("controller:loaded", where);
    const startedAt = clock.monotonic();
    if (lease.stream === undefined) lease.handlingSince = startedAt;
    lease.thing = thing;
    const { lifecycle, factsWith } = storeOf(stores, kind);
    const pass = await makePass({
      lifecycle,
      factsWith,
      handlerOf: handlers.get(kind) as HandlerOf,
      thing,
      failures: passes === 0 ? lease.work.failures : 0,
      clock,
      call: this.#callContext(lease),
    });
    const isStreaming = lease.stream !== undefined && !lease.stream.isTaken;
    // A stream is one long pass, as far as places and what overtakes it are concerned.
    if (!isStreaming) lease.handlingSince = Number.POSITIVE_INFINITY;
    const isCutShort = this.#cutOff.signal.aborted || lease.signal.aborted;
    // Neither a bug nor a failure of the thing: its next pass comes once the database answers.
    if (!isCutShort && isDatabaseTrouble(pass.bug)) throw pass.bug;
    if (pass.bug && !isCutShort && (pass.outcome === null || pass.outcome.reason !== thing.outcome?.reason))
      log.error({ err: pass.bug, kind, id, state: thing.state.name }, "a handler threw an unexpected error");
    failPoint("controller:handled", where);
    const took = milliseconds(clock.monotonic() - startedAt);
    observer.handled({ kind, state: thing.state.name, outcome: nameOutcome(pass), took });
    if (isCutShort) return this.#abandon(lease);

    const after = pass.move ? milliseconds(0) : pass.after;
    const last = movesOf(pass).at(-1);
    const isTerminal = lifecycle.states[last?.to ?? thing.state.name]?.terminal === true;
    const isOver = last ? last.gone || isTerminal : isTerminal && after === null;
    // A move that stays announces the next pass: handed over in between, another replica would have to wait whether it happened.
    // One that announces without end gets no more than its turn for ever; and who is being stopped sees only the last one through.
    const mayChain = !isMidway || (!this.#stopping && passes < MOST_CHAINED);
    const isHalf = mayChain && pass.move !== undefined && pass.move.from === pass.move.to;
    const hasTurn = passes + 1 < MOST_PASSES && lease.remaining > leaseTimes.own / 2;
    const goesOn = !isOver && (isStreaming || (after === 0 && (isHalf || hasTurn)));
    if (!goesOn && isStreaming) await lease.endStream(CUT_SHORT);
    const { failures, error, cause } = pass;
    const release = { after: isOver ? null : after, failures, error, cause: cause?.code ?? null, over: isOver };
    const unit = unitOf(kind, thing, pass, { epoch: lease.work.epoch });
    const result = await this.#committer.submit({
      claimed: lease.work,
      ...(unit && { unit }),
      ...(!goesOn && { release }),
      keepsLease: lease.stream !== undefined,
    });
    this.#tell(result, lease, thing, pass);
    if (lease.stream !== undefined && result.type !== "committed") return this.#passAgain(lease, lease.stream, result);
    if (result.type !== "committed") return false;
    if (!isStreaming) lease.stream = undefined;
    if (!goesOn) return false;
    if (isHalf) this.#midway.add(lease);
    lease.nextThing = unit ? thingAfter(storeOf(stores, kind), unit, result.stateSince) : undefined;
    if (isStreaming) await untilNextPass(lease, after, this.#stopped.promise);
    return true;
  }

  /** Somebody changed a thing whose stream goes on, or has just ended: the next pass takes it as it is now, under the same lease. */
  async #passAgain(lease: Lease, stream: LeaseStream, result: Submitted): Promise<boolean> {
    if (result.type === "quarantined") throw new Error(result.error);
    if (result.type === "fenced") return false;
    await takeAgain(lease, stream, CONTENDED_PAUSE);
    return true;
  }

  #callContext(lease: Lease): CallContext {
    const call = lease.callContext(this.#cutOff.signal, () => !this.#stopping);
    return { ...call, streams: new LeaseStreams(lease, call, this.#streamHost) };
  }

  #tell(result: Submitted, lease: Lease, thing: Thing, pass: PassResult): void {
    const { observer, clock, log, stores } = this.#options;
    const { kind, id } = lease.work;
    if (result.type === "conflict") observer.conflicted(kind);
    if (result.type === "fenced") observer.leaseLost(kind);
    if (result.type === "quarantined") {
      observer.quarantined({ kind, id, error: result.error });
      log.error({ kind, id, error: result.error }, "an outcome could not be written; the thing is set aside");
    }
    if (result.type !== "committed") return;
    const { lifecycle } = storeOf(stores, kind);
    this.#changes.committed({ lifecycle, thing, pass });
    if (pass.cause) observer.failed({ kind, state: thing.state.name, cause: pass.cause.code });
    for (const move of movesOf(pass))
      if (isFailure(lifecycle, move)) observer.failed({ kind, state: move.from, cause: move.cause?.code ?? "unknown" });
    for (const [index, { from, to, gone, cause }] of movesOf(pass).entries()) {
      const after = milliseconds(index === 0 ? clock.now().getTime() - thing.stateSince.getTime() : 0);
      observer.moved({ kind, from, to: gone ? GONE : to, after, thing, cause: cause?.code });
    }
  }

  /** A row that does not parse gets its next pass after a growing pause, unless another version reads it; one that is gone needs no more passes. */
  async #setAside(lease: Lease, unreadable: Omit<Unreadable, "id"> | undefined): Promise<false> {
    const { db, observer, log } = this.#options;
    const { kind, id, epoch } = lease.work;
    await lease.endStream(CUT_SHORT);
    if (unreadable === undefined) {
      await work.forgetClaimed(db, { kind, id, epoch });
      return false;
    }
    const { error: why, isForAnother } = unreadable;
    if (isForAnother) return this.#leaveToAnother(lease, why);
    const failures = lease.work.failures + 1;
    observer.quarantined({ kind, id, error: why });
    log.error({ kind, id, error: why }, "the row cannot be read; the thing is set aside");
    const error = `its row cannot be read: ${why}`;
    await work.release(db, [
      { kind, id, epoch, after: pauseBefore(failures, retrying), failures, error, cause: "quarantined" },
    ]);
    return false;
  }

  /** No failure of the thing: the pause lets a replica of the version that knows it take it up, and is never longer than this. */
  async #leaveToAnother(lease: Lease, why: string): Promise<false> {
    const { kind, id, epoch, failures } = lease.work;
    this.#options.log.debug({ kind, id, why }, "the thing is left to a replica of another version");
    const cause = "not_on_this_server";
    await work.release(this.#options.db, [{ kind, id, epoch, after: ANOTHER_COMES, failures, error: why, cause }]);
    return false;
  }

  async #abandon(lease: Lease): Promise<false> {
    await lease.endStream(CUT_SHORT);
    const { failures } = lease.work;
    // With what others write: who is stopped may hold hundreds of leases.
    await this.#committer.submit({ claimed: lease.work, release: { after: milliseconds(0), failures, error: null } });
    this.nudge(); // it is due at once, and nobody else says so
    return false;
  }

  /** Trouble with the database is not the thing's own: it is not counted against it, nor tried more rarely for it. */
  async #giveBack(lease: Lease, cause: unknown): Promise<void> {
    const { kind, id, epoch } = lease.work;
    const isOurs = !isDatabaseTrouble(cause);
    const failures = lease.work.failures + (isOurs ? 1 : 0);
    const after = isOurs ? pauseBefore(failures, retrying) : seconds(1);
    const code = isOurs ? "bug" : "server_trouble";
    const release = { kind, id, epoch, after, failures, error: messageOf(cause), cause: code } as const;
    await work.release(this.#options.db, [release]).catch((lost: unknown) => {
      this.#mayHaveLostAnswers = true;
      this.#options.log.debug({ err: lost, kind, id }, "left until the database answers again, or its lease ends");
    });
  }
}
