import { type Attributes, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { type DeviceCause, DeviceFailure } from "../../capabilities/device-failure.ts";
import {
  type SignInAttempt,
  type SignInLedger,
  type SignInRule,
  signInEndpoint,
} from "../../capabilities/sign-in-ledger.ts";
import { messageOf, StepFailure } from "../../kernel/errors.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, describeDuration, milliseconds, minutes, seconds } from "../../kernel/time/duration.ts";
import { bmcFailure } from "./bmc-failure.ts";
import { BmcLane, type LaneOptions, type Settlement, stopped } from "./bmc-lane.ts";
import { credentialDigest } from "./credential-digest.ts";
import { hideSecrets } from "./hide-secrets.ts";

/** `stopped`: cancelled, or no longer ours to make. The rest of the words are those of device failures. */
export type CallOutcome = "ok" | "stopped" | "error" | DeviceCause;

/** Told of every request that was asked for, also of those that never left. */
export interface GatewayObserver {
  onCall(call: { address: string; operation: string; outcome: CallOutcome; ms: number; left: boolean }): void;
}

export interface GatewayOptions extends Partial<LaneOptions> {
  readonly clock?: Clock;
  readonly observer?: GatewayObserver;
  /** Rejected credentials as all replicas know them. Without it, each process knows but its own. */
  readonly ledger?: SignInLedger;
  /** BMCs not used for this long are forgotten, with what was learnt of their failures. */
  readonly forgetAfter?: Duration;
  readonly rememberAtMost?: number;
}

export interface GatewayRequest {
  readonly target: BmcTarget;
  readonly call: CallContext;
  /** A word of a small set, for metrics. */
  readonly operation: string;
  /** What it is in words, for messages: "GET /redfish/v1/Chassis". */
  readonly what: string;
  /** How long one answer may take; less when the lease is shorter. */
  readonly wanted: Duration;
  /** Whether the request carries the password. Only such requests can lock the account, and only they are held back by the guard. */
  readonly signsIn: boolean;
  /** The session that it is sent with, so that it never shows. */
  readonly token?: string;
  readonly attributes?: Attributes;
}

export interface Attempt {
  /** Ends with the caller's signal or at the deadline; the request must end with it. */
  readonly signal: AbortSignal;
  readonly deadline: Duration;
  readonly span: Span;
}

export interface BmcEndpoint {
  readonly address: string;
  readonly port: number;
  readonly noun?: string | undefined;
}

/**
 * Every request to a BMC passes here, one at a time through its own lane; lanes share nothing.
 *
 * `send` makes exactly one request and throws a `DeviceFailure` that says what went wrong: the lane learns from its reason.
 */
export interface BmcGateway {
  run<T>(request: GatewayRequest, send: (attempt: Attempt) => Promise<T>): Promise<T>;
  /**
   * The same for one that lasts as long as its stream, such as an upload: it keeps a place in the lane, and `call` bounds each of its
   * chunks.
   */
  runStream<T>(
    request: Omit<GatewayRequest, "wanted">,
    send: (attempt: Omit<Attempt, "deadline">) => Promise<T>,
  ): Promise<T>;
  /**
   * The BMC is about to restart, or restarts. While it starts, a BMC may reject everybody: until then it is tried a few times more,
   * ever more rarely, whatever was counted. The count goes on, so that others stay off meanwhile.
   */
  expectRestart(bmc: BmcEndpoint, until: Date): void;
  status(bmc: BmcEndpoint): BmcLane["status"] | undefined;
  /** How many BMCs are remembered. */
  readonly size: number;
  /** Refuses what waits and all that comes. May be called again. */
  close(): void;
}

const DEFAULTS: LaneOptions & { readonly forgetAfter: Duration; readonly rememberAtMost: number } = {
  concurrency: 2,
  queueLimit: 32,
  backOff: milliseconds(200),
  longestPause: seconds(2),
  failuresToOpen: 5,
  openFor: seconds(5),
  openForMax: seconds(30),
  rejectionsToStop: 2,
  coolDown: minutes(15),
  forgetAfter: minutes(10),
  rememberAtMost: 20_000,
};

/** What a stream must have left of its lease when it begins; after that each chunk is checked. */
const STREAM_OPENS = seconds(10);

const tracer = trace.getTracer("millwright.bmc-gateway");

export const nameOf = ({ address, port, noun = "BMC" }: BmcEndpoint): string => `${noun} ${keyOf({ address, port })}`;
export const keyOf: (bmc: BmcEndpoint) => string = signInEndpoint;
/** One device where several stand behind an address. */
export const deviceKeyOf = (target: BmcEndpoint & { readonly path?: string }): string =>
  `${keyOf(target)}${target.path ?? ""}`;

export function createBmcGateway(options: GatewayOptions = {}): BmcGateway {
  const { clock = systemClock, observer, ledger, ...given } = options;
  const settings = { ...DEFAULTS, ...given };
  const lanes = new Map<string, BmcLane>();
  let closed = false;
  let sweptAt = clock.monotonic();

  /** Swept after use, not by a timer; the map is in order of last use, so that the sweep ends at the first lane still in use. */
  function forgetIdle(): void {
    const now = clock.monotonic();
    if (now - sweptAt < settings.forgetAfter / 10 && lanes.size <= settings.rememberAtMost) return;
    sweptAt = now;
    for (const [key, lane] of lanes) {
      if (now - lane.lastUsed < settings.forgetAfter && lanes.size <= settings.rememberAtMost) break;
      if (!lane.mustBeKept) lanes.delete(key);
    }
  }

  function laneOf(target: BmcEndpoint): BmcLane {
    const key = keyOf(target);
    const lane = lanes.get(key) ?? new BmcLane(nameOf(target), settings, clock);
    lanes.delete(key);
    lanes.set(key, lane);
    return lane;
  }

  async function pass<T>(request: Passing, send: (attempt: Attempt) => Promise<T>): Promise<T> {
    if (closed) throw new StepFailure("stopped", "the BMC gateway is closed: this process is stopping");
    const { target, operation } = request;
    const started = clock.monotonic();
    const progress = { left: false };
    let outcome: CallOutcome = "ok";
    const span = tracer.startSpan(`bmc ${operation}`, {
      kind: SpanKind.CLIENT,
      attributes: { "server.address": target.address, "server.port": target.port, ...request.attributes },
    });
    try {
      const signIns = { ledger, rule: settings };
      return await passLane(laneOf(target), request, signIns, ({ signal, deadline }) => {
        progress.left = true;
        return send({ signal, deadline, span });
      });
    } catch (error) {
      outcome = outcomeOf(error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: hideSecrets(messageOf(error), request) });
      throw error;
    } finally {
      forgetIdle();
      span.end();
      observer?.onCall({
        address: target.address,
        operation,
        outcome,
        ms: clock.monotonic() - started,
        left: progress.left,
      });
    }
  }

  return {
    run: pass,
    runStream: (request, send) => pass({ ...request, wanted: null }, send),
    expectRestart: (bmc, until) => laneOf(bmc).expectRestart(milliseconds(until.getTime() - clock.now().getTime())),
    status: (bmc) => lanes.get(keyOf(bmc))?.status,
    get size() {
      return lanes.size;
    },
    close() {
      closed = true;
      for (const lane of lanes.values()) {
        lane.close(new StepFailure("stopped", "the BMC gateway is closed: this process is stopping"));
      }
    },
  };
}

