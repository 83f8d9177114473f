import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { continueTrace, currentTraceparent, parseTraceparent, withSpan } from "./tracing.ts";

const PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

describe("traceparent", () => {
  test("is read as W3C says", () => {
    expect(parseTraceparent(PARENT)).toEqual({
      traceId: "0af7651916cd43dd8448eb211c80319c",
      spanId: "b7ad6b7169203331",
      traceFlags: 1,
      isRemote: true,
    });
    expect(parseTraceparent(PARENT.replace("00-", "01-").concat("-more"))).toBeDefined();
  });

  test.each([
    [undefined],
    [null],
    [""],
    ["nonsense"],
    [PARENT.toUpperCase()],
    [`${PARENT}-more`],
    [PARENT.replace("00-", "ff-")],
    [PARENT.replace("0af7651916cd43dd8448eb211c80319c", "0".repeat(32))],
    [PARENT.replace("b7ad6b7169203331", "0".repeat(16))],
  ])("%j is none", (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

describe("without an SDK", () => {
  test("work in a span runs all the same, and its failure comes through", async () => {
    expect(await withSpan("a", { kind: "power_shelf" }, async () => 7)).toBe(7);
    await expect(withSpan("a", {}, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  });

  test("the caller's trace is still passed on to stored requests", () => {
    expect(currentTraceparent(PARENT)).toBe(PARENT);
    expect(currentTraceparent("nonsense")).toBeUndefined();
    expect(currentTraceparent()).toBeUndefined();
  });
});

/** What an SDK registers, as small as it can be. */
function registerRecorder() {
  const storage = new AsyncLocalStorage<Context>();
  const ended: { name: string; parent: string | undefined; status?: unknown }[] = [];
  let count = 0;
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, work, self, ...args) => storage.run(active, () => work.apply(self as never, args)),
    bind: (_active, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  const startSpan = (name: string, parentContext: Context): Span => {
    const parent = trace.getSpanContext(parentContext);
    count += 1;
    const own: SpanContext = {
      traceId: parent?.traceId ?? "1".repeat(32),
      spanId: String(count).padStart(16, "0"),
      traceFlags: 1,
    };
    const record: (typeof ended)[number] = { name, parent: parent?.spanId };
    return {
      ...trace.wrapSpanContext(own),
      spanContext: () => own,
      setStatus(status: unknown) {
        record.status = status;
        return this;
      },
      end: () => void ended.push(record),
    } as unknown as Span;
  };
  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startSpan: (name: string) => startSpan(name, context.active()),
      startActiveSpan: ((name: string, _options: unknown, work: (span: Span) => unknown) => {
        const span = startSpan(name, context.active());
        return context.with(trace.setSpan(context.active(), span), () => work(span));
      }) as never,
    }),
  });
  return ended;
}

describe("with an SDK", () => {
  let ended: ReturnType<typeof registerRecorder>;
  beforeEach(() => {
    ended = registerRecorder();
  });
  afterEach(() => {
    trace.disable();
    context.disable();
  });

  test("spans nest below the caller's, over a stored request, down to the device call", async () => {
    let stored: string | undefined;
    await continueTrace(PARENT, () =>
      withSpan("request", {}, async () => {
        stored = currentTraceparent();
      }),
    );
    expect(stored).toBe("00-0af7651916cd43dd8448eb211c80319c-0000000000000001-01");
    await continueTrace(stored, () => withSpan("handler", {}, () => withSpan("device call", {}, async () => {})));
    expect(ended).toEqual([
      { name: "request", parent: "b7ad6b7169203331" },
      { name: "device call", parent: "0000000000000002" },
      { name: "handler", parent: "0000000000000001" },
    ]);
  });

  test("a failure ends the span and marks it, without the secret in its message", async () => {
    const failing = withSpan("device call", {}, () => Promise.reject(new Error("https://root:hunter2@bmc failed")));
    await expect(failing).rejects.toThrow("failed");
    expect(ended).toEqual([
      {
        name: "device call",
        parent: undefined,
        status: { code: SpanStatusCode.ERROR, message: "https://root:[hidden]@bmc failed" },
      },
    ]);
  });
});
