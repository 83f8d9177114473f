import { beforeEach, describe, expect, test } from "vitest";
import type { Locator } from "../locator.ts";
import { need } from "../provider.ts";
import { aCall, type DeviceTrouble, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import type { MachineBench } from "./machine-bench.ts";

/** What every provider of locator lights must do. */
export function describeLocator(
  name: string,
  setUp: SetUpBench<MachineBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`locator light of ${name}`, () => {
    let bench: MachineBench;
    let locator: Locator;
    beforeEach(async () => {
      bench = await setUp();
      locator = need(bench.provider, ["locator"]).locator;
    });
    const set = (light: "lit" | "dark") => locator.setLocator(bench.target, light, aCall());

    test("lights it and puts it out, however often it is asked", async () => {
      for (const light of ["lit", "lit", "dark", "dark"] as const) {
        await set(light);
        expect(await bench.realLocator()).toBe(light);
      }
    });

    test("reads what it is, or says that it does not know where nothing tells", async () => {
      const tells = !bench.cannot.includes("tell_locator");
      expect(await locator.readLocator(bench.target, aCall())).toBe(tells ? "dark" : "unknown");
      await set("lit");
      expect(await locator.readLocator(bench.target, aCall())).toBe(tells ? "lit" : "unknown");
    });

    describeFailures(() => bench, troubles, {
      readLocator: ({ provider, target }, call) => need(provider, ["locator"]).locator.readLocator(target, call),
      setLocator: ({ provider, target }, call) => need(provider, ["locator"]).locator.setLocator(target, "lit", call),
    });
  });
}
