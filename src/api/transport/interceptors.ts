import { randomUUID } from "node:crypto";
import { Code, ConnectError, createContextKey, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import type { Log } from "../../kernel/log.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, minutes } from "../../kernel/time/duration.ts";
import type { Caller } from "../../services/call/caller.ts";
import { continueTrace, currentTraceparent, withSpan } from "../../telemetry/tracing.ts";
import type { Authenticate, SignedIn } from "../auth/authenticate.ts";
import { refusedCallerOf } from "../auth/refused-caller.ts";
import { type AccessLine, type AccessSink, writeAccess } from "./access/access-log.ts";
import { contractOf, toConnectError } from "./error-codes.ts";
import type { CallQuotas } from "./limits/call-quotas.ts";
import { signInCounted } from "./limits/counted-sign-in.ts";
import { peerKey } from "./peer.ts";
import { StreamGuard } from "./stream-guard.ts";
import { correctTransportError } from "./transport-errors.ts";
import { untilAborted } from "./until-aborted.ts";

/** Who calls. Set before any handler runs; the default allows nothing. */
export const callerKey = createContextKey<Caller>({ name: null, roles: [], address: null }, { description: "caller" });

/** Called as soon as a call is known to be one: from then on it writes its own line in the log. */
export const writesAccessKey = createContextKey<() => void>(() => undefined, { description: "writes its access line" });

/** Names the call in answers (`x-request-id`), logs and references of internal errors. */
export const requestIdKey = createContextKey<string>("", { description: "request id" });

/** What every call passes through: the gate before its body is read, the interceptors around its handler. */
export interface CallFrame {
  readonly requestGate: (context: HandlerContext) => Promise<void>;
  readonly interceptors: readonly Interceptor[];
  /** To be called when credentials were revoked: streams of their bearers end. */
  readonly recheckStreams: () => void;
}

interface CallFrameOptions {
  readonly log: Log;
  readonly authenticate: Authenticate;
  readonly clock?: Clock;
  /** Absent: callers may ask for as much as they like. */
  readonly quotas?: CallQuotas;
  /** Told of the end of every call. */
  readonly observe?: (call: { readonly method: string; readonly code: string; readonly ms: number }) => void;
  /** Told of the line that each call leaves in the log. */
  readonly onAccess?: AccessSink["onAccess"];
  /** Whether callers' W3C traceparent headers are continued. */
  readonly acceptTraceparent?: boolean;
  /** How often the callers of open streams are authenticated again. */
  readonly recheckStreamsEvery?: Duration;
}

interface OpenCall {
  readonly id: string;
  readonly method: string;
  /** How the handler ended; undefined while it has not. */
  outcome: Code | "ok" | undefined;
  /** Who called, where the call was refused. */
  refusedTo: string | null;
  /** How the caller signed in, and how to ask again. */
  credentials: { readonly first: SignedIn; readonly authenticate: () => Promise<SignedIn> } | undefined;
}

const openCallKey = createContextKey<OpenCall>(
  { id: "", method: "", outcome: undefined, refusedTo: null, credentials: undefined },
  { description: "open call" },
);

/**
 * Authentication, request log and error codes, the same for every method.
 *
 * Callers are authenticated in the gate, so that nobody unknown can make us read and parse a message.
 */
export function createCallFrame({
  log,
  authenticate,
  clock = systemClock,
  quotas,
  observe = () => {},
  onAccess,
  acceptTraceparent = true,
  recheckStreamsEvery = minutes(1),
}: CallFrameOptions): CallFrame {
  const guard = new StreamGuard({ every: recheckStreamsEvery, clock });
  const reportFor = (call: OpenCall) => (cause: unknown) => {
    log.error({ err: cause, method: call.method, requestId: call.id }, "request failed unexpectedly");
    return call.id;
  };

  return {
    async requestGate(context) {
      const call = openCall(context);
      const startedAt = clock.monotonic();
      onEnd(context.signal, (reason) => {
        correctTransportError(reason, context.method.input);
        const code = codeWord(call, reason);
        const ms = clock.monotonic() - startedAt;
        observe({ method: call.method, code, ms });
        writeAccess({ log, onAccess }, { method: call.method, code, ms, ...whoCalled(context), requestId: call.id });
      });
      context.values.get(writesAccessKey)();
      try {
        const recheck = () => authenticate(context.requestHeader, context.values.get(peerKey), call.method);
        const caller = await signInCounted(recheck, context.values.get(peerKey).address, quotas);
        context.values.set(callerKey, caller);
        const isUnary = context.method.methodKind === "unary";
        if (quotas) onEnd(context.signal, isUnary ? quotas.call(caller) : quotas.stream(caller));
        call.credentials = { first: caller, authenticate: recheck };
      } catch (error) {
        call.refusedTo = refusedCallerOf(error);
        throw toConnectError(error, contractOf(context.service.typeName), reportFor(call));
      }
    },
    interceptors: [createErrorMapping(reportFor, guard), createTracing(acceptTraceparent)],
    recheckStreams: () => guard.lookAgain(),
  };
}

const whoCalled = ({ values }: HandlerContext): Pick<AccessLine, "address" | "caller"> => ({
  address: values.get(peerKey).address,
  caller: values.get(callerKey).name ?? values.get(openCallKey).refusedTo,
});

/** One span a call, in the caller's trace where that is accepted; the caller carries it to what the call causes. */
function createTracing(acceptTraceparent: boolean): Interceptor {
  return (next) => (request) => {
    const received = acceptTraceparent ? request.header.get("traceparent") : null;
    const { method } = request.contextValues.get(openCallKey);
    return continueTrace(received, () =>
      withSpan(method, { "rpc.system": "grpc" }, () => {
        const traceparent = currentTraceparent(received);
        const caller = request.contextValues.get(callerKey);
        if (traceparent !== undefined) request.contextValues.set(callerKey, { ...caller, traceparent });
        return next(request);
      }),
    );
  };
}

function createErrorMapping(
  reportFor: (call: OpenCall) => (cause: unknown) => string,
  guard: StreamGuard,
): Interceptor {
  return (next) => async (request) => {
    const call = request.contextValues.get(openCallKey);
    const toAnswer = (error: unknown): ConnectError => {
      const answer =
        endedBySignal(error, request.signal) ??
        toConnectError(error, contractOf(request.service.typeName), reportFor(call));
      call.outcome = answer.code;
      return answer;
    };
    try {
      const response = await next(request);
      if (!response.stream) {
        call.outcome = "ok";
        return response;
      }
      const ended = guarded(guard, call, request.signal);
      return { ...response, message: mapStreamErrors(untilAborted(response.message, ended), call, toAnswer) };
    } catch (error) {
      throw toAnswer(error);
    }
  };
}

/** The call's own signal, aborted also when the guard finds that the caller may no longer have the stream. */
function guarded(guard: StreamGuard, { credentials }: OpenCall, signal: AbortSignal): AbortSignal {
  if (!credentials) return signal;
  const refused = new AbortController();
  const { first, authenticate } = credentials;
  onEnd(signal, guard.guard(first, { authenticate, refuse: (reason) => refused.abort(reason) }));
  return AbortSignal.any([signal, refused.signal]);
}

async function* mapStreamErrors<T>(
  source: AsyncIterable<T>,
  call: OpenCall,
  toAnswer: (error: unknown) => ConnectError,
): AsyncGenerator<T> {
  try {
    yield* source;
    call.outcome = "ok";
  } catch (error) {
    throw toAnswer(error);
  }
}

function openCall(context: HandlerContext): OpenCall {
  const call: OpenCall = {
    id: requestIdFrom(context.requestHeader.get("x-request-id")),
    method: `${context.service.typeName}/${context.method.name}`,
    outcome: undefined,
    refusedTo: null,
    credentials: undefined,
  };
  context.values.set(openCallKey, call).set(requestIdKey, call.id);
  context.responseHeader.set("x-request-id", call.id);
  return call;
}

/** A caller's own id is taken when it is harmless in logs and headers. */
export const requestIdFrom = (given: string | string[] | null | undefined): string =>
  typeof given === "string" && /^[\w.-]{1,64}$/.test(given) ? given : randomUUID();

/** Connect aborts the signal of a call at its end in any case, with the error as reason when there was one. */
function onEnd(signal: AbortSignal, ended: (reason: unknown) => void): void {
  if (signal.aborted) ended(signal.reason);
  else signal.addEventListener("abort", () => ended(signal.reason), { once: true });
}

/** When a handler stopped because the call was ended, the end is the answer: a deadline, a shutdown, or a caller who left. */
function endedBySignal(error: unknown, signal: AbortSignal): ConnectError | undefined {
  if (!signal.aborted) return undefined;
  const { reason } = signal;
  // Who hangs up in the middle of a request breaks our reading of it: the call is ended by that error, made one of Connect's own.
  const isHungUp = reason instanceof ConnectError && reason.cause === error;
  const stopped = error === reason || isHungUp || (error instanceof Error && error.name === "AbortError");
  if (!stopped) return undefined;
  return reason instanceof ConnectError ? reason : new ConnectError("the call was ended", Code.Canceled);
}

function codeWord(call: OpenCall, reason: unknown): string {
  if (call.outcome === "ok") return "ok";
  const code = reason instanceof ConnectError ? reason.code : (call.outcome ?? Code.Canceled);
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}
