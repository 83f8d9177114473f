import { describe, expect, test } from "vitest";
import { Bench } from "../../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import { StepFailure } from "../../../kernel/errors.ts";
import type { Outcome } from "../../../kernel/outcome.ts";
import { milliseconds, minutes } from "../../../kernel/time/duration.ts";
import { defineStep, type ProbeAnswer } from "../../model/step.ts";

/** A device that writes firmware: nobody may let go of it in the middle. */
class FlashBench extends Bench {
  commands = 0;
  /** What the device tells; a failure is thrown. */
  tells: ProbeAnswer | Error = "in_progress";
  /** As one that lists no tasks: once something was announced, nothing can be told. */
  nobodyTells = false;

  constructor() {
    super();
    this.maxRetries = 0;
    const flash = (kind: string) =>
      defineStep({
        kind,
        needs: [],
        defaults: { timeout: milliseconds(60_000) },
        parse: (payload) => payload,
        finishesOnceBegun: true,
        staysUntilProven: true,
        before: async () => ({}),
        act: async () => {
          this.commands += 1;
        },
        residue: () => "it may be half written",
        probe: async ({ actingAt = null, hasNotBegun }) => {
          if (this.nobodyTells && actingAt !== null && hasNotBegun !== true) return "unknown";
          if (this.commands === 0) return "not_done";
          if (this.tells instanceof Error) throw this.tells;
          return this.tells;
        },
      });
    this.kinds = [flash("flash"), flash("activate")];
    this.planned = ["flash", "activate"];
  }

  async begin(): Promise<void> {
    await this.announce();
    await this.pass();
    expect(this.commands).toBe(1);
  }

  cancel(): void {
    this.cancelRequestedAt = this.now;
  }

  later(minutesLater: number): void {
    this.now = new Date(this.now.getTime() + minutes(minutesLater));
  }
}

const ended = (outcome: Outcome): string => (outcome.type === "happened" ? outcome.event : outcome.type);

describe("a cancel in the middle of an action that finishes once begun", () => {
  test("follows it to its end, and begins nothing more", async () => {
    const bench = new FlashBench();
    await bench.begin();
    bench.cancel();
    expect(ended(await bench.pass())).toBe("waiting");
    bench.tells = new DeviceFailure("unreachable", "bmc", "no answer");
    expect(ended(await bench.pass()), "a device that restarts is asked again").toBe("waiting");
    bench.tells = "done";
    expect(ended(await bench.pass())).toBe("waiting");
    expect(ended(await bench.pass())).toBe("canceled");
    expect(bench.steps.map(({ name, state }) => `${name} ${state}`)).toEqual(["flash SUCCEEDED"]);
    expect(bench.commands).toBe(1);
  });

  test("ends the run where nothing of it happened, once the device has had its time", async () => {
    const bench = new FlashBench();
    await bench.announce();
    bench.instance = "two";
    bench.cancel();
    expect(ended(await bench.pass())).toBe("waiting");
    bench.later(0.6);
    expect(ended(await bench.pass())).toBe("waiting");
    expect(ended(await bench.pass())).toBe("canceled");
    expect(bench.commands).toBe(0);
    expect(bench.residue).toEqual([]);
  });

  test("ends the run at once where this process announced it, and knows that it was not begun", async () => {
    const bench = new FlashBench();
    bench.nobodyTells = true;
    await bench.announce();
    bench.cancel();
    await bench.pass();
    expect(ended(await bench.pass())).toBe("canceled");
    expect(bench.commands).toBe(0);
    expect(bench.residue).toEqual([]);
  });

  test("ends the run at once where it has failed", async () => {
    const failed = new FlashBench();
    await failed.begin();
    failed.cancel();
    failed.tells = new StepFailure("firmware_task_failed", "wrong image", { facts: { at: "bmc" } });
    expect(ended(await failed.pass())).toBe("canceled");
  });
});

describe("an action whose end nobody can read in its time", () => {
  async function unproven(): Promise<FlashBench> {
    const bench = new FlashBench();
    await bench.begin();
    bench.tells = { state: "unknown", message: "the BMC does not answer" };
    bench.later(2);
    const outcome = await bench.pass();
    expect(outcome).toMatchObject({ type: "waiting", after: minutes(10) });
    expect(bench.unproven).toMatchObject({ step: "flash" });
    return bench;
  }

  test("keeps the run, and with it the claim, until the device tells; what comes after it is not done", async () => {
    const bench = await unproven();
    for (let look = 0; look < 3; look += 1) {
      bench.later(10);
      expect(ended(await bench.pass())).toBe("waiting");
    }
    bench.tells = "done";
    expect(ended(await bench.pass())).toBe("step_failed");
    expect(bench.steps.map(({ name, state }) => `${name} ${state}`)).toEqual(["flash SUCCEEDED"]);
    expect(bench.commands, "nothing was commanded again").toBe(1);
  });

  test("is proven late: a run that has nothing else to do succeeds", async () => {
    const bench = new FlashBench();
    bench.planned = ["flash"];
    await bench.begin();
    bench.tells = "unknown";
    bench.later(2);
    await bench.pass();
    bench.tells = "done";
    expect(ended(await bench.pass())).toBe("finished");
  });

  test("has failed once the device says so", async () => {
    const bench = await unproven();
    bench.tells = new StepFailure("firmware_task_failed", "wrong image", { facts: { at: "bmc" } });
    expect(ended(await bench.pass())).toBe("step_failed");
  });

  test("is released by a cancel that comes after that, and not by the one before", async () => {
    const canceledBefore = new FlashBench();
    await canceledBefore.begin();
    canceledBefore.cancel();
    canceledBefore.tells = "unknown";
    canceledBefore.later(2);
    expect(ended(await canceledBefore.pass())).toBe("waiting");
    expect(canceledBefore.unproven).not.toBeNull();
    canceledBefore.later(10);
    expect(ended(await canceledBefore.pass())).toBe("waiting");
    canceledBefore.cancel();
    expect(ended(await canceledBefore.pass())).toBe("canceled");
  });
});
