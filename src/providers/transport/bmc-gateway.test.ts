import { ProxyTracer, type Span, type SpanStatus, SpanStatusCode } from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { retryable } from "../../../test/support/failures.ts";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { aTarget } from "../../capabilities/conformance/device-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { SignInAttempt, SignInLedger } from "../../capabilities/sign-in-ledger.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type Duration, milliseconds, minutes, seconds } from "../../kernel/time/duration.ts";
import { type Attempt, createBmcGateway, type GatewayOptions, type GatewayRequest } from "./bmc-gateway.ts";

const target = aTarget({ password: "first" });
const other: BmcTarget = { ...target, address: "192.0.2.2" };

const aCall = (overrides: Partial<CallContext> = {}): CallContext => ({
  signal: new AbortController().signal,
  subject: "test",
  mayTouchDevice: (wanted: Duration) => wanted,
  ...overrides,
});

const aRequest = (overrides: Partial<GatewayRequest> = {}): GatewayRequest => ({
  target,
  call: aCall(),
  operation: "read",
  what: "GET /thing",
  wanted: seconds(10),
  signsIn: false,
  ...overrides,
});

/** Sends that are answered by the test, in the order in which they left. */
function aDevice() {
  const left: { attempt: Attempt; answer: (value: string) => void; fail: (error: Error) => void }[] = [];
  const send = (attempt: Attempt) =>
    new Promise<string>((answer, fail) => {
      left.push({ attempt, answer, fail });
      attempt.signal.addEventListener("abort", () => fail(new Error("aborted")));
    });
  return { left, send };
}

const unreachable = () => Promise.reject(new DeviceFailure("unreachable", "bmc", "connection refused"));
const rejected = () =>
  Promise.reject(new DeviceFailure("credentials_rejected", "bmc", "wrong credentials", { status: 401 }));
const settled = (promise: Promise<unknown>) => promise.catch((error: unknown) => error);
const turn = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2030-01-01T00:00:00Z") });
});
afterEach(() => {
  vi.useRealTimers();
});

async function failTimes(gateway: ReturnType<typeof createBmcGateway>, times: number): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    const asked = settled(gateway.run(aRequest(), unreachable));
    await vi.advanceTimersByTimeAsync(2_000);
    await asked;
  }
}

