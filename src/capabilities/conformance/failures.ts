import { describe, expect, test } from "vitest";
import { StepFailure } from "../../kernel/errors.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import type { CallContext } from "../call.ts";
import { DeviceFailure } from "../device-failure.ts";
import { aCall, aFencedCall, type DeviceTrouble, type FaultyBench } from "./device-bench.ts";

export type Ask<B extends FaultyBench> = (bench: B, call: CallContext) => Promise<unknown>;

/** What a caller must be able to tell from each trouble, whichever capability and provider it meets it through. */
const EXPECTED: readonly (readonly [DeviceTrouble, Pick<DeviceFailure, "disposition" | "family">])[] = [
  ["cuts_connections", { disposition: "retry", family: "silent" }],
  ["hangs", { disposition: "retry", family: "silent" }],
  ["is_overloaded", { disposition: "retry", family: "busy" }],
  ["writes_garbage", { disposition: "retry", family: "odd" }],
  ["rejects_credentials", { disposition: "fail", family: "keeps_out" }],
];

/** A hanging device is waited for until the lease ends, so the lease is short. */
const shortIn = (trouble: DeviceTrouble) => (trouble === "hangs" ? { lease: milliseconds(200) } : {});

/**
 * Every capability fails alike: said in the same words, within its time, without touching what it may not touch. `troubles` are
 * those that the bench can cause.
 */
export function describeFailures<B extends FaultyBench>(
  bench: () => B,
  troubles: readonly DeviceTrouble[],
  asks: Readonly<Record<string, Ask<NoInfer<B>>>>,
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
      const { target } = bench();
      const wrong: B = { ...bench(), target: { ...target, password: "not-the-password" } };
      const failure: unknown = await ask(wrong, aCall()).catch((error: unknown) => error);
      expect(failure).toMatchObject({ disposition: "fail", code: "credentials_rejected" });
      expect((failure as Error).message).toContain("wrong credentials");
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

    test.runIf(troubles.includes("hangs"))("ends when it is told to stop, though the device hangs", async () => {
      await bench().cause("hangs");
      const stop = new AbortController();
      const asked = ask(bench(), aCall({ signal: stop.signal }));
      stop.abort();
      const started = performance.now();
      await expect(asked).rejects.toBeInstanceOf(StepFailure);
      expect(performance.now() - started).toBeLessThan(8_000); // nobody gives up by himself before 10 s
    });
  });
}
