import { describe, expect, test } from "vitest";
import { final, forPerson, retryable } from "../../../test/support/failures.ts";
import {
  Bench,
  failedBench,
  NOT_LET_IN,
  nextAttempt,
  unsettledBench,
} from "../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";

describe("a step that failed after it had begun", () => {
  test("is undone, for good and before another attempt alike", async () => {
    const bench = new Bench();
    bench.device.failActing = retryable("no answer");
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", facts: { residue: [] } });
    expect(bench.device.undone).toBe(2);
    expect(bench.steps).toMatchObject([{ state: "FAILED", toTakeBack: null }]);
  });

  test("lists what could not be undone, and keeps what is needed to try again", async () => {
    const bench = new Bench();
    bench.maxRetries = 0;
    bench.device.failActing = final("refused");
    Object.assign(bench.device.step, { undo: () => Promise.reject(retryable("the BMC is dead")) });
    await bench.untilEnd();
    expect(bench.residue).toEqual([expect.stringMatching(/^first: .*the BMC is dead/)]);
    expect(bench.steps).toMatchObject([{ toTakeBack: { seen: 0 } }]);
  });

  test.each([
    ["is tried again", retryable("exit code 3"), [{ state: "RUNNING", retryCount: 1, message: "exit code 3" }]],
    ["is over", final("exit code 3"), [{ state: "FAILED", retryCount: 1, message: "exit code 3" }]],
  ])(
    "says why before it is undone, so that who dies over the undo leaves the reason: it %s",
    async (_, error, steps) => {
      const bench = new Bench();
      await bench.announce();
      bench.device.failActing = error;
      await bench.pass();
      expect(bench.device.undone).toBe(0);
      const said = bench.logged.length;
      await bench.lookAndDie();
      // What the first undo has left no trace of must not be asked of the device: it would tell another reason.
      bench.device.answers = ["in_progress"];
      await bench.pass();
      expect(bench.device).toMatchObject({ acts: 0, undone: 2 });
      expect(bench.steps).toMatchObject([{ ...steps[0], toTakeBack: null, failing: null }]);
      expect(bench.logged.slice(said).join("")).not.toContain("failed:");
    },
  );

  test("is undone by a cancel that comes before its own undo", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = retryable("exit code 3");
    await bench.pass();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled", facts: { residue: [] } });
    expect(bench.device.undone).toBe(1);
    expect(bench.steps).toMatchObject([{ state: "FAILED", message: "canceled: exit code 3", failing: null }]);
  });

  test("is not undone under an attempt that goes by its evidence", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = new DeviceFailure("unreachable", "bmc", "the connection was closed");
    await bench.pass();
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.pass();
    expect(bench.device.undone).toBe(0);
    expect(bench.steps).toMatchObject([{ retryCount: 1, toTakeBack: { seen: 0 } }]);
  });

  test("lists what it has done for good although it was undone, unless the device said no", async () => {
    const residueOf = async (failing: (bench: Bench) => void) => {
      const bench = new Bench();
      bench.maxRetries = 0;
      Object.assign(bench.device.step, { undoIsPartial: true, residue: () => "half of it is done" });
      await bench.announce();
      failing(bench);
      await bench.untilEnd();
      expect(bench.device.undone).toBe(1);
      return bench.residue;
    };
    const halfDone = await residueOf((bench) => {
      Object.assign(bench.device.step, {
        probe: async () => {
          if (bench.device.acts > 0) throw final("ended with exit code 3");
          return "not_done";
        },
      });
    });
    expect(halfDone).toEqual(["first: half of it is done"]);
    const refused = await residueOf((bench) => {
      bench.device.failActing = final("refused");
    });
    expect(refused).toEqual([]);
  });

  describe("and could not be undone then", () => {
    const dead = () => Promise.reject(new DeviceFailure("unreachable", "bmc", "no route"));

    /** The first attempt has failed, and what it began goes on where nobody reaches it. */
    async function betweenAttempts(undo = dead): Promise<Bench> {
      const bench = new Bench();
      const step = bench.device.step;
      Object.assign(step, { undo, residue: () => "it may still run" });
      await bench.announce();
      bench.device.failActing = retryable("ended with exit code 3");
      await bench.failAttempt();
      bench.device.failActing = undefined;
      expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, toTakeBack: { seen: 0 } }]);
      bench.now = new Date(bench.now.getTime() + 2_000);
      return bench;
    }

    test("is undone before another attempt begins", async () => {
      const bench = await betweenAttempts();
      for (let looks = 0; looks < 3; looks += 1) {
        const outcome = await bench.pass();
        expect(outcome).toMatchObject({ type: "waiting", reason: expect.stringContaining("no route") });
        if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
      }
      expect(bench.steps).toMatchObject([{ evidence: null, toTakeBack: { seen: 0 } }]);
      const undone: unknown[] = [];
      Object.assign(bench.device.step, {
        undo: async ({ evidence }: { evidence: unknown }) => {
          expect(bench.device.acts).toBe(0);
          undone.push(evidence);
        },
      });
      expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
      expect(undone).toEqual([{ seen: 0 }]);
      expect(bench.device.acts).toBe(1);
    });

    test("fails the next attempt too when its time is over, is never begun beside it, and is listed", async () => {
      const bench = await betweenAttempts();
      expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
      expect(bench.device.acts).toBe(0);
      expect(bench.steps).toMatchObject([{ retryCount: 2, toTakeBack: { seen: 0 } }]);
      expect(bench.residue).toEqual(["first: it may still run (undoing it failed: no route)"]);
    });

    test.each(NOT_LET_IN)(
      "fails the run at once and stays to be taken back where %s: waiting would change nothing, and somebody may",
      async (_, error) => {
        const bench = await betweenAttempts(() => Promise.reject(error));
        const { now } = bench;
        expect(await bench.untilEnd()).toMatchObject({
          event: "step_failed",
          facts: { error: { retryable: true, message: expect.stringContaining(error.message) } },
        });
        expect([bench.now, bench.device.acts]).toEqual([now, 0]);
        expect(bench.steps).toMatchObject([{ toTakeBack: { seen: 0 } }]);
        expect(bench.residue).toEqual([`first: it may still run (undoing it failed: ${error.message})`]);
      },
    );

    test("is listed and left where the device refuses, since waiting would change nothing", async () => {
      const bench = await betweenAttempts(() =>
        Promise.reject(new DeviceFailure("refused_by_device", "bmc", "cannot")),
      );
      expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
      expect(bench.device.acts).toBe(1);
      expect(bench.residue).toEqual(["first: it may still run (undoing it was refused: cannot)"]);
    });
  });

  test("that calls for a person is not called retryable", async () => {
    const bench = new Bench();
    bench.device.failActing = forPerson("another machine answers");
    expect(await bench.untilEnd()).toMatchObject({
      facts: { error: { retryable: false, details: { step: "first" } } },
    });
  });

  test("is undone by a cancel that comes between two attempts", async () => {
    const bench = new Bench();
    Object.assign(bench.device.step, { undo: () => Promise.reject(retryable("not now")) });
    bench.device.failActing = retryable("no answer");
    await bench.announce();
    await bench.failAttempt();
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, toTakeBack: { seen: 0 } }]);
    let evidence: unknown;
    Object.assign(bench.device.step, {
      undo: async (context: { evidence: unknown }) => {
        evidence = context.evidence;
      },
    });
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled", facts: { residue: [] } });
    expect(evidence).toEqual({ seen: 0 });
  });
});

