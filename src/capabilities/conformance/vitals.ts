import { beforeEach, describe, expect, test } from "vitest";
import { need } from "../provider.ts";
import type { Vitals } from "../vitals.ts";
import { aCall, type DeviceTrouble, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import { eventually, type MachineBench, unless } from "./machine-bench.ts";

/** A fleet asks for vitals again and again; more requests than these are too many. */
const MOST_REQUESTS = 2;

/** What every provider of vitals must do. */
export function describeVitals(
  name: string,
  setUp: SetUpBench<MachineBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`vitals of ${name}`, () => {
    let bench: MachineBench;
    let vitals: Vitals;
    beforeEach(async () => {
      bench = await setUp();
      vitals = need(bench.provider, ["vitals"]).vitals;
    });
    const read = () => vitals.readVitals(bench.target, aCall());

    test("say which machine it is", async () => {
      const serial = bench.cannot.includes("tell_serial_at_a_glance") ? null : bench.serial;
      expect(await read()).toMatchObject({ serial, systemUuid: bench.systemUuid });
    });

    test.each(["on", "off"] as const)("say that a machine is %s", async (state) => {
      await bench.switchAtRack(state);
      await eventually(async () => expect(await read()).toMatchObject({ power: state }));
    });

    test("say that a machine is well, or that nothing tells, and name nothing that is not", async () => {
      const health = bench.cannot.includes("tell_health") ? "unknown" : "ok";
      expect(await read()).toMatchObject({ health, ailments: [] });
    });

    test.for(["warning", "critical"] as const)(
      "name a part whose health is %s, until it is well",
      async (health, context) => {
        unless(bench, "fall_ill", context);
        if (health === "warning") unless(bench, "tell_warnings", context);
        const part = await bench.ail?.(health);
        expect(await read()).toMatchObject({ health, ailments: [{ name: part, health }] });
        await bench.ail?.(null);
        expect(await read()).toMatchObject({ health: "ok", ailments: [] });
      },
    );

    test("are the same for everybody who asks meanwhile", async () => {
      const all = await Promise.all([read(), read(), read()]);
      expect(all).toEqual([all[0], all[0], all[0]]);
    });

    test(`take no more than ${MOST_REQUESTS} requests once the way is known`, async (context) => {
      unless(bench, "count_requests", context);
      await read();
      const before = await bench.requestsReceived();
      await read();
      expect((await bench.requestsReceived()) - before).toBeLessThanOrEqual(MOST_REQUESTS);
    });

    test("change nothing on the machine", async () => {
      await read();
      expect(await bench.commandsAccepted()).toBe(0);
      expect(await bench.restarts()).toBe(0);
      expect(await bench.realPower()).toBe("on");
      expect(await bench.realOverride()).toMatchObject({ source: "none" });
    });

    describeFailures(() => bench, troubles, {
      readVitals: ({ provider, target }, call) => need(provider, ["vitals"]).vitals.readVitals(target, call),
    });
  });
}
