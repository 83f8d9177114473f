import { describe, expect, test } from "vitest";
import { StepFailure } from "../../kernel/errors.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import type { CallContext } from "../call.ts";
import { DeviceFailure } from "../device-failure.ts";
import { aCall, aFencedCall, type DeviceTrouble, type FaultyBench } from "./device-bench.ts";

type Ask<B> = (bench: B, call: CallContext) => Promise<unknown>;
type Asks<B> = Readonly<Record<string, Ask<B>>>;

/** What a caller must be able to tell from each trouble, whichever capability and provider it meets it through. */
const EXPECTED: readonly (readonly [DeviceTrouble, Partial<Pick<DeviceFailure, "disposition" | "family">>])[] = [
  ["is_gone", { disposition: "retry", family: "silent" }],
  ["cuts_connections", { disposition: "retry", family: "silent" }],
  ["hangs", { disposition: "retry", family: "silent" }],
  ["drips", { disposition: "retry", family: "silent" }],
  ["is_overloaded", { disposition: "retry", family: "busy" }],
  ["writes_garbage", { disposition: "retry", family: "odd" }],
  // Whether it is worth another try depends on what was asked: it may be the wrong device, or one that is just starting.
  ["talks_nonsense", { family: "odd" }],
  ["floods", { disposition: "fail", family: "odd" }],
  ["rejects_credentials", { disposition: "fail", family: "keeps_out" }],
  ["forbids", { disposition: "fail", family: "forbids" }],
];

/** These end only with the lease, or when the caller is told to stop. */
const ENDLESS: readonly DeviceTrouble[] = ["hangs", "drips"];
const shortIn = (trouble: DeviceTrouble) => (ENDLESS.includes(trouble) ? { lease: milliseconds(200) } : {});

/** Somebody who may not come in. */
interface Stranger<B> {
  /** The same place, with another secret. */
  readonly withSecret: (bench: B, secret: string) => B;
  /** What the failure must tell people. */
  readonly isTold: string;
}

/** `describeTroubles` for what is asked of a BMC. */
export function describeFailures<B extends FaultyBench>(
  bench: () => B,
  troubles: readonly DeviceTrouble[],
  asks: Asks<NoInfer<B>>,
): void {
  const withSecret = (one: B, password: string): B => ({ ...one, target: { ...one.target, password } });
  describeTroubles(bench, troubles, asks, { withSecret, isTold: "wrong credentials" });
}

/**
 * Every capability fails alike: said in the same words, within its time, without touching what it may not touch. `troubles` are
 * those that the bench can cause.
 */
export function describeTroubles<B extends FaultyBench<unknown>>(
  bench: () => B,
  troubles: readonly DeviceTrouble[],
  asks: Asks<NoInfer<B>>,
  { withSecret, isTold }: Stranger<NoInfer<B>>,
): void {
  const expectations = EXPECTED.filter(([trouble]) => troubles.includes(trouble));
  describe.each(Object.entries(asks))("%s, in trouble", (_name, ask) => {
    test.each(expectations)("when the device %s, fails with %o", async (trouble, expected) => {
      await bench().cause(trouble);
      await expect(ask(bench(), aCall(shortIn(trouble)))).rejects.toMatchObject({ name: "DeviceFailure", ...expected });
    });

    test.each(expectations)("works again once the device no longer %s", async (trouble) => {
      await bench().cause(trouble);
      await expect(ask(bench(), aCall(shortIn(trouble)))).rejects.toBeInstanceOf(DeviceFailure);
      await bench().putRight();
      await expect(ask(bench(), aCall())).resolves.not.toThrow();
    });

    test("says that the credentials are wrong when the password is, and does not say the password", async () => {
      const stranger = withSecret(bench(), "not-the-password");
      const failure: unknown = await ask(stranger, aCall()).catch((error: unknown) => error);
      expect(failure).toMatchObject({ disposition: "fail", code: "credentials_rejected" });
      expect((failure as Error).message).toContain(isTold);
      expect((failure as Error).message).not.toContain("not-the-password");
    });

    test("sends nothing once the lease is gone", async () => {
      const before = await bench().requestsReceived();
      await expect(ask(bench(), aFencedCall())).rejects.toMatchObject({
        disposition: "retry",
        message: "the lease is gone",
      });
      expect(await bench().requestsReceived()).toBe(before);
    });

    test.each(troubles.filter((one) => one === "is_slow"))("waits for a device that %s", async (trouble) => {
      await bench().cause(trouble);
      await expect(ask(bench(), aCall())).resolves.not.toThrow();
    });

    test.each(ENDLESS.filter((one) => troubles.includes(one)))(
      "ends when told to stop, though the device %s",
      async (trouble) => {
        await bench().cause(trouble);
        const stop = new AbortController();
        const asked = ask(bench(), aCall({ signal: stop.signal }));
        stop.abort();
        const started = performance.now();
        await expect(asked).rejects.toBeInstanceOf(StepFailure);
        expect(performance.now() - started).toBeLessThan(8_000); // nobody gives up by himself before 10 s
      },
    );
  });
}
