import { type Setting, setting } from "./setting.ts";
import * as kinds from "./value-kinds.ts";

/** What callers are held to. The defaults admit a thousand watchers from one address, each on a connection of its own. */
export const LIMIT_SETTINGS = {
  "limits.connections": setting(kinds.integer(10, 1_000_000), {
    default: 10_000,
    doc: "Connections to one listener at the same time. Once all are taken, a new one takes the place of the oldest on which nobody has signed in.",
  }),
  "limits.connections_per_address": setting(kinds.integer(1, 1_000_000), {
    default: 2_000,
    doc: "Of those, connections from one address; more are refused. An IPv6 network of 64 bits counts as one address.",
  }),
  "limits.headers_timeout": setting(kinds.duration("100ms", "10m"), {
    default: "10s",
    doc: "How long a connection may take for its TLS handshake, for the beginning of HTTP/2, and for the headers of a request, also where they come byte by byte; then it is closed.",
  }),
  "limits.idle_session": setting(kinds.duration("1s", "7d"), {
    default: "15m",
    doc: "How long an HTTP/2 connection may be without a call; then it is ended in order, and clients open another when they need one. Connections of HTTP/1.1 are kept for 75s.",
  }),
  "limits.requests_per_caller": setting(kinds.integer(1, 1_000_000), {
    default: 1_000,
    doc: "Requests a second of one caller, by name, over all connections to this replica; five seconds' worth may come at once. More are answered with RESOURCE_EXHAUSTED or 429, and `retry-after`.",
  }),
  "limits.requests_per_address": setting(kinds.integer(1, 1_000_000), {
    default: 200,
    doc: "The same for requests of one address for which nobody has signed in: boots, reports, probes over gRPC, and failed sign-ins. Files are not counted.",
  }),
  "limits.calls_per_caller": setting(kinds.integer(1, 1_000_000), {
    default: 100,
    doc: "Calls of one caller at the same time, to this replica; streams are counted by themselves. More are answered with RESOURCE_EXHAUSTED or 429, and `retry-after`.",
  }),
  "limits.streams_per_caller": setting(kinds.integer(1, 1_000_000), {
    default: 2_000,
    doc: "Streams (watches and logs) of one caller at the same time, to this replica.",
  }),
  "limits.streams_per_address": setting(kinds.integer(1, 1_000_000), {
    default: 100,
    doc: "Streams of one address at the same time for which nobody has signed in: watches of the health service, and reflection.",
  }),
  "limits.unread_bytes": setting(kinds.integer(1_048_576, 2 ** 40), {
    default: 268_435_456,
    doc: "What may wait in memory for callers who do not read their answers, of all of them together. Above it the largest answers are broken off.",
  }),
  "limits.failed_sign_ins": setting(kinds.integer(1, 1_000_000), {
    default: 30,
    doc: "Failed sign-ins a minute from one address; under one name from there, half of them. Above it bearers are not tried, unless they were good before; they are answered with RESOURCE_EXHAUSTED or 429, and `retry-after`. The same bearer again counts once.",
  }),
  "limits.exempt_networks": setting(kinds.networks(), {
    default: ["127.0.0.0/8", "::1"],
    doc: "Networks whose addresses are not held to the limits of one address: this host, and where you list them those that probes come from. Limits of a caller hold for everybody who has signed in.",
  }),
  trusted_proxies: setting(kinds.networks(), {
    default: [],
    doc: "Addresses of load balancers and proxies in front of this server. What they say in `X-Forwarded-For` is believed, and a request counts as coming from there; the header of anybody else is ignored. Empty: none.",
  }),
} as const satisfies Readonly<Record<string, Setting<unknown>>>;