describe("what cannot be undone because we are not let in", () => {
  const UNDONE_FIRST = { step: "first", evidence: { seen: 0 } };
  const ACTIONS = ["retry", "rerun", "restart_clean"] as const;

  /** The step has failed, or its run was canceled, and then nothing could be taken back. */
  async function shutOutBench(error: Error, end: "fails" | "is canceled"): Promise<Bench> {
    const bench = new Bench();
    bench.maxRetries = 0;
    bench.device.failUndoing = error;
    await bench.announce();
    if (end === "fails") bench.device.failActing = final("refused");
    else bench.cancelRequestedAt = bench.now;
    await bench.untilEnd();
    expect(bench.machineResidue).toEqual([
      `first: may have left something behind (undoing it failed: ${error.message})`,
    ]);
    return bench;
  }

  test.each(NOT_LET_IN.flatMap(([why, error]) => ACTIONS.map((action) => [why, action, error] as const)))(
    "(%s) fails a %s at once and is kept, as often as it is tried; then it is taken back before anything is begun",
    async (_, action, error) => {
      const bench = await shutOutBench(error, "fails");
      for (let attempts = 0; attempts < 2; attempts += 1) {
        nextAttempt(bench, action);
        const outcome = await bench.pass();
        expect(outcome).toMatchObject({
          event: "step_failed",
          facts: { takeBackFirst: UNDONE_FIRST, error: { retryable: true, message: expect.any(String) } },
        });
        expect(outcome.type === "happened" && outcome.message).toMatch(
          /^first: what step first of the previous attempt left is not undone: /,
        );
        expect(outcome.type === "happened" && outcome.message).toContain(error.message);
        expect(bench.device.acts).toBe(0);
        expect(bench.machineResidue).toHaveLength(1);
      }
      nextAttempt(bench, action);
      bench.device.failUndoing = undefined;
      expect(await bench.pass()).toMatchObject({ reason: "first: undone", facts: { takeBackFirst: null } });
      expect(bench.device).toMatchObject({ acts: 0, undone: 1 });
      expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
      expect(bench.machineResidue).toEqual([]);
    },
  );

  test("is listed once, with why it failed the last time", async () => {
    const bench = nextAttempt(await shutOutBench(NOT_LET_IN[0][1], "fails"), "retry");
    bench.device.failUndoing = new DeviceFailure(
      "credentials_rejected",
      "bmc",
      "wrong credentials: rejected since noon",
    );
    await bench.pass();
    expect(bench.machineResidue).toEqual([expect.stringContaining("(undoing it failed: wrong credentials: rejected")]);
  });

  test("names the command that gives other credentials", async () => {
    const bench = nextAttempt(await shutOutBench(NOT_LET_IN[0][1], "fails"), "retry");
    expect(await bench.pass()).toMatchObject({
      message: expect.stringContaining("millwright machine set-credentials m-1"),
    });
  });

  test("is passed on by a cancel, which does not wait for it", async () => {
    const bench = await shutOutBench(NOT_LET_IN[0][1], "is canceled");
    nextAttempt(bench, "rerun");
    expect(bench.takeBackFirst).toEqual(UNDONE_FIRST);
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled", facts: { takeBackFirst: UNDONE_FIRST } });
    nextAttempt(bench, "resume");
    bench.device.failUndoing = undefined;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device).toMatchObject({ acts: 1, undone: 1 });
    expect(bench.machineResidue).toEqual([]);
  });

  test("keeps what was noted for a resume as well, which goes by it once we are let in", async () => {
    const bench = nextAttempt(await shutOutBench(NOT_LET_IN[0][1], "fails"), "resume");
    const { probe } = bench.device.step;
    Object.assign(bench.device.step, { probe: () => Promise.reject(NOT_LET_IN[0][1]) });
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, toTakeBack: { seen: 0 } }]);
    nextAttempt(bench, "resume");
    Object.assign(bench.device.step, { probe });
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device).toMatchObject({ acts: 0, undone: 0 });
    expect(bench.machineResidue).toEqual([]);
  });
});