/** `wanted` is null for one that lasts as long as its stream. */
type Passing = Omit<GatewayRequest, "wanted"> & { readonly wanted: Duration | null };

interface SignIns {
  readonly ledger: SignInLedger | undefined;
  readonly rule: SignInRule;
}

async function passLane<T>(
  lane: BmcLane,
  request: Passing,
  signIns: SignIns,
  send: (attempt: Omit<Attempt, "span">) => Promise<T>,
): Promise<T> {
  const { target, call, signsIn, wanted } = request;
  const digest = signsIn ? credentialDigest(target) : undefined;
  const ticket = { signInDigest: digest, signal: call.signal };
  if (digest !== undefined) await noticeLiftedStop(lane, digest, target, signIns);
  await lane.enter(ticket);
  try {
    if (digest !== undefined) await askOthers(lane, digest, target, signIns);
    // Asked as late as we can: waiting in the lane may have outlived the lease.
    const deadline = call.mayTouchDevice(wanted ?? STREAM_OPENS);
    if (deadline <= 0) throw new StepFailure("stopped", `no time is left to ask ${nameOf(target)}`);
    const result =
      wanted === null
        ? await send({ signal: call.signal, deadline })
        : await withinDeadline({ ...request, wanted }, deadline, (signal) => send({ signal, deadline }));
    if (digest !== undefined && lane.mustTellOthers(digest)) await tellAccepted(signIns, target);
    lane.settle(ticket, { kind: "answered", signedIn: true });
    return result;
  } catch (error) {
    const end = settlementOf(error);
    const rejected = digest !== undefined && end.kind === "answered" && end.signedIn === false;
    if (rejected && error instanceof DeviceFailure) lane.noteRejected(digest, error);
    lane.settle(ticket, rejected ? { ...end, shared: await tellRejected(signIns, target) } : end);
    // The try that leads to the stop, and each one after a cool-down, fails in the same words as those held back between them.
    throw (rejected && lane.stopFor(digest)) || (error instanceof Inconclusive ? error.failure : error);
  }
}

