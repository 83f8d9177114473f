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
}

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
      await vi.waitFor(
        async () => {
          await fabric.configure(switches[0], "", aCall());
          expect(await areRunning()).not.toContain(false);
        },
        { timeout: 20_000, interval: 50 },
      );
      expect(await fabric.configure(switches[0], "", aCall())).toMatchObject({ isStarted: true });
      expect(await areRunning()).not.toContain(false);
      expect(await bench.starts()).toBe(1);
    });

    test("says that the credentials are wrong when they are, and not the password", async () => {
      const stranger = { ...bench.switches[0], password: "not-the-password" };
      const failure: unknown = await bench.fabric.readStatus(stranger, aCall()).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: "credentials_rejected", facts: { at: "switch_os" } });
      expect((failure as Error).message).not.toContain("not-the-password");
    });
  });
}
