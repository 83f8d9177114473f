import { beforeEach, describe, expect, test, vi } from "vitest";
import { type Fabric, type FabricTarget, isFabricRunning } from "../rack/fabric.ts";
import { aCall } from "./device-bench.ts";

/** The switches of one rack, whose fabric nobody has configured. */
export interface FabricBench {
  readonly fabric: Fabric;
  /** The primary first. */
  readonly switches: readonly [FabricTarget, ...FabricTarget[]];
  /** How often the controller of the primary was started, as the primary counts it. */
  starts(): Promise<number>;
  /** How many sets of changes were opened on the primary, as it counts them. */
  changesOpened(): Promise<number>;
  /** Has the switches need longer, or as long as usual. */
  setPace(pace: "slow" | "usual"): Promise<void>;
}

const ORDER = { topology: "", job: null, jobsBefore: null } as const;

/** What every way to configure a fabric must do. */
export function describeFabric(name: string, setUp: () => Promise<FabricBench>): void {
  describe(`the fabric of ${name}`, () => {
    let bench: FabricBench;
    beforeEach(async () => {
      bench = await setUp();
    });
    const areRunning = () =>
      Promise.all(bench.switches.map(async (one) => isFabricRunning(await bench.fabric.readStatus(one, aCall()))));

    test("is started once on the primary, however often that is asked for, and every switch then reports it", async () => {
      const { fabric, switches } = bench;
      expect(await areRunning()).not.toContain(true);
      const jobsBefore = await fabric.listJobs(switches[0], aCall());
      await vi.waitFor(
        async () => {
          await fabric.configure(switches[0], { ...ORDER, jobsBefore }, aCall());
          expect(await areRunning()).not.toContain(false);
        },
        { timeout: 20_000, interval: 50 },
      );
      expect(await fabric.configure(switches[0], ORDER, aCall())).toMatchObject({ isStarted: true });
      expect(await areRunning()).not.toContain(false);
      expect(await bench.starts()).toBe(1);
    });

    test("goes on with what it began, whether the answer came or was lost, and opens nothing else meanwhile", async () => {
      const { fabric, switches } = bench;
      await bench.setPace("slow");
      try {
        const jobsBefore = await fabric.listJobs(switches[0], aCall());
        const opened = await bench.changesOpened();
        const first = await fabric.configure(switches[0], { ...ORDER, jobsBefore }, aCall());
        expect(first).toMatchObject({ job: expect.any(String), isStarted: false });
        expect(await fabric.configure(switches[0], { ...ORDER, job: first.job, jobsBefore }, aCall())).toEqual(first);
        expect(await fabric.configure(switches[0], { ...ORDER, jobsBefore }, aCall()), "the answer was lost").toEqual(
          first,
        );
        expect((await bench.changesOpened()) - opened).toBe(1);
      } finally {
        await bench.setPace("usual");
      }
    });

    test("says that the credentials are wrong when they are, and not the password", async () => {
      const stranger = { ...bench.switches[0], password: "not-the-password" };
      const failure: unknown = await bench.fabric.readStatus(stranger, aCall()).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: "credentials_rejected", facts: { at: "switch_os" } });
      expect((failure as Error).message).not.toContain("not-the-password");
    });
  });
}
