import { constants, type Http2SecureServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { Duration } from "../../../kernel/time/duration.ts";
import type { Limit, LimitLedger } from "./limit-ledger.ts";

export interface SessionRules {
  /** For what begins a connection, and for the header list of each call. */
  readonly headersTimeout: Duration;
  /** How long a connection may have no call. */
  readonly idleSession: Duration;
}

/** Checks in one time limit for headers; each is a turn of the event loop, so that one which is late harms nobody. */
const CHECKS = 10;
/** After the first word that we are done with an idle connection, for calls that were on their way. */
const GRACE_CHECKS = 5;
/** A gRPC client measures its connection with pings, some hundred a second at the most. */
const MOST_CONTROL_FRAMES = 10_000;

interface Watched {
  readonly session: ServerHttp2Session;
  /** Whether the client's preface and settings have come. */
  hasBegun: boolean;
  age: number;
  streams: number;
  idle: number;
  /** Pings and settings since the last check. */
  controlFrames: number;
  /** What had been received when the peer was last known to be between two frames. */
  accountedFor: number;
  /** Checks since it was asked; undefined while nothing is asked. */
  asked: number | undefined;
}

/**
 * Holds the HTTP/2 connections of one server to their time limits.
 *
 * Header lists that come drop by drop show nowhere: Node tells of a call when its headers are complete. So a peer that has sent something is
 * asked with a ping. Within a header list, or within a frame, HTTP/2 lets nobody answer.
 */
export class Sessions {
  readonly #ledger: LimitLedger;
  readonly #open = new Set<Watched>();
  readonly #every: number;
  readonly #idleChecks: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(server: Http2Server | Http2SecureServer, rules: SessionRules, ledger: LimitLedger) {
    this.#ledger = ledger;
    this.#every = Math.max(10, rules.headersTimeout / CHECKS);
    this.#idleChecks = Math.ceil(rules.idleSession / this.#every);
    server.on("session", (session) => this.#watch(session));
  }

  #watch(session: ServerHttp2Session): void {
    const watched: Watched = {
      ...{ session, hasBegun: false, age: 0, streams: 0, idle: 0 },
      ...{ controlFrames: 0, accountedFor: 0, asked: undefined },
    };
    session.on("remoteSettings", () => {
      watched.hasBegun = true;
      watched.controlFrames += 1;
    });
    session.on("ping", () => {
      watched.controlFrames += 1;
    });
    session.on("stream", (stream) => {
      watched.streams += 1;
      watched.idle = 0;
      stream.once("close", () => {
        watched.streams -= 1;
      });
    });
    this.#open.add(watched);
    session.once("close", () => {
      this.#open.delete(watched);
      if (this.#open.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    this.#timer ??= setInterval(() => {
      for (const each of this.#open) this.#check(each);
    }, this.#every).unref();
  }

  #check(watched: Watched): void {
    const { session } = watched;
    if (session.destroyed) return;
    watched.age += 1;
    const broken = this.#brokenBy(watched);
    if (broken) {
      this.#end(watched, broken);
      return;
    }
    watched.controlFrames = 0;
    if (!watched.hasBegun || watched.asked !== undefined) return;
    if (session.socket.bytesRead !== watched.accountedFor) this.#ask(watched);
    this.#checkIdle(watched);
  }

  #brokenBy(watched: Watched): Limit | undefined {
    if (watched.controlFrames > (MOST_CONTROL_FRAMES * this.#every) / 1_000) return "control_frames";
    if (!watched.hasBegun) return watched.age >= CHECKS ? "headers" : undefined;
    if (watched.asked === undefined) return undefined;
    watched.asked += 1;
    return watched.asked >= CHECKS - 2 ? "headers" : undefined;
  }

  #ask(watched: Watched): void {
    const { session } = watched;
    watched.asked = 0;
    // An error means that the connection is ending.
    session.ping((error) => {
      if (error || session.destroyed) return;
      watched.asked = undefined;
      watched.accountedFor = session.socket.bytesRead;
    });
  }

  /** In two steps, so that a call which the client sends right now is still served. */
  #checkIdle(watched: Watched): void {
    const { session } = watched;
    if (watched.streams > 0) return;
    watched.idle += 1;
    if (watched.idle === this.#idleChecks) session.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
    if (watched.idle < this.#idleChecks + GRACE_CHECKS) return;
    this.#ledger.count("idle_session");
    session.close();
  }

  #end({ session }: Watched, limit: Limit): void {
    this.#ledger.refuse(limit, { address: session.socket.remoteAddress ?? null });
    session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}
