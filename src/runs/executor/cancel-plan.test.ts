import { describe, expect, test } from "vitest";
import { retryable } from "../../../test/support/failures.ts";
import { Bench, failedBench, nextAttempt } from "../../../test/support/runs/executor-bench.ts";
import { AppError } from "../../kernel/errors.ts";

describe("a cancel", () => {
  test("takes nothing back where nothing was begun", async () => {
    const bench = new Bench();
    bench.device.answers = ["in_progress"];
    await bench.pass();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled", facts: { residue: [] } });
    expect(bench.device.undone).toBe(0);
  });

  test("undoes what can be undone, and ends", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({
      event: "canceled",
      facts: { residue: [] },
      effects: [{ cause: "run_canceled" }, {}],
    });
    expect(bench.device.undone).toBe(1);
  });

  test("ends also when nothing can be undone, and lists what may be left", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    Object.assign(bench.device.step, { undo: () => Promise.reject(retryable("the BMC is dead")) });
    const outcome = await bench.pass();
    expect(outcome).toMatchObject({ event: "canceled" });
    expect(outcome.facts?.residue).toEqual([expect.stringContaining("the BMC is dead")]);
  });

  test("lists what a step has done for good although it was undone, and tells the machine", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    Object.assign(bench.device.step, { undoIsPartial: true, residue: () => "half of it is done" });
    const residue = ["first: half of it is done"];
    expect(await bench.pass()).toMatchObject({
      event: "canceled",
      facts: { residue },
      effects: [{ cause: "run_canceled", facts: { residue } }, {}],
    });
    expect(bench.device.undone).toBe(1);
    expect(bench.logged).toContain("stays behind: first: half of it is done\n");
  });

  test("is told to the machine by its cause, and not with an empty text in its place", async () => {
    const bench = new Bench();
    bench.cancelRequestedAt = bench.now;
    const [moved] = (await bench.pass()).effects ?? [];
    expect(moved).toMatchObject({ type: "move", cause: "run_canceled" });
    expect(moved).not.toHaveProperty("message");
  });

  test("does not give up on taking back when the database is away: the look after it does", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    const { undo } = bench.device.step;
    const away = new AppError("unavailable", "the database cannot be reached");
    Object.assign(bench.device.step, { undo: () => Promise.reject(away) });
    await expect(bench.pass()).rejects.toBe(away);
    Object.assign(bench.device.step, { undo });
    expect(await bench.pass()).toMatchObject({ event: "canceled", facts: { residue: [] } });
    expect(bench.device.undone).toBe(1);
  });

  test("that interrupts an action is no failed attempt, and undoes by what was noted before it", async () => {
    const bench = new Bench();
    await bench.announce();
    const before = bench.steps;
    Object.assign(bench.device.step, {
      act: async () => {
        bench.device.acts += 1;
        bench.stop.abort(new AppError("cancelled", "run run-1 is to be ended"));
        throw retryable("work on the BMC was stopped before it answered");
      },
    });
    await expect(bench.pass()).rejects.toThrow("was stopped");
    expect(bench.steps).toEqual(before);
    expect(bench.device.undone).toBe(0);
    bench.stop = new AbortController();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(bench.device).toMatchObject({ acts: 1, undone: 1 });
  });

  test("passes on what the attempt before it had left and it could not undo either", async () => {
    const bench = nextAttempt(await failedBench(), "restart_clean");
    Object.assign(bench.device.step, { undo: () => Promise.reject(retryable("the BMC is dead")) });
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({
      event: "canceled",
      facts: { residue: [expect.stringContaining("the BMC is dead")] },
    });
    expect(nextAttempt(bench, "resume").takeBackFirst).toEqual({ step: "first", evidence: { seen: 0 } });
  });
});