describe("requests to one BMC", () => {
  test("are two at a time; the next leaves when one has ended", async () => {
    const gateway = createBmcGateway();
    const { left, send } = aDevice();
    const asked = [1, 2, 3].map(() => gateway.run(aRequest(), send));
    await turn();
    expect(left).toHaveLength(2);
    left[1]?.answer("b");
    await expect(asked[1]).resolves.toBe("b");
    await turn();
    expect(left).toHaveLength(3);
  });

  test("wait in a queue of bounded length; one more is told so at once", async () => {
    const gateway = createBmcGateway({ concurrency: 1, queueLimit: 2 });
    const { send } = aDevice();
    for (let count = 0; count < 3; count += 1) void settled(gateway.run(aRequest(), send));
    await turn();
    await expect(gateway.run(aRequest(), send)).rejects.toMatchObject({
      disposition: "retry",
      family: "busy",
      message: expect.stringContaining("2 requests to BMC 192.0.2.1:443 are already waiting"),
    });
  });

  test("leave the queue when they are told to stop, and never reach the device", async () => {
    const gateway = createBmcGateway({ concurrency: 1 });
    const { left, send } = aDevice();
    const first = gateway.run(aRequest(), send);
    const stop = new AbortController();
    const second = settled(gateway.run(aRequest({ call: aCall({ signal: stop.signal }) }), send));
    stop.abort();
    expect(await second).toBeInstanceOf(StepFailure);
    left[0]?.answer("done");
    await first;
    await turn();
    expect(left).toHaveLength(1);
    expect(gateway.status(target)).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  test("do not leave when they were told to stop just after they were let in", async () => {
    const gateway = createBmcGateway();
    const { left, send } = aDevice();
    const stop = new AbortController();
    const asked = settled(gateway.run(aRequest({ call: aCall({ signal: stop.signal }) }), send));
    stop.abort();
    expect(await asked).toBeInstanceOf(StepFailure);
    expect(left).toHaveLength(0);
  });

  test("do not wait for requests to another BMC, however bad it is", async () => {
    const gateway = createBmcGateway({ concurrency: 1, queueLimit: 1 });
    const { send } = aDevice();
    for (let count = 0; count < 5; count += 1) void settled(gateway.run(aRequest(), send));
    await expect(gateway.run(aRequest({ target: other }), async () => "at once")).resolves.toBe("at once");
  });

  test("end at their deadline and count as a failure of the BMC", async () => {
    const gateway = createBmcGateway({ failuresToOpen: 1 });
    const { left, send } = aDevice();
    const asked = settled(gateway.run(aRequest({ wanted: seconds(3) }), send));
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await asked).toMatchObject({
      disposition: "retry",
      family: "silent",
      message: "BMC 192.0.2.1:443 did not answer GET /thing within 3s",
    });
    expect(left[0]?.attempt.signal.aborted).toBe(true);
    expect(gateway.status(target)?.breaker).toBe("open");
  });

  test("free their place when the sender throws something unforeseen", async () => {
    const gateway = createBmcGateway({ concurrency: 1 });
    await expect(gateway.run(aRequest(), () => Promise.reject(new TypeError("a bug")))).rejects.toThrow(TypeError);
    await expect(gateway.run(aRequest(), async () => "next")).resolves.toBe("next");
  });
});

describe("fencing", () => {
  test("nothing leaves once the lease is gone, also what has been waiting since before", async () => {
    const gateway = createBmcGateway({ concurrency: 1 });
    const { left, send } = aDevice();
    let lost = false;
    const call = aCall({
      mayTouchDevice(wanted) {
        if (lost) throw retryable("the lease is gone");
        return wanted;
      },
    });
    const first = gateway.run(aRequest({ call }), send);
    const second = settled(gateway.run(aRequest({ call }), send));
    await turn();
    lost = true;
    left[0]?.answer("done");
    await first;
    expect(await second).toMatchObject({ message: "the lease is gone" });
    expect(left).toHaveLength(1);
    expect(gateway.status(target)).toMatchObject({ breaker: "closed", inFlight: 0 });
  });

  test("a request gets no more time than the lease has, and running out of it is not held against the BMC", async () => {
    const gateway = createBmcGateway({ failuresToOpen: 1 });
    const { left, send } = aDevice();
    const call = aCall({ mayTouchDevice: () => milliseconds(250) });
    const asked = settled(gateway.run(aRequest({ call }), send));
    await turn();
    expect(left[0]?.attempt.deadline).toBe(250);
    await vi.advanceTimersByTimeAsync(250);
    expect(await asked).toMatchObject({ disposition: "retry", family: "silent" });
    expect(gateway.status(target)?.breaker).toBe("closed");
  });

  test("a lease with no time left sends nothing", async () => {
    const gateway = createBmcGateway();
    const { left, send } = aDevice();
    const call = aCall({ mayTouchDevice: () => milliseconds(0) });
    await expect(gateway.run(aRequest({ call }), send)).rejects.toMatchObject({ disposition: "retry" });
    expect(left).toHaveLength(0);
  });
});

describe("a BMC that cannot be reached", () => {
  test("is left alone a little longer after each failure", async () => {
    const gateway = createBmcGateway({ backOff: milliseconds(100), failuresToOpen: 9 });
    const { left, send } = aDevice();
    await settled(gateway.run(aRequest(), unreachable));
    const second = settled(gateway.run(aRequest(), send));
    await vi.advanceTimersByTimeAsync(99);
    expect(left).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(left).toHaveLength(1);
    left[0]?.fail(new DeviceFailure("unreachable", "bmc", "again"));
    await second;
    void settled(gateway.run(aRequest(), send));
    await vi.advanceTimersByTimeAsync(199);
    expect(left).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(left).toHaveLength(2);
  });

  test("is not asked any more after five failures in a row, and the answer says why and when to come back", async () => {
    const gateway = createBmcGateway();
    const { left, send } = aDevice();
    await failTimes(gateway, 5);
    const failure = await settled(gateway.run(aRequest(), send));
    expect(failure).toMatchObject({
      disposition: "retry",
      family: "silent",
      message: "connection refused",
      retryAfterMs: expect.any(Number),
    });
    expect(left).toHaveLength(0);
  });

  test("fails in the same words however often and whenever it is asked, lest each pass were news", async () => {
    const gateway = createBmcGateway();
    const messages = new Set<string>();
    let left = 0;
    for (let count = 0; count < 60; count += 1) {
      const asked = settled(
        gateway.run(aRequest(), () => {
          left += 1;
          return unreachable();
        }),
      );
      await vi.advanceTimersByTimeAsync(3_100);
      messages.add(((await asked) as Error).message);
    }
    expect(left).toBeGreaterThan(6); // some were sent and some were not
    expect(left).toBeLessThan(60);
    expect([...messages]).toEqual(["connection refused"]);
  });

  test("gets one probe when the time is up: success opens the way for all that wait", async () => {
    const gateway = createBmcGateway({ openFor: seconds(5) });
    const { left, send } = aDevice();
    await failTimes(gateway, 5);
    await vi.advanceTimersByTimeAsync(5_000);
    const asked = [1, 2, 3].map(() => gateway.run(aRequest(), send));
    await turn();
    expect(left).toHaveLength(1);
    left[0]?.answer("back");
    await asked[0];
    await turn();
    expect(left).toHaveLength(3);
    expect(gateway.status(target)?.breaker).toBe("closed");
  });

  test("is left alone for longer when the probe fails, and all that wait are told", async () => {
    const gateway = createBmcGateway({ openFor: seconds(5), openForMax: seconds(8) });
    const { left, send } = aDevice();
    await failTimes(gateway, 5);
    await vi.advanceTimersByTimeAsync(5_000);
    const asked = [1, 2].map(() => settled(gateway.run(aRequest(), send)));
    await turn();
    left[0]?.fail(new DeviceFailure("unreachable", "bmc", "still dead"));
    const failures = await Promise.all(asked);
    expect(failures[1]).toMatchObject({
      retryAfterMs: 8_000,
      message: "still dead",
    });
    expect(left).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(7_999);
    expect(gateway.status(target)?.breaker).toBe("open");
    await vi.advanceTimersByTimeAsync(1);
    expect(gateway.status(target)?.breaker).toBe("half_open");
  });

  test("stays with its probe when that was cancelled: the next request probes", async () => {
    const gateway = createBmcGateway({ openFor: seconds(5) });
    const { left, send } = aDevice();
    await failTimes(gateway, 5);
    await vi.advanceTimersByTimeAsync(5_000);
    const stop = new AbortController();
    const probe = settled(gateway.run(aRequest({ call: aCall({ signal: stop.signal }) }), send));
    await turn();
    stop.abort();
    await probe;
    const next = gateway.run(aRequest(), send);
    await turn();
    left[1]?.answer("back");
    await expect(next).resolves.toBe("back");
  });

  test("an answer of any kind ends the count", async () => {
    const gateway = createBmcGateway();
    const refuse = () => Promise.reject(new DeviceFailure("refused_by_device", "bmc", "no"));
    for (let round = 0; round < 3; round += 1) {
      await failTimes(gateway, 4);
      await settled(gateway.run(aRequest(), refuse));
    }
    expect(gateway.status(target)?.breaker).toBe("closed");
  });
});

describe("a BMC that asks to be left alone", () => {
  const busy = (retryAfterMs: number) => () =>
    Promise.reject(new DeviceFailure("busy", "bmc", "503", { retryAfterMs, status: 503 }));

  test("is waited for when the time is short", async () => {
    const gateway = createBmcGateway();
    await settled(gateway.run(aRequest(), busy(1_000)));
    const asked = gateway.run(aRequest(), async () => "now");
    await vi.advanceTimersByTimeAsync(1_000);
    await expect(asked).resolves.toBe("now");
  });

  test("is not waited for when the time is long; the caller is told when to come back", async () => {
    const gateway = createBmcGateway({ openForMax: seconds(30) });
    await settled(gateway.run(aRequest(), busy(3_600_000)));
    await expect(gateway.run(aRequest(), async () => "now")).rejects.toMatchObject({
      family: "busy",
      retryAfterMs: 30_000,
      message: "503",
    });
    await vi.advanceTimersByTimeAsync(7_000);
    await expect(gateway.run(aRequest(), async () => "now")).rejects.toMatchObject({
      retryAfterMs: 23_000,
      message: "503",
    });
    await vi.advanceTimersByTimeAsync(23_000);
    await expect(gateway.run(aRequest(), async () => "now")).resolves.toBe("now");
  });
});

describe("the guard against locking the account", () => {
  const signIn = (overrides: Partial<GatewayRequest> = {}) => aRequest({ signsIn: true, ...overrides });

  test("tries rejected credentials twice and then no more, and says so", async () => {
    const gateway = createBmcGateway();
    const send = vi.fn(rejected);
    for (let count = 0; count < 10; count += 1) await settled(gateway.run(signIn(), send));
    expect(send).toHaveBeenCalledTimes(2);
    const failure = await settled(gateway.run(signIn(), send));
    expect(failure).toMatchObject({ disposition: "fail", family: "keeps_out", retryAfterMs: 900_000 });
    expect((failure as Error).message).toMatch(
      /^wrong credentials: BMC 192\.0\.2\.1:443 has rejected them since 2030-01-01T00:00:00\.000Z; .*so that the account is not locked\. Correct the BMC credentials/,
    );
    expect((failure as Error).message).not.toContain("first");
  });

  test.each([
    ["Redfish's 403", 403],
    ["IPMI's d4", 0xd4],
  ])("does not take %s for a rejected sign-in: the account was let in, and lacks a right", async (_, status) => {
    const gateway = createBmcGateway();
    const send = vi.fn(() => Promise.reject(new DeviceFailure("forbidden", "bmc", "not for you", { status })));
    for (let count = 0; count < 10; count += 1) {
      expect(await settled(gateway.run(signIn(), send))).toMatchObject({ code: "forbidden", status });
    }
    expect(send).toHaveBeenCalledTimes(10);
    await expect(gateway.run(signIn(), async () => "in")).resolves.toBe("in");
  });

  test("does not let requests side by side exceed that", async () => {
    const gateway = createBmcGateway({ concurrency: 4 });
    const send = vi.fn(rejected);
    await Promise.all(Array.from({ length: 10 }, () => settled(gateway.run(signIn(), send))));
    expect(send).toHaveBeenCalledTimes(2);
  });

  test("fails in the same words from the stop on, also when it tries again after the cool-down", async () => {
    const gateway = createBmcGateway({ coolDown: minutes(5) });
    const send = vi.fn(rejected);
    const messages: string[] = [];
    for (let count = 0; count < 30; count += 1) {
      messages.push(((await settled(gateway.run(signIn(), send))) as Error).message);
      await vi.advanceTimersByTimeAsync(61_000);
    }
    expect(send.mock.calls.length).toBeGreaterThan(3);
    expect(messages[0]).toBe("wrong credentials");
    expect(new Set(messages.slice(1)).size).toBe(1);
  });

  test("lets credentials that are known to be right go side by side", async () => {
    const gateway = createBmcGateway({ concurrency: 2 });
    const { left, send } = aDevice();
    await gateway.run(signIn(), async () => "right");
    for (let count = 0; count < 2; count += 1) void settled(gateway.run(signIn(), send));
    await turn();
    expect(left).toHaveLength(2);
  });

  test("tries changed credentials at once, and still remembers the old ones", async () => {
    const gateway = createBmcGateway();
    for (let count = 0; count < 3; count += 1) await settled(gateway.run(signIn(), rejected));
    await expect(gateway.run(signIn({ target: { ...target, password: "second" } }), async () => "in")).resolves.toBe(
      "in",
    );
    await expect(gateway.run(signIn(), async () => "in")).rejects.toMatchObject({ family: "keeps_out" });
  });

  test("tries once more after the cool-down", async () => {
    const gateway = createBmcGateway({ coolDown: minutes(5) });
    const send = vi.fn(rejected);
    for (let count = 0; count < 4; count += 1) await settled(gateway.run(signIn(), send));
    await vi.advanceTimersByTimeAsync(300_000);
    for (let count = 0; count < 4; count += 1) await settled(gateway.run(signIn(), send));
    expect(send).toHaveBeenCalledTimes(3);
  });

  test("does not hold back requests with a session", async () => {
    const gateway = createBmcGateway();
    for (let count = 0; count < 3; count += 1) await settled(gateway.run(signIn(), rejected));
    await expect(gateway.run(aRequest(), async () => "in")).resolves.toBe("in");
  });

  test("counts only rejections in a row", async () => {
    const gateway = createBmcGateway();
    const send = vi.fn(rejected);
    for (let round = 0; round < 3; round += 1) {
      await settled(gateway.run(signIn(), send));
      await gateway.run(signIn(), async () => "in");
    }
    expect(send).toHaveBeenCalledTimes(3);
  });

  describe("with a ledger that all replicas share", () => {
    test("lets all of them together try twice, and all fail in the same words", async () => {
      const ledger = aLedger();
      const send = vi.fn(rejected);
      const failures: unknown[] = [];
      for (let replica = 0; replica < 4; replica += 1) {
        const gateway = createBmcGateway({ ledger });
        for (let count = 0; count < 3; count += 1) failures.push(await settled(gateway.run(signIn(), send)));
      }
      expect(send).toHaveBeenCalledTimes(2);
      expect(new Set(failures.slice(1).map((failure) => (failure as Error).message)).size).toBe(1);
      expect(failures.at(-1)).toMatchObject({ disposition: "fail", family: "keeps_out", retryAfterMs: 900_000 });
    });

    test("keeps the others off a BMC that rejects one of them after a restart, and lets all in once it is let in", async () => {
      const ledger = aLedger();
      const [one, other] = [createBmcGateway({ ledger }), createBmcGateway({ ledger })];
      one.expectRestart(target, new Date(Date.now() + minutes(75)));
      for (const pause of [seconds(15), minutes(2)]) {
        await expect(one.run(signIn(), rejected)).rejects.toMatchObject({ code: "credentials_rejected" });
        await vi.advanceTimersByTimeAsync(pause);
      }
      const send = vi.fn(async () => "in");
      await expect(other.run(signIn(), send)).rejects.toMatchObject({ code: "sign_in_stopped" });
      expect(send).not.toHaveBeenCalled();
      expect(await one.run(signIn(), send)).toBe("in");
      expect(await other.run(signIn(), send)).toBe("in");
    });

    test("holds nothing against a BMC whose credentials others saw rejected: requests with a session go on", async () => {
      const ledger = aLedger();
      await settled(createBmcGateway({ ledger, rejectionsToStop: 1 }).run(signIn(), rejected));
      const gateway = createBmcGateway({ ledger });
      await expect(gateway.run(signIn(), async () => "in")).rejects.toMatchObject({ family: "keeps_out" });
      await expect(gateway.run(aRequest(), async () => "in")).resolves.toBe("in");
      expect(gateway.status(target)).toMatchObject({ breaker: "closed", inFlight: 0 });
    });

    test("writes nothing while all is well, and reads nothing right after credentials were accepted", async () => {
      const ledger = aLedger();
      const gateway = createBmcGateway({ ledger });
      for (let count = 0; count < 5; count += 1) await gateway.run(signIn(), async () => "in");
      await gateway.run(aRequest(), async () => "in");
      expect(ledger.rejections).toHaveBeenCalledTimes(1);
      expect(ledger.noteAccepted).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(10_000);
      await gateway.run(signIn(), async () => "in");
      expect(ledger.rejections).toHaveBeenCalledTimes(2);
    });

    test("forgets the rejections once another replica saw the credentials accepted", async () => {
      const ledger = aLedger();
      const [one, two] = [createBmcGateway({ ledger }), createBmcGateway({ ledger })];
      const send = vi.fn(rejected);
      for (let round = 0; round < 3; round += 1) {
        await settled(one.run(signIn(), send));
        await two.run(signIn(), async () => "in");
        await vi.advanceTimersByTimeAsync(10_000);
      }
      expect(send).toHaveBeenCalledTimes(3);
      expect(ledger.noteAccepted).toHaveBeenCalledTimes(3);
    });

    test("does not try credentials of which it cannot be found out whether they were rejected", async () => {
      const ledger = aLedger();
      ledger.rejections.mockRejectedValue(new Error("the database is away"));
      const gateway = createBmcGateway({ ledger });
      const send = vi.fn(async () => "in");
      await expect(gateway.run(signIn(), send)).rejects.toMatchObject({
        disposition: "retry",
        message: expect.stringContaining("the database is away"),
      });
      expect(send).not.toHaveBeenCalled();
      expect(gateway.status(target)).toMatchObject({ inFlight: 0, breaker: "closed" });
    });

    test("still stops by what this process has seen, should the ledger not take notes", async () => {
      const ledger = aLedger();
      ledger.noteRejected.mockRejectedValue(new Error("the database is away"));
      ledger.rejections.mockImplementationOnce(async () => undefined).mockRejectedValue(new Error("away"));
      const gateway = createBmcGateway({ ledger, rejectionsToStop: 1 });
      await settled(gateway.run(signIn(), rejected));
      await expect(gateway.run(signIn(), async () => "in")).rejects.toMatchObject({ family: "keeps_out" });
    });
  });
});

/** As the one in the database, in memory. */
function aLedger() {
  const kept = new Map<string, { count: number; since: Date; until: number }>();
  const keyOf = (attempt: SignInAttempt) => JSON.stringify(attempt);
  const shown = (key: string) => {
    const row = kept.get(key);
    return row && { count: row.count, since: row.since, rest: milliseconds(Math.max(0, row.until - Date.now())) };
  };
  return {
    rejections: vi.fn<SignInLedger["rejections"]>(async (attempt) => shown(keyOf(attempt))),
    noteRejected: vi.fn<SignInLedger["noteRejected"]>(async (attempt, { rejectionsToStop, coolDown }) => {
      const key = keyOf(attempt);
      const { count, since } = kept.get(key) ?? { count: 0, since: new Date() };
      const until = Date.now() + (count + 1 >= rejectionsToStop ? coolDown : 0);
      kept.set(key, { count: count + 1, since, until });
      return { count: count + 1, since, rest: milliseconds(until - Date.now()) };
    }),
    noteAccepted: vi.fn<SignInLedger["noteAccepted"]>(async (attempt) => void kept.delete(keyOf(attempt))),
  };
}

describe("memory", () => {
  const touch = (gateway: ReturnType<typeof createBmcGateway>, count: number, options: Partial<GatewayRequest> = {}) =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        settled(
          gateway.run(
            aRequest({ ...options, target: { ...target, address: `198.51.100.${index}` } }),
            async () => "ok",
          ),
        ),
      ),
    );

  test("BMCs that are no longer asked are forgotten", async () => {
    const gateway = createBmcGateway({ forgetAfter: minutes(10) });
    await touch(gateway, 50);
    expect(gateway.size).toBe(50);
    await vi.advanceTimersByTimeAsync(600_000);
    await gateway.run(aRequest(), async () => "ok");
    expect(gateway.size).toBe(1);
  });

  test("there are never more than the limit, the longest unused going first", async () => {
    const gateway = createBmcGateway({ rememberAtMost: 10 });
    await touch(gateway, 50);
    expect(gateway.size).toBe(10);
    expect(gateway.status({ address: "198.51.100.49", port: 443 })).toBeDefined();
    expect(gateway.status({ address: "198.51.100.0", port: 443 })).toBeUndefined();
  });

  test("a BMC whose account must not be tried is not forgotten, lest it were tried again", async () => {
    const gateway = createBmcGateway({ forgetAfter: minutes(1), coolDown: minutes(60) });
    for (let count = 0; count < 3; count += 1) await settled(gateway.run(aRequest({ signsIn: true }), rejected));
    await vi.advanceTimersByTimeAsync(600_000);
    await gateway.run(aRequest({ target: other }), async () => "ok");
    await expect(gateway.run(aRequest({ signsIn: true }), async () => "in")).rejects.toMatchObject({
      family: "keeps_out",
    });
  });
});

