import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { StepFailure } from "../../kernel/errors.ts";
import { DeviceFailure } from "../device-failure.ts";
import type { EventInbox } from "../events/event-inbox.ts";
import { need } from "../provider.ts";
import { aCall, aFencedCall, type PowerBench, type SetUpBench } from "./device-bench.ts";

export interface EventsBench extends PowerBench {
  /** Streams that the device serves now. */
  openStreams(): Promise<number>;
  /** Restarts the BMC, which cuts what is open. */
  restartBmc(): Promise<void>;
}

export type Heard = Record<"opened" | "alive" | "present" | "happened", number>;

/** Follows a device for the length of a test, and counts what is heard of it. */
export function listenTo(bench: Pick<PowerBench, "provider" | "target">, inbox?: EventInbox) {
  const heard: Heard = { opened: 0, alive: 0, present: 0, happened: 0 };
  const stop = new AbortController();
  const count = (what: keyof Heard) => () => {
    heard[what] += 1;
  };
  const listener = {
    opened: count("opened"),
    alive: count("alive"),
    present: count("present"),
    happened: count("happened"),
  };
  const { events } = need(bench.provider, ["events"]);
  const ended = events.follow(bench.target, listener, aCall({ signal: stop.signal }), inbox).then(
    () => "stopped" as const,
    (error: unknown) => error,
  );
  return { heard, ended, stop: () => stop.abort() };
}

export const soon = <T>(look: () => T | Promise<T>): Promise<T> => vi.waitFor(look, { timeout: 20_000, interval: 20 });

/** What every provider of events must do. */
export function describeDeviceEvents(name: string, setUp: SetUpBench<EventsBench>): void {
  describe(`events of ${name}`, () => {
    let bench: EventsBench;
    let listening: ReturnType<typeof listenTo>;
    beforeEach(async () => {
      bench = await setUp();
      listening = listenTo(bench);
      await soon(() => expect(listening.heard).toMatchObject({ opened: 1 }));
    });
    afterEach(() => listening.stop());

    test("are heard when somebody uses the switch at the rack, and not before", async () => {
      await soon(() => expect(listening.heard.alive).toBeGreaterThan(0));
      expect(listening.heard.happened).toBe(0);
      await bench.switchAtRack("off");
      await soon(() => expect(listening.heard.happened).toBeGreaterThan(0));
    });

    test("are followed until the signal ends it, and the device serves no stream any more", async () => {
      expect(await bench.openStreams()).toBe(1);
      listening.stop();
      expect(await listening.ended).toBe("stopped");
      await soon(async () => expect(await bench.openStreams()).toBe(0));
    });

    test("fail when the stream is cut", async () => {
      await bench.restartBmc();
      expect(await listening.ended).toBeInstanceOf(DeviceFailure);
      expect(await listening.ended).toMatchObject({ code: "unreachable" });
    });

    test("keep no other call waiting", async () => {
      const { power } = need(bench.provider, ["power"]);
      const reads = [1, 2, 3, 4].map(() => power.readPower(bench.target, aCall()));
      expect(await Promise.all(reads)).toEqual(["on", "on", "on", "on"]);
      expect(await bench.openStreams()).toBe(1);
    });

    test("are not asked for without a lease", async () => {
      const { events } = need(bench.provider, ["events"]);
      const nothing = { opened() {}, alive() {}, present() {}, happened() {} };
      await expect(events.follow(bench.target, nothing, aFencedCall())).rejects.toBeInstanceOf(StepFailure);
      expect(await bench.openStreams()).toBe(1);
    });
  });
}
