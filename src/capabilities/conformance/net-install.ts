import { beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../kernel/errors.ts";
import type { NetInstall, NetInstallOrder, NetInstallSeen } from "../net-install.ts";

/** Why an installation cannot be ordered. */
export const REFUSALS = ["no_such_workflow", "another_image", "no_address", "address_of_another", "retired"] as const;
export type Refusal = (typeof REFUSALS)[number];

/** A machine that was never installed, and the boot path of a server that could install it. */
export interface NetInstallBench {
  readonly netInstall: NetInstall;
  /** Possible as things are. */
  readonly order: NetInstallOrder;
  /** Makes the order impossible; returns how it reads then, and words by which people know why. */
  refuse(why: Refusal): Promise<{ readonly order: NetInstallOrder; readonly says: string }>;
  /** As a step does with its announcement. */
  place(order: NetInstallOrder): Promise<void>;
  /** The machine boots from the network; returns the token that it was handed, if any. */
  boot(): Promise<string | undefined>;
  report(report: MachineReport): Promise<void>;
  /** The run that ordered it ends. */
  endRun(order: NetInstallOrder): Promise<void>;
  /** Everything on record, for comparing. */
  records(): Promise<unknown>;
  /** The records cannot be had: nobody answers, or nobody in time. */
  cause(trouble: "is_gone" | "hangs"): Promise<void>;
  putRight(): Promise<void>;
}

export interface MachineReport {
  readonly status: "started" | "progress" | "failed" | "complete";
  readonly progress?: number;
  readonly error?: string;
  readonly token?: string | undefined;
}

/** A machine that fails as often gets no further attempt. */
const MOST_ATTEMPTS = 3;

type State = NetInstallSeen["state"];

/** The machine has begun to install what was ordered. */
async function begin({ order, place, boot, report }: NetInstallBench): Promise<void> {
  await place(order);
  await report({ status: "started", token: await boot() });
}

/** What every way to install over the network must do. */
export function describeNetInstall(name: string, setUp: () => Promise<NetInstallBench>): void {
  describe(`network install of ${name}`, () => {
    describeProgress(setUp);
    describeOrders(setUp);
  });
}

function describeProgress(setUp: () => Promise<NetInstallBench>): void {
  describe("a machine that was ordered", () => {
    let bench: NetInstallBench;
    beforeEach(async () => {
      bench = await setUp();
    });
    const read = () => bench.netInstall.read(bench.order);
    const stateOf = async (): Promise<State> => (await read()).state;

    test("is followed from its boot to its end", async () => {
      await bench.place(bench.order);
      expect(await read()).toMatchObject({ state: "ordered", message: expect.stringMatching(/./) });
      const token = await bench.boot();
      expect(await read()).toMatchObject({ state: "begun", message: expect.stringMatching(/./) });
      await bench.report({ status: "started", token });
      await bench.report({ status: "progress", progress: 40, token });
      expect(await read()).toMatchObject({ state: "installing", message: expect.stringContaining("40 %") });
      await bench.report({ status: "complete", token });
      expect(await read()).toMatchObject({ state: "installed", tokenShown: true, awaitsProof: true });
    });

    test("and calls itself complete without having shown its token is known by that", async () => {
      await begin(bench);
      await bench.report({ status: "complete" });
      expect(await read()).toMatchObject({ state: "installed", tokenShown: false });
    });

    test("goes on after an attempt that failed, in its own words, and has failed after the last", async () => {
      await begin(bench);
      for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
        expect(await stateOf()).toBe("installing");
        await bench.report({ status: "failed", error: "the disk is full" });
        expect((await read()).message).toContain("the disk is full");
        if (attempt < MOST_ATTEMPTS) expect(await bench.boot()).toMatch(/./);
      }
      expect(await stateOf()).toBe("failed");
    });

    // No failed attempt: whoever asks tries again.
    test.each(["is_gone", "hangs"] as const)(
      "is not read while the record %s, and is as it was afterwards",
      async (trouble) => {
        await begin(bench);
        await bench.cause(trouble);
        for (const ask of [() => bench.netInstall.check(bench.order), () => read()]) {
          const failure: unknown = await ask().catch((error: unknown) => error);
          expect(failure).toBeInstanceOf(AppError);
          expect(["unavailable", "deadline_exceeded"]).toContain((failure as AppError).kind);
        }
        await bench.putRight();
        await bench.netInstall.check(bench.order);
        expect(await stateOf()).toBe("installing");
      },
    );
  });
}

function describeOrders(setUp: () => Promise<NetInstallBench>): void {
  describe("an order", () => {
    let bench: NetInstallBench;
    let order: NetInstallOrder;
    beforeEach(async () => {
      bench = await setUp();
      order = bench.order;
    });
    const read = (of = order) => bench.netInstall.read(of);
    const stateOf = async (of = order): Promise<State> => (await read(of)).state;

    test("that nobody placed is absent, and the machine is handed nothing", async () => {
      await bench.netInstall.check(order);
      expect(await read()).toEqual({ state: "absent", message: "", tokenShown: false, awaitsProof: false });
      expect(await bench.boot()).toBeUndefined();
    });

    test("is only read", async () => {
      const before = await bench.records();
      await bench.netInstall.check(order);
      await read();
      expect(await bench.records()).toEqual(before);
      await bench.place(order);
      const placed = await bench.records();
      await bench.netInstall.check(order);
      await read();
      expect(await bench.records()).toEqual(placed);
    });

    test("that is placed again is the same installation", async () => {
      await bench.place(order);
      expect(await stateOf()).toBe("ordered");
      const token = await bench.boot();
      expect(token).toMatch(/./);
      await bench.place(order);
      expect(await stateOf()).toBe("begun");
    });

    test("ends with its run: the machine is handed nothing any more", async () => {
      await bench.place(order);
      await bench.endRun(order);
      expect(["absent", "failed"]).toContain(await stateOf());
      expect(await bench.boot()).toBeUndefined();
    });

    test("gives way to another order, and is absent then", async () => {
      await begin(bench);
      await bench.endRun(order);
      const other = { ...order, runId: "run-2", orderId: "2" };
      await bench.place(other);
      expect(await stateOf()).toBe("absent");
      expect(await stateOf(other)).toBe("ordered");
      // What the boot before was handed opens nothing now.
      expect(await read(other)).toMatchObject({ tokenShown: false });
    });

    test("of the same run gives way as well, and what is installed then is not it", async () => {
      await bench.place(order);
      const next = { ...order, orderId: "2" };
      await bench.place(next);
      expect([await stateOf(), await stateOf(next)]).toEqual(["absent", "ordered"]);
      const token = await bench.boot();
      for (const status of ["started", "complete"] as const) await bench.report({ status, token });
      expect([await stateOf(), await stateOf(next)]).toEqual(["absent", "installed"]);
    });

    test("is of one machine: another one has none", async () => {
      await bench.place(order);
      expect(await stateOf({ ...order, machineId: "m-2" })).toBe("absent");
    });

    test.each(REFUSALS)("is refused for good (%s), and people learn why", async (why) => {
      const refused = await bench.refuse(why);
      await expect(bench.netInstall.check(refused.order)).rejects.toMatchObject({
        name: "StepFailure",
        disposition: "fail",
        message: expect.stringContaining(refused.says),
      });
    });
  });
}
