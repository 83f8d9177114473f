import {
  type Attributes,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { messageOf } from "../kernel/errors.ts";
import { withoutSecretText } from "./redaction.ts";

/**
 * Spans through the OpenTelemetry API alone. They cost next to nothing until an SDK is registered in the process, which the
 * operator does without touching Millwright:
 *
 *     NODE_OPTIONS="--import @opentelemetry/auto-instrumentations-node/register" OTEL_EXPORTER_OTLP_ENDPOINT=… bin/millwright serve
 */
const tracer = () => trace.getTracer("millwright");

/** Runs `work` in a span, the child of the one that is active; a failure is recorded on it and thrown on. */
export function withSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return tracer().startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: withoutSecretText(messageOf(error)) });
      throw error;
    } finally {
      span.end();
    }
  });
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** W3C trace context, version 00 or a later one that starts alike; nothing for anything malformed. */
export function parseTraceparent(traceparent: string | null | undefined): SpanContext | undefined {
  const match = TRACEPARENT.exec(traceparent?.trim() ?? "");
  const [, traceId, spanId, flags, more] = match ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (more !== undefined && match?.[0].startsWith("00")) return undefined;
  const parsed: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
  };
  return isSpanContextValid(parsed) ? parsed : undefined;
}

const format = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;

/**
 * What to store with a request, so that the work it causes, later and on any replica, joins its trace: the active span, or else
 * what the caller sent. Without an SDK the caller's trace is thus still passed on.
 */
export function currentTraceparent(received?: string | null): string | undefined {
  const active = trace.getActiveSpan()?.spanContext();
  if (active !== undefined && isSpanContextValid(active)) return format(active);
  const parsed = parseTraceparent(received);
  return parsed === undefined ? undefined : format(parsed);
}

/** Runs `work` so that its spans are children of the one that the traceparent names; a malformed or absent one starts a new trace. */
export function continueTrace<T>(traceparent: string | null | undefined, work: () => T): T {
  const parent = parseTraceparent(traceparent);
  return context.with(parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent), work);
}
