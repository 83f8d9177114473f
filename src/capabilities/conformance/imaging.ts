import { beforeEach, describe, expect, test } from "vitest";
import type { Imaging, InstallOrder } from "../imaging.ts";
import { need } from "../provider.ts";
import { aCall, type DeviceTrouble, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import { eventually, type MachineBench } from "./machine-bench.ts";

/** What every provider of installations must do. */
export function describeImaging(
  name: string,
  setUp: SetUpBench<MachineBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`imaging of ${name}`, () => {
    let bench: MachineBench;
    let imaging: Imaging;
    let order: InstallOrder;
    beforeEach(async () => {
      bench = await setUp();
      imaging = need(bench.provider, ["imaging"]).imaging;
      order = orderFor(bench, "first-order");
    });

    const progress = (of = order) => imaging.readProgress(bench.target, of, aCall());
    const prepare = (of = order) => imaging.prepare(bench.target, of, aCall());
    const cleanUp = (of = order) => imaging.cleanUp(bench.target, of, aCall());

    test("sees nothing of an order that nobody prepared", async () => {
      expect(await progress()).toEqual({ inserted: false, armed: false });
    });

    test("puts the medium in and arms it, and does not restart the machine yet", async () => {
      await prepare();
      expect(await progress()).toEqual({ inserted: true, armed: true });
      expect(await bench.realMedium()).toContain(bench.mediumLocation);
      expect(await bench.restarts()).toBe(0);
    });

    test("leaves one medium in, however often it is prepared", async () => {
      await prepare();
      const first = await bench.realMedium();
      await prepare();
      expect(await bench.realMedium()).toBe(first);
      expect(await progress()).toEqual({ inserted: true, armed: true });
    });

    test("tells its own order from another one, and puts it in the other's place", async () => {
      const other = orderFor(bench, "other-order");
      await prepare(other);
      expect(await progress()).toMatchObject({ inserted: false });
      await prepare();
      expect(await progress()).toEqual({ inserted: true, armed: true });
      expect(await progress(other)).toMatchObject({ inserted: false });
    });

    test("restarts the machine into it, once", async () => {
      await prepare();
      await imaging.start(bench.target, order, aCall());
      await eventually(async () => expect(await bench.restarts()).toBeGreaterThanOrEqual(1));
    });

    test("takes its medium and the override back, also when they are gone already", async () => {
      await cleanUp();
      await prepare();
      await cleanUp();
      expect(await progress()).toEqual({ inserted: false, armed: false });
      expect(await bench.realMedium()).toBeNull();
      const left = ["none", ...(bench.cannot.includes("boot_in_own_order") ? ["disk"] : [])];
      expect(left).toContain((await bench.realOverride()).source);
      await cleanUp();
    });

    test("leaves another order's medium in", async () => {
      const other = orderFor(bench, "other-order");
      await prepare(other);
      await cleanUp();
      expect(await progress(other)).toMatchObject({ inserted: true });
    });

    describeFailures(() => bench, troubles, {
      prepare: (one, call) => imagingOf(one).prepare(one.target, orderFor(one, "in-trouble"), call),
      readProgress: (one, call) => imagingOf(one).readProgress(one.target, orderFor(one, "in-trouble"), call),
      cleanUp: (one, call) => imagingOf(one).cleanUp(one.target, orderFor(one, "in-trouble"), call),
    });
  });
}

const imagingOf = ({ provider }: MachineBench): Imaging => need(provider, ["imaging"]).imaging;

const orderFor = ({ mediumLocation }: MachineBench, token: string): InstallOrder => ({
  location: mediumLocation,
  cloudInitRef: "cloud-init/worker-node",
  token,
});