describe("what is left inside the system", () => {
  const SILENT = ["nobody answers", new DeviceFailure("unreachable", "bmc", "no route")] as const;
  const OF_JOIN = { step: "join", evidence: { seen: 0 } };
  const LISTED = (error: Error) => `join: it may be joining (undoing it failed: ${error.message})`;

  /** Canceled in its join, which could not be taken back then and cannot now. */
  async function leftInside(planned: readonly string[], error: Error): Promise<Bench> {
    const bench = new Bench();
    bench.planned = [...planned];
    const { step } = bench.device;
    const quick = { ...step, probe: async () => "done" as const };
    let acts = 0;
    const join = {
      ...step,
      kind: "join",
      insideSystem: true,
      residue: () => "it may be joining",
      act: async () => {
        acts += 1;
      },
      probe: async () => (acts > 0 ? "done" : "not_done"),
      undo: () => Promise.reject(error),
    };
    const netboot = { ...quick, kind: "netboot", fromOutside: true };
    const repave = { ...quick, kind: "repave", replacesSystem: true, endsIn: "READY" };
    bench.kinds = [step, netboot, repave, join];
    await bench.announce();
    expect(bench.steps.at(-1)).toMatchObject({ name: "join", state: "RUNNING" });
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(bench.machineResidue).toEqual([LISTED(error)]);
    return bench;
  }

  test.each(
    [...NOT_LET_IN, SILENT].flatMap(([why, error]) =>
      (["rerun", "restart_clean"] as const).map((action) => [why, action, error] as const),
    ),
  )("(%s) keeps no %s from the installation that ends it: it is listed until then", async (_, action, error) => {
    const bench = await leftInside(["netboot", "repave", "join"], error);
    nextAttempt(bench, action);
    expect(bench.takeBackFirst).toEqual(OF_JOIN);
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      after: 0,
      facts: { takeBackFirst: null, residue: [LISTED(error)] },
    });
    expect(bench.logged.join("")).toContain("the installation ends it");
    expect(bench.machineResidue).toEqual([LISTED(error)]);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
    expect(bench.machineResidue).toEqual([]);
  });

  test("is in the way of an attempt that keeps the system as it is installed", async () => {
    const bench = nextAttempt(await leftInside(["netboot", "repave", "join"], NOT_LET_IN[0][1]), "retry");
    expect(await bench.pass()).toMatchObject({ event: "step_failed", facts: { takeBackFirst: OF_JOIN } });
  });

  test("is in the way where something is begun beside it before the installation", async () => {
    const bench = nextAttempt(await leftInside(["join", "repave"], SILENT[1]), "rerun");
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", facts: { takeBackFirst: OF_JOIN } });
  });

  test("does not let through what is left at the BMC beside it, and is kept with that", async () => {
    const bench = await leftInside(["netboot", "repave", "join"], NOT_LET_IN[0][1]);
    nextAttempt(bench, "rerun");
    const both = { ...OF_JOIN, more: [{ step: "repave", evidence: { seen: 0 } }] };
    bench.takeBackFirst = both;
    bench.device.failUndoing = SILENT[1];
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      reason: expect.stringContaining("not undone yet"),
    });
    expect(bench.takeBackFirst).toEqual(both);
    bench.device.failUndoing = NOT_LET_IN[0][1];
    expect(await bench.pass()).toMatchObject({ event: "step_failed", facts: { takeBackFirst: both } });
  });
});