const attemptAt = (target: BmcTarget): SignInAttempt => ({
  endpoint: keyOf(target),
  username: target.username,
  password: target.password,
});

/** A BMC counts the attempts of all replicas: credentials that others saw rejected are not tried here either. */
async function askOthers(lane: BmcLane, digest: string, target: BmcTarget, { ledger }: SignIns): Promise<void> {
  if (ledger === undefined || !lane.mustAskOthers(digest)) return;
  try {
    lane.learn(digest, await ledger.rejections(attemptAt(target)));
  } catch (error) {
    const message = `it cannot be found out whether ${nameOf(target)} has rejected these credentials before, so they are not tried`;
    throw new StepFailure("server_trouble", `${message}: ${messageOf(error)}`, { cause: error });
  }
  const stop = lane.stopFor(digest);
  if (stop !== undefined) throw new Inconclusive(stop);
}

/**
 * The lane refuses what it has stopped without asking anybody; but somebody may have given the credentials another try since, or have
 * been let in.
 */
async function noticeLiftedStop(lane: BmcLane, digest: string, target: BmcTarget, { ledger }: SignIns): Promise<void> {
  if (ledger === undefined || lane.stopFor(digest) === undefined) return;
  const shared = await ledger.rejections(attemptAt(target)).catch(() => "not told" as const);
  if (shared === "not told") return;
  if (shared === undefined ? lane.isStoppedByAll(digest) : shared.rest === 0) lane.learn(digest, shared);
}

/** Should the ledger not take it, this process still knows. */
const tellRejected = ({ ledger, rule }: SignIns, target: BmcTarget) =>
  ledger?.noteRejected(attemptAt(target), rule).catch(() => undefined);
const tellAccepted = ({ ledger }: SignIns, target: BmcTarget) =>
  ledger?.noteAccepted(attemptAt(target)).catch(() => undefined);

/** A failure from which the lane learns nothing: not sent at all, or not answered in the little time that the lease had left. */
class Inconclusive extends Error {
  readonly failure: DeviceFailure;
  constructor(failure: DeviceFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

async function withinDeadline<T>(
  { target, call, what, wanted }: GatewayRequest,
  deadline: Duration,
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  // Between leaving the lane and here it may have been stopped; a signal that has fired does not fire again.
  if (call.signal.aborted) throw stopped(nameOf(target), call.signal);
  const ending = new AbortController();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    ending.abort();
  }, deadline);
  const onStop = () => ending.abort();
  call.signal.addEventListener("abort", onStop, { once: true });
  try {
    return await send(ending.signal);
  } catch (error) {
    if (call.signal.aborted) throw stopped(nameOf(target), call.signal);
    if (!late) throw error;
    // What the lease had left differs from look to look, so it is not said.
    const within = deadline < wanted ? "in the time that was left" : `within ${describeDuration(deadline)}`;
    const message = `${nameOf(target)} did not answer ${what} ${within}`;
    const failure = bmcFailure("timed_out", target, message, { cause: error });
    throw deadline < wanted ? new Inconclusive(failure) : failure;
  } finally {
    clearTimeout(timer);
    call.signal.removeEventListener("abort", onStop);
  }
}

function settlementOf(error: unknown): Settlement {
  if (!(error instanceof DeviceFailure)) return { kind: "inconclusive" };
  switch (error.family) {
    case "silent":
      return { kind: "unreachable", why: error };
    // The certificate is judged before the password leaves.
    case "unproven":
      return { kind: "answered" };
    case "keeps_out":
      return { kind: "answered", signedIn: false };
    // The account was let in, and lacks a right: however often that is asked for, nobody locks it.
    case "forbids":
      return { kind: "answered" };
    case "busy":
      return error.retryAfterMs === undefined
        ? { kind: "answered" }
        : { kind: "answered", pause: { ms: error.retryAfterMs, why: error } };
    case "odd":
    case "declines":
      return { kind: "answered" };
  }
}

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof DeviceFailure) return error.code;
  return error instanceof StepFailure ? "stopped" : "error";
}
