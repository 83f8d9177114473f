import type { Server as HttpServer } from "node:http";
import type { Http2SecureServer, Http2Server } from "node:http2";
import type { Server, Socket } from "node:net";
import { systemClock } from "../../../kernel/time/clock.ts";
import { hours, minutes, seconds } from "../../../kernel/time/duration.ts";
import { type Peer, peerOf } from "../peer.ts";
import { CallQuotas, type QuotaRules } from "./call-quotas.ts";
import { addressGroup } from "./client-address.ts";
import { type ConnectionRules, Connections } from "./connections.ts";
import { clientOf } from "./forwarded.ts";
import { LimitLedger, type LimitLedgerOptions, type LimitReading } from "./limit-ledger.ts";
import { type SessionRules, Sessions } from "./sessions.ts";
import { UnreadAnswers } from "./unread.ts";

/** The `limits` section of the configuration, and who is trusted to name others. */
export interface LimitRules extends ConnectionRules, SessionRules, QuotaRules {
  /** Written for callers who do not read it, on all listeners together. */
  readonly unreadBytes: number;
  /** Proxies in front: what they say about where a request comes from is believed. */
  readonly isTrustedProxy: (address: string) => boolean;
}

/** For servers without a configuration: wide, so that only a flood meets them. */
export const WIDE_LIMITS: LimitRules = {
  connections: 20_000,
  connectionsPerAddress: 20_000,
  requestsPerCaller: 1_000_000,
  requestsPerAddress: 1_000_000,
  callsPerCaller: 1_000_000,
  streamsPerCaller: 1_000_000,
  streamsPerAddress: 1_000_000,
  unreadBytes: 2 ** 40,
  isExempt: () => false,
  isTrustedProxy: () => false,
  headersTimeout: seconds(10),
  idleSession: hours(1),
};

/** A request of either listener. */
interface Received {
  readonly socket: Socket;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** What callers are held to, on every listener of the process. */
export class ApiLimits {
  readonly rules: LimitRules;
  readonly ledger: LimitLedger;
  /** What callers may ask for, over RPC and REST together. */
  readonly quotas: CallQuotas;
  readonly #connections: Connections[] = [];
  readonly #unread: UnreadAnswers;

  constructor({ rules = WIDE_LIMITS, ...ledger }: LimitLedgerOptions & { readonly rules?: LimitRules }) {
    this.rules = rules;
    this.ledger = new LimitLedger(ledger);
    this.quotas = new CallQuotas(this.#addressRules(), this.ledger, ledger.clock ?? systemClock);
    this.#unread = new UnreadAnswers(rules.unreadBytes, this.ledger);
  }

  /** To be called for each server as soon as it is made, before others listen for its connections. */
  guardConnections(server: Server): void {
    this.#connections.push(new Connections(server, this.#addressRules(), this.ledger));
  }

  guardSessions(server: Http2Server | Http2SecureServer): void {
    new Sessions(server, this.rules, this.ledger);
  }

  guardStreams(server: Http2Server | Http2SecureServer): void {
    this.#unread.guardHttp2(server);
  }

  guardAnswers(server: HttpServer): void {
    this.#unread.guardHttp1(server);
  }

  /** The addresses that count as one with this one; undefined: it is held to no limit of an address. */
  countedAs(address: string): string | undefined {
    return this.#addressRules().isExempt(address) ? undefined : addressGroup(address);
  }

  /** Time limits of an HTTP/1.1 server. */
  forHttp1() {
    const { headersTimeout } = this.rules;
    return {
      headersTimeout,
      requestTimeout: REQUEST_TIMEOUT,
      // Node compares with the limits only this often, by itself every half minute.
      connectionsCheckingInterval: Math.max(10, headersTimeout / 10),
    };
  }

  forTls() {
    return { handshakeTimeout: this.rules.headersTimeout };
  }

  peerOf({ socket, headers }: Received): Peer {
    return {
      ...peerOf(socket),
      address: this.addressOf({ socket, headers }),
      signedIn: () => {
        for (const connections of this.#connections) connections.signedIn(socket);
      },
    };
  }

  /** Where a request comes from, as far as proxies that are trusted say. */
  addressOf({ socket, headers }: Received): string | null {
    return clientOf(socket.remoteAddress ?? null, headers["x-forwarded-for"], this.rules.isTrustedProxy);
  }

  readings(): LimitReading[] {
    return this.ledger.readings();
  }

  /** A proxy brings the connections of many. */
  #addressRules(): LimitRules {
    const { isExempt, isTrustedProxy } = this.rules;
    return { ...this.rules, isExempt: (address) => isExempt(address) || isTrustedProxy(address) };
  }
}

/** For receiving a whole request; answers may take longer. */
const REQUEST_TIMEOUT = minutes(2);