test.each([
  ["Redfish", 403],
  ["IPMI", 0xd4],
])("a BMC that forbids over %s to take back has said no, and blocks no later attempt", async (_, status) => {
  const bench = await failedBench();
  nextAttempt(bench, "restart_clean");
  bench.device.failUndoing = new DeviceFailure("forbidden", "bmc", "eject is forbidden", { status });
  expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
  expect(bench.machineResidue).toEqual([expect.stringContaining("(undoing it was refused: eject is forbidden)")]);
});

describe("what is listed on the machine", () => {
  const NOT_UNDONE = /^first: .*\(undoing it failed: the BMC is dead\)$/;

  test.each(["retry", "rerun", "restart_clean"] as const)(
    "is not any more once a %s has taken it back",
    async (action) => {
      const bench = await unsettledBench();
      expect(bench.machineResidue).toEqual([expect.stringMatching(NOT_UNDONE)]);
      nextAttempt(bench, action);
      bench.device.failUndoing = undefined;
      expect(await bench.pass()).toMatchObject({ reason: "first: undone" });
      expect(bench.machineResidue).toEqual([]);
    },
  );

  test("is not any more once a cancel has taken it back", async () => {
    const bench = nextAttempt(await unsettledBench(), "rerun");
    bench.device.failUndoing = undefined;
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(bench.machineResidue).toEqual([]);
  });

  test("stays as far as the step has done something for good", async () => {
    const bench = await unsettledBench();
    Object.assign(bench.device.step, { undoIsPartial: true, residue: () => "half of it is done" });
    bench.machineResidue = ["first: half of it is done (undoing it failed: the BMC is dead)"];
    nextAttempt(bench, "rerun");
    bench.device.failUndoing = undefined;
    await bench.pass();
    expect(bench.machineResidue).toEqual(["first: half of it is done"]);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.machineResidue).toEqual([]); // done after all
  });

  test("is not any more once a resume has found the step done by what was noted then", async () => {
    const bench = nextAttempt(await unsettledBench(), "resume");
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(0);
    expect(bench.machineResidue).toEqual([]);
  });

  test.each([
    ["was done", "SUCCEEDED"],
    ["was taken back", "CANCELED"],
  ])("stays where a step of another plan has the same name and %s", async (_, end) => {
    const bench = new Bench();
    Object.assign(bench.device.step, { residue: () => "script b.sh may still run" });
    const theirs = "first: script a.sh may still run (undoing it failed: no route)";
    bench.machineResidue = [theirs, "first: script b.sh may still run (undoing it failed: no route)"];
    await bench.announce();
    if (end === "CANCELED") bench.cancelRequestedAt = bench.now;
    await bench.untilEnd();
    expect(bench.machineResidue).toEqual([theirs]);
  });

  test("stays where a device refuses to take it back, whatever is done after it", async () => {
    const bench = await failedBench();
    bench.device.failUndoing = final("it has no eject");
    expect(await nextAttempt(bench, "restart_clean").untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.machineResidue).toEqual([expect.stringContaining("(undoing it was refused: it has no eject)")]);
  });
});
