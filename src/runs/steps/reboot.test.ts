import { describe, expect, test } from "vitest";
import { aMachine, benchOf, exited, fakeSystem, unreachable } from "../../../test/support/runs/step-bench.ts";
import type { BootProgress } from "../../capabilities/computer-system.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { PowerState } from "../../capabilities/power-control.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { bmcTargetOf } from "../model/targets.ts";

const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** A machine whose boot the test decides on. */
function world(
  start: { bootId?: string; lastReset?: string | null; progress?: BootProgress; power?: PowerState } = {},
) {
  const seen = {
    power: "on" as PowerState,
    bootId: "b1" as string | undefined,
    lastReset: "r1" as string | null,
    progress: "running" as BootProgress,
    ...start,
  };
  const resets: string[] = [];
  const powers: string[] = [];
  const can = {
    exec: {
      ...fakeSystem(() => (seen.bootId === undefined ? undefined : { [BOOT_ID]: `${seen.bootId}\n` })),
      run: async () => exited(0),
    },
    system: { readBoot: async () => ({ lastReset: seen.lastReset, progress: seen.progress }) },
    reset: {
      resetPower: async (_target: unknown, mode: string) => {
        resets.push(mode);
      },
    },
    power: {
      readPower: async () => seen.power,
      setPower: async (_target: unknown, desired: string) => {
        powers.push(desired);
        return { commanded: true };
      },
    },
  };
  return { seen, resets, powers, can };
}

