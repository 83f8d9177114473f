import { describe, expect, test } from "vitest";
import { benchOf, type Fakes } from "../../../test/support/runs/step-bench.ts";
import type { BootDevice, BootOverride } from "../../capabilities/boot-device.ts";

const boot = (now: BootOverride, told: string[] = []): Partial<BootDevice> => ({
  readBootOverride: async () => now,
  setBootOverride: async (_target, source) => {
    told.push(source);
  },
});

describe("the next boot", () => {
  test.each([
    [{ source: "none", lasts: "once" }, "not_done"],
    [{ source: "disk", lasts: "once" }, "not_done"],
    [{ source: "pxe", lasts: "once" }, "done"],
    // Known of emulators: "once" is kept as "always". It boots from the network all the same.
    [{ source: "pxe", lasts: "always" }, "done"],
  ] as const)("from %j, wanted from PXE, is %s", async (now, expected) => {
    const seen = await benchOf("netboot", { mode: "PXE" }, { boot: boot(now) }).probe({});
    expect(seen).toMatchObject({ state: expected });
  });

  test.each([
    ["PXE", false, "pxe"],
    ["HTTP", false, "http"],
    ["DISK", false, "disk"],
    ["PXE", true, "cd"],
    ["DISK", true, "disk"],
  ])("in mode %s, with virtual media: %s, is armed to be from %s", async (mode, withMedia, expected) => {
    const told: string[] = [];
    const can: Fakes = { boot: boot({ source: "none", lasts: "once" }, told), ...(withMedia ? { imaging: {} } : {}) };
    await benchOf("netboot", { mode }, can).act({});
    expect(told).toEqual([expected]);
  });
});
