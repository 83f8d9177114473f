import { describe, expect, test } from "vitest";
import { anImage, benchOf, type Fakes } from "../../../test/support/runs/step-bench.ts";
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
    ["PXE", "pxe"],
    ["HTTP", "http"],
    ["DISK", "disk"],
  ])("in mode %s is armed to be from %s, also where there are virtual media", async (mode, expected) => {
    const told: string[] = [];
    const can: Fakes = { boot: boot({ source: "none", lasts: "once" }, told), imaging: {} };
    await benchOf("netboot", { mode }, can).act({});
    expect(told).toEqual([expected]);
  });

  describe("before an installation", () => {
    const probe = (mode: string, kind: "iso" | "disk" | "netboot") => {
      const can: Fakes = { boot: boot({ source: "none", lasts: "once" }) };
      const targets = { image: async () => ({ ...anImage, kind }) };
      return benchOf("netboot", { mode }, can, { targets, installsNext: "ubuntu" }).probe({});
    };

    test.each(["iso", "disk"] as const)("from a medium (%s) is not armed, which is told", async (kind) => {
      expect(await probe("PXE", kind)).toEqual({
        state: "done",
        message: expect.stringContaining("nothing is armed: ubuntu is installed from a medium"),
      });
      expect(await probe("DISK", kind)).toMatchObject({ state: "not_done" });
    });

    test("over the network is armed", async () => {
      expect(await probe("PXE", "netboot")).toMatchObject({ state: "not_done" });
    });
  });

  test.each([
    ["golden", "golden", "next boot: pxe (profile golden)"],
    ["golden", "other", "profile golden is not used, since image ubuntu is installed by workflow other"],
    ["golden", null, "no step of the plan installs profile golden"],
  ])("with profile %s, and an image of workflow %s, says %s", async (profile, location, expected) => {
    const can: Fakes = { boot: boot({ source: "none", lasts: "once" }) };
    const targets = { image: async () => ({ ...anImage, kind: "netboot" as const, location: location ?? "" }) };
    const bench = benchOf("netboot", { profile }, can, { targets, ...(location && { installsNext: "ubuntu" }) });
    await bench.act({});
    expect(bench.log.join("")).toContain(expected);
  });
});