describe("a reboot", () => {
  test("notes the boot id and the last reset before anything is done", async () => {
    const { can } = world();
    expect(await benchOf("reboot", {}, can).before()).toEqual({ bootId: "b1", lastReset: "r1" });
  });

  test("by a BMC that is not on record misses that, and not a proof", async () => {
    const machine = aMachine({ bmc: null });
    const bmc = async () => bmcTargetOf(machine, { username: "", password: "" });
    const { can } = world({ lastReset: null });
    const failing = benchOf("reboot", {}, can, { machine, targets: { bmc } }).before();
    await expect(failing).rejects.toThrow("machine m-1 has no BMC endpoint");
  });

  test("is not begun when nothing could prove it", async () => {
    const { can, seen } = world({ lastReset: null });
    seen.bootId = undefined;
    await expect(benchOf("reboot", {}, can).before()).rejects.toMatchObject({ disposition: "retry" });
  });

  test.each([
    { bootId: "b1", lastReset: "r1", expected: "not_done" },
    { bootId: "b1", lastReset: "r2", expected: "in_progress" },
    { bootId: undefined, lastReset: "r1", expected: "in_progress" },
    { bootId: undefined, lastReset: "r2", expected: "in_progress" },
    { bootId: "b2", lastReset: "r2", expected: "done" },
    { bootId: "b2", lastReset: null, expected: "done" },
  ])("with boot id $bootId and reset $lastReset after b1 and r1 is $expected", async ({ expected, ...now }) => {
    const { can, seen } = world();
    Object.assign(seen, now);
    expect(await benchOf("reboot", {}, can).probe({ bootId: "b1", lastReset: "r1" })).toMatchObject({
      state: expected,
    });
  });

  test("of a machine that went down and no more is halfway, and carried on by switching it on", async () => {
    const { can, seen, powers } = world({ lastReset: null });
    Object.assign(seen, { bootId: undefined, progress: "off" });
    const evidence = { bootId: "b1", lastReset: null };
    const bench = benchOf("reboot", {}, can);
    expect(await bench.probe(evidence)).toMatchObject({ state: "halfway" });
    await bench.carryOn(evidence);
    expect(powers).toEqual(["on"]);
    expect(await benchOf("reboot", { mode: "in_band" }, can).probe(evidence)).toMatchObject({ state: "in_progress" });
  });

  test.each([
    { lastReset: "r1", progress: "running", expected: "not_done" },
    { lastReset: "r2", progress: "booting", expected: "in_progress" },
    { lastReset: "r2", progress: "running", expected: "done" },
  ] as const)("of a machine without SSH, reset $lastReset and $progress is $expected", async ({ expected, ...now }) => {
    const { can, seen } = world();
    Object.assign(seen, now);
    const bench = benchOf("reboot", {}, can, { machine: aMachine({ ssh: null }) });
    expect(await bench.probe({ bootId: null, lastReset: "r1" })).toMatchObject({ state: expected });
  });

  describe("of a machine whose system keeps us out or shows another host key", () => {
    const stranger = (
      code: "certificate_changed" | "credentials_rejected",
      start: Parameters<typeof world>[0] = {},
    ) => {
      const { can, seen } = world(start);
      const readFile = async () => {
        throw new DeviceFailure(code, "ssh", "not the one we know");
      };
      return { seen, can: { ...can, exec: { ...can.exec, readFile } } };
    };

    test.each(["certificate_changed", "credentials_rejected"] as const)(
      "(%s) fails where it is to stay",
      async (reason) => {
        const bench = benchOf("reboot", {}, stranger(reason).can);
        await expect(bench.before()).rejects.toThrow("not the one we know");
        await expect(bench.probe({ bootId: "b1", lastReset: "r1" })).rejects.toThrow("not the one we know");
      },
    );

    test.each(["certificate_changed", "credentials_rejected"] as const)(
      "(%s) is proved by the BMC where it is to be replaced",
      async (reason) => {
        const { can, seen } = stranger(reason);
        const bench = benchOf("reboot", {}, can, { isReplacedNext: true });
        const evidence = await bench.before();
        expect(evidence).toEqual({ bootId: null, lastReset: "r1" });
        for (const before of [evidence, { bootId: "b1", lastReset: "r1" }]) {
          seen.lastReset = "r1";
          expect(await bench.probe(before)).toMatchObject({ state: "not_done" });
          seen.lastReset = "r2";
          expect(await bench.probe(before)).toMatchObject({ state: "done" });
        }
      },
    );

    test("is named in an attempt that noted a boot id, where the BMC does not tell of resets", async () => {
      const { can } = stranger("certificate_changed", { lastReset: null });
      const bench = benchOf("reboot", {}, can, { isReplacedNext: true });
      await expect(bench.probe({ bootId: "b1", lastReset: null })).rejects.toThrow("not the one we know");
    });
  });

  describe("where nothing tells one boot from the next", () => {
    const hung = (power: PowerState = "on", around: Parameters<typeof benchOf>[3] = {}) => {
      const { can, seen, powers, resets } = world({ lastReset: null, progress: "unknown", power });
      seen.bootId = undefined;
      return { seen, powers, resets, bench: benchOf("reboot", { force: true }, can, around), can };
    };

    test("is not begun without force, and says what force does", async () => {
      await expect(benchOf("reboot", {}, hung().can).before()).rejects.toThrow("force=true switches it off and on");
    });

    test.each([
      [{ force: true }, {}],
      [{}, { isReplacedNext: true }],
    ])("of %j with %j is off, read off, on, and read on", async (payload, around) => {
      const { can, seen, powers, resets } = hung();
      const bench = benchOf("reboot", payload, can, around);
      const evidence = await bench.before();
      expect(evidence).toEqual({ bootId: null, lastReset: null, proof: "power" });
      expect(await bench.probe(evidence)).toMatchObject({ state: "not_done" });
      await bench.act(evidence);
      expect(powers).toEqual(["off"]);
      expect(await bench.probe(evidence)).toMatchObject({ state: "not_done" });
      seen.power = "off";
      expect(await bench.probe(evidence)).toMatchObject({ state: "halfway" });
      // That it was read off is on record before it is switched on: a process that dies in between proves the reset all the same.
      const { receipt } = (await bench.carryOn(evidence)) as { receipt: JsonObject };
      expect(powers).toEqual(["off"]);
      const later = benchOf("reboot", payload, can, { ...around, receipt });
      expect(await later.probe(evidence)).toMatchObject({ state: "halfway" });
      await later.carryOn(evidence);
      expect(powers).toEqual(["off", "on"]);
      seen.power = "powering_on";
      expect(await later.probe(evidence)).toMatchObject({ state: "in_progress" });
      seen.power = "on";
      expect(await later.probe(evidence)).toMatchObject({ state: "done" });
      expect(resets).toEqual([]);
    });

    test("and not even the power can be read, is sent once, and never again after a crash", async () => {
      const { bench, resets, can } = hung("unknown");
      const evidence = await bench.before();
      expect(evidence).toMatchObject({ proof: "none" });
      expect(await bench.probe(evidence)).toMatchObject({ state: "not_done" });
      const sent = (await bench.act(evidence)) as { receipt: JsonObject };
      expect(resets).toEqual(["forced"]);
      const crashed = benchOf("reboot", { force: true }, can, { actingAt: new Date(0) });
      expect(await crashed.probe(evidence)).toMatchObject({ state: "unknown", cause: { code: "no_evidence" } });
      const known = benchOf("reboot", { force: true }, can, { actingAt: new Date(0), ...sent });
      await expect(known.probe(evidence)).rejects.toMatchObject({ code: "no_evidence", disposition: "fail" });
    });

    test("is unknown while its BMC is silent", async () => {
      const { can } = hung();
      const silent = { ...can, power: { readPower: unreachable } };
      const evidence = { bootId: null, lastReset: null, proof: "power" };
      expect(await benchOf("reboot", { force: true }, silent).probe(evidence)).toMatchObject({ state: "unknown" });
    });
  });

  test.each([
    [{ ssh: null }, {}, "done"],
    [{}, { force: true }, "done"],
    [{}, {}, "in_progress"],
  ])("of a machine %j by %j whose BMC reports no progress is %s after its reset", async (spec, payload, expected) => {
    const { can, seen } = world({ lastReset: "r2", progress: "unknown" });
    seen.bootId = undefined;
    const bench = benchOf("reboot", payload, can, { machine: aMachine(spec) });
    const evidence = { bootId: null, lastReset: "r1" };
    expect(await bench.probe(evidence)).toMatchObject({ state: expected });
    seen.bootId = "b2";
    expect(await bench.probe(evidence)).toMatchObject({ state: "done" });
  });

  test.each([
    { lastReset: "r1", progress: "unknown", expected: "not_done" },
    { lastReset: "r2", progress: "unknown", expected: "done" },
    { lastReset: "r2", progress: "booting", expected: "done" },
    { lastReset: "r2", progress: "off", expected: "in_progress" },
  ] as const)(
    "of a machine without a system that another is to replace, reset $lastReset and $progress is $expected",
    async ({ expected, ...now }) => {
      const { can, seen } = world();
      Object.assign(seen, { ...now, bootId: undefined });
      const bench = benchOf("reboot", {}, can, { isReplacedNext: true });
      expect(await bench.probe({ bootId: null, lastReset: "r1" })).toMatchObject({ state: expected });
      const seenBefore = { bootId: "b1", lastReset: "r1" };
      expect(await bench.probe(seenBefore)).not.toMatchObject({ state: "done" });
    },
  );

  test.each([
    [null, true, "forced"],
    [null, false, "graceful"],
    ["b1", true, "graceful"],
  ])("with boot id %j noted before, and a system to follow: %s, is %s", async (bootId, isReplacedNext, expected) => {
    const { can, resets } = world();
    await benchOf("reboot", {}, can, { isReplacedNext }).act({ bootId, lastReset: "r1" });
    expect(resets).toEqual([expected]);
  });

  test("that only the BMC could prove is unknown while the BMC is silent, and says why", async () => {
    const { can } = world();
    const silent = { ...can, system: { readBoot: unreachable } };
    const bench = benchOf("reboot", {}, silent, { machine: aMachine({ ssh: null }) });
    expect(await bench.probe({ bootId: null, lastReset: "r1" })).toEqual({
      state: "unknown",
      message: "nobody answers",
      cause: { code: "unreachable", facts: { at: "bmc" } },
    });
  });

  test.each([
    [{ force: false }, ["graceful"]],
    [{ force: true }, ["forced"]],
    [{ mode: "in_band" }, []],
  ])("of %j resets the machine %j", async (payload, expected) => {
    const { can, resets } = world();
    await benchOf("reboot", payload, can).act({ bootId: "b1", lastReset: "r1" });
    expect(resets).toEqual(expected);
  });

  test.each<[BootProgress, string | null, string]>([
    ["starting", null, "forced"],
    ["booting", null, "forced"],
    ["running", null, "graceful"],
    ["off", null, "graceful"],
    ["unknown", null, "graceful"],
    ["booting", "b1", "graceful"],
  ])("of a machine that is %s, with boot id %j noted before, is %s", async (progress, bootId, expected) => {
    const { can, resets } = world({ progress });
    const bench = benchOf("reboot", {}, can);
    await bench.act({ bootId, lastReset: "r1" });
    expect(resets).toEqual([expected]);
    expect(bench.log.join("").includes("no system is up yet")).toBe(expected === "forced");
  });

  test.each([true, false])("of a machine that is off says that it was switched on (force %s)", async (force) => {
    const { can } = world({ progress: "off" });
    const bench = benchOf("reboot", { force }, can);
    await bench.act({ bootId: null, lastReset: "r1" });
    expect(bench.log).toEqual(["[reboot] the machine was off: the BMC accepted to switch it on\n"]);
  });

  test("in band takes a machine that is gone before it answered for one that obeyed", async () => {
    const { can } = world();
    const gone = { ...can, exec: { ...can.exec, run: async () => unreachable() } };
    await expect(
      benchOf("reboot", { mode: "in_band" }, gone).act({ bootId: "b1", lastReset: null }),
    ).resolves.toBeUndefined();
    const refusing = { ...can, exec: { ...can.exec, run: async () => exited(1) } };
    await expect(
      benchOf("reboot", { mode: "in_band" }, refusing).act({ bootId: "b1", lastReset: null }),
    ).rejects.toThrow("refused to reboot");
  });
});