describe("the observer", () => {
  test.each<[string, (gateway: ReturnType<typeof createBmcGateway>) => Promise<unknown>, object]>([
    ["an answer", (gateway) => gateway.run(aRequest(), async () => "ok"), { outcome: "ok", left: true }],
    ["a failure", (gateway) => gateway.run(aRequest(), unreachable), { outcome: "unreachable", left: true }],
    [
      "a request that was fenced off",
      (gateway) => {
        const mayTouchDevice = () => {
          throw retryable("gone");
        };
        return gateway.run(aRequest({ call: aCall({ mayTouchDevice }) }), async () => "ok");
      },
      { outcome: "stopped", left: false },
    ],
    [
      "a bug",
      (gateway) => gateway.run(aRequest(), () => Promise.reject(new TypeError())),
      { outcome: "error", left: true },
    ],
  ])("is told of %s", async (_what, run, expected) => {
    const onCall = vi.fn();
    const options: GatewayOptions = { observer: { onCall } };
    await settled(run(createBmcGateway(options)));
    expect(onCall).toHaveBeenCalledExactlyOnceWith({
      address: "192.0.2.1",
      operation: "read",
      ms: expect.any(Number),
      ...expected,
    });
  });
});

test("a span says why the request failed, and neither the password nor the token, however they are spelt", async () => {
  const statuses: SpanStatus[] = [];
  const span = { setStatus: (status: SpanStatus) => void statuses.push(status), end() {} } as unknown as Span;
  const startSpan = vi.spyOn(ProxyTracer.prototype, "startSpan").mockReturnValue(span);
  try {
    const secret = { ...target, password: 'se"cret' };
    const message = `no: se"cret se\\"cret se%22cret ${Buffer.from('root:se"cret').toString("base64")} my-token`;
    const send = () => Promise.reject(new DeviceFailure("refused_by_device", "bmc", message));
    await settled(createBmcGateway().run(aRequest({ target: secret, token: "my-token" }), send));
  } finally {
    startSpan.mockRestore();
  }
  expect(statuses).toEqual([{ code: SpanStatusCode.ERROR, message: "no: *** *** *** *** ***" }]);
});

test("closing refuses what waits and what comes", async () => {
  const gateway = createBmcGateway({ concurrency: 1 });
  const { left, send } = aDevice();
  const first = gateway.run(aRequest(), send);
  const second = settled(gateway.run(aRequest(), send));
  await turn();
  gateway.close();
  gateway.close();
  expect(await second).toMatchObject({ disposition: "retry" });
  await expect(gateway.run(aRequest(), send)).rejects.toMatchObject({ disposition: "retry" });
  left[0]?.answer("done");
  await expect(first).resolves.toBe("done");
});
