import { describe, expect, test } from "vitest";
import { anImage, anSsh, benchOf, fakeSystem, unreachable } from "../../../test/support/runs/step-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { readProbe } from "../model/step.ts";
import { installerMark } from "../seeds/seed-place.ts";
import { parseStamp } from "./facts/install-stamp.ts";
import { progressOfInstall } from "./repave.ts";

const evidence = {
  token: "t1",
  digest: anImage.digest,
  location: anImage.location,
  bootId: "b1",
  lastReset: "r1",
  progress: "running",
};
const stamp = (change: Readonly<Record<string, string>> = {}) =>
  Object.entries({ image: "ubuntu", digest: anImage.digest, machine: "m-1", serial: "S1", token: "t1", ...change })
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");

interface Told {
  readonly lastReset?: string | null;
  readonly progress?: "off" | "starting" | "booting" | "running" | "unknown";
}

function world(
  files: Readonly<Record<string, string>> | undefined,
  override: "once" | "always" = "once",
  { lastReset = "r2", progress = "booting" }: Told = {},
) {
  const calls: string[] = [];
  const note = (name: string) => async () => {
    calls.push(name);
    return undefined;
  };
  const can = {
    exec: fakeSystem(() => files),
    system: { readBoot: async () => ({ lastReset, progress }) },
    imaging: {
      prepare: note("prepare"),
      start: note("start"),
      cleanUp: note("cleanUp"),
      readProgress: async () => ({ inserted: true, armed: false }),
    },
    boot: {
      readBootOverride: async () => ({ source: "cd" as const, lasts: override }),
      clearBootOverride: note("clearBootOverride"),
    },
  };
  return { can, calls };
}
const booted = (text: string) => ({ "/etc/millwright-image": text, "/proc/sys/kernel/random/boot_id": "b2\n" });

describe("an installation", () => {
  test("has another token each time, made before anything is done", async () => {
    const { can, calls } = world(booted(""));
    const bench = benchOf("repave", { image: "ubuntu" }, can);
    const [one, other] = [await bench.before(), await bench.before()];
    expect(one).toMatchObject({ digest: anImage.digest, bootId: "b2", lastReset: "r2" });
    expect(one.token).not.toBe(other.token);
    expect(calls).toEqual([]);
  });

  test("puts the medium in before it restarts the machine", async () => {
    const { can, calls } = world(undefined);
    await benchOf("repave", { image: "ubuntu" }, can).act(evidence);
    expect(calls).toEqual(["prepare", "start"]);
  });

  test("is done when the system shows the token, the digest and the machine, and the medium is then put away", async () => {
    const { can, calls } = world(booted(stamp()));
    expect(await benchOf("repave", { image: "ubuntu" }, can).probe(evidence)).toMatchObject({
      state: "done",
      facts: { sshHostKey: "ssh-ed25519 NEW", bootId: "b2", joinedCluster: null },
      conditions: [{ type: "Provisioned", status: true }],
    });
    expect(calls).toEqual(["cleanUp"]);
  });

  describe("of a machine that a network change had moved before", () => {
    const moved = { ...anSsh, address: "10.0.0.9" };
    const at = (systems: Readonly<Record<string, Readonly<Record<string, string>> | "refuses">>) => {
      const { can } = world(undefined);
      const readFile = async ({ address }: SshTarget, path: string) => {
        const system = systems[address];
        if (system === "refuses") throw new DeviceFailure("credentials_rejected", "bmc", "the key was refused");
        return system === undefined ? unreachable() : { text: system[path], hostKey: `ssh-ed25519 OF-${address}` };
      };
      const targets = { ssh: async () => moved };
      return benchOf("repave", { image: "ubuntu" }, { ...can, exec: { readFile } }, { targets }).probe(evidence);
    };

    test("is proved where its owner says, and the machine is reached there again", async () => {
      expect(await at({ [anSsh.address]: booted(stamp()) })).toMatchObject({
        state: "done",
        facts: { sshHostKey: `ssh-ed25519 OF-${anSsh.address}`, bootId: "b2", sshMoved: null },
      });
    });

    test("is proved where the change had moved it, if the new system is there too", async () => {
      const report = await at({ [moved.address]: booted(stamp()), [anSsh.address]: booted("") });
      expect(report).toMatchObject({ state: "done", facts: { sshHostKey: `ssh-ed25519 OF-${moved.address}` } });
      expect(report.facts).not.toHaveProperty("sshMoved");
    });

    test.each([booted(""), booted(stamp({ token: "t0" })), "refuses"] as const)(
      "is not proved by somebody else who lives there by now (%j)",
      async (stranger) => {
        expect(await at({ [anSsh.address]: stranger })).toMatchObject({ state: "in_progress" });
      },
    );
  });

  test.each(["unreachable", "refused_by_device", "protocol", "credentials_rejected"] as const)(
    "is not over while the medium cannot be put away (%s), and is never begun again for that",
    async (code) => {
      const { can } = world(booted(stamp()));
      const cleanUp = async () => {
        throw new DeviceFailure(code, "bmc", "the medium is still inserted", { disposition: "retry" });
      };
      const stuck = { ...can, imaging: { ...can.imaging, cleanUp } };
      const report = await benchOf("repave", { image: "ubuntu" }, stuck, { receipt: { a: 1 } }).probe(evidence);
      expect(report).toMatchObject({
        state: "unknown",
        message: "ubuntu is installed, but the medium is still inserted",
        cause: { code },
        callsPerson: true,
      });
      // The system may be down by then.
      const later = world(undefined);
      const { receipt = {} } = report;
      expect(await benchOf("repave", { image: "ubuntu" }, later.can, { receipt }).probe(evidence)).toMatchObject({
        state: "done",
        facts: { sshHostKey: "ssh-ed25519 NEW", bootId: "b2" },
      });
      expect(receipt).toMatchObject({ a: 1 });
      expect(later.calls).toEqual(["cleanUp"]);
    },
  );

  test.each([
    [{ digest: "sha256:other" }, "fail"],
    [{ machine: "m-2", serial: "S2" }, "intervene"],
  ])("whose system shows the token but %j fails", async (change, disposition) => {
    const { can } = world(booted(stamp(change)));
    await expect(benchOf("repave", { image: "ubuntu" }, can).probe(evidence)).rejects.toMatchObject({ disposition });
  });

  test("is known by its serial number when the machine was registered under another name", async () => {
    const { can } = world(booted(stamp({ machine: "other-name" })));
    expect(await benchOf("repave", { image: "ubuntu" }, can).probe(evidence)).toMatchObject({ state: "done" });
  });

  test("with the token of another order is none of ours", async () => {
    const { can } = world(booted(stamp({ token: "t0" })));
    await expect(benchOf("repave", { image: "ubuntu" }, can).probe(evidence)).rejects.toThrow(
      "not from this installation",
    );
  });

  describe("on a BMC that keeps the medium as boot source for every boot", () => {
    const at = (minute: number) => new Date(minute * 60_000);
    const accepted = { receipt: { restartedAt: at(0).toISOString() } };
    const nothing = { lastReset: null, progress: "unknown" } as const;
    const probe = async (told: Told, around: object, before: object = {}, override: "once" | "always" = "always") => {
      const { can, calls } = world(undefined, override, told);
      const untold = told.lastReset === null ? { ...evidence, lastReset: null } : evidence;
      await benchOf("repave", { image: "ubuntu" }, can, { now: at(0), ...around }).probe({ ...untold, ...before });
      return calls;
    };

    test("has it cleared as soon as the machine, which ran before, is seen to boot after its reset", async () => {
      expect(await probe({}, accepted)).toEqual(["clearBootOverride"]);
      expect(await probe({}, accepted, {}, "once")).toEqual([]);
      expect(await probe({ lastReset: "r1" }, { ...accepted, now: at(9) })).toEqual([]);
    });

    test.each([
      ["running", "running"],
      ["running", "off"],
      ["booting", "booting"],
      ["booting", undefined],
    ] as const)("does not believe %s after %s, which may be of the boot before", async (progress, before) => {
      expect(await probe({ progress }, accepted, { progress: before })).toEqual([]);
      expect(await probe({ progress }, { ...accepted, now: at(3) }, { progress: before })).toEqual([
        "clearBootOverride",
      ]);
    });

    test("does not go by what the BMC says of a boot, where it does not tell of the reset", async () => {
      expect(await probe({ lastReset: null }, { ...accepted, now: at(1) })).toEqual([]);
    });

    test("has it cleared in time where the BMC tells nothing", async () => {
      expect(await probe(nothing, { ...accepted, now: at(2.9) })).toEqual([]);
      expect(await probe(nothing, { ...accepted, now: at(3) })).toEqual(["clearBootOverride"]);
    });

    test.each(["starting", "off"] as const)(
      "leaves it while the machine has yet to boot (%s), as large ones do for longer than three minutes",
      async (progress) => {
        expect(await probe({ progress }, { ...accepted, now: at(14.9) })).toEqual([]);
        // A word of the register that nobody renews keeps it no longer.
        expect(await probe({ progress }, { ...accepted, now: at(15) })).toEqual(["clearBootOverride"]);
      },
    );

    test("has it cleared as soon as the machine was seen to leave its self-test, whatever the BMC said before", async () => {
      const { can } = world(undefined, "always", { progress: "starting" });
      const bench = benchOf("repave", { image: "ubuntu" }, can, { now: at(1), ...accepted });
      const { receipt } = readProbe(await bench.probe({ ...evidence, progress: "unknown" }));
      expect(receipt).toEqual({ ...accepted.receipt, selfTestSeen: true });
      const left = { receipt: receipt ?? {}, now: at(1) };
      expect(await probe({ progress: "running" }, left, { progress: "unknown" })).toEqual(["clearBootOverride"]);
      expect(await probe({ progress: "booting" }, left, { progress: "unknown" })).toEqual(["clearBootOverride"]);
      expect(await probe({ progress: "unknown" }, left, { progress: "unknown" })).toEqual([]);
      // What it said before the restart as well may be an old word.
      expect(readProbe(await bench.probe({ ...evidence, progress: "starting" }))).not.toHaveProperty("receipt");
      expect(readProbe(await bench.probe({ ...evidence, lastReset: "r2" }))).not.toHaveProperty("receipt");
    });

    test("waits for the word of an installer that calls home, and for no longer than it may take to say it", async () => {
      const seeded = (format: string) => ({ seed: { format, url: "http://seed" } });
      expect(await probe(nothing, { ...accepted, now: at(14.9) }, seeded("autoinstall"))).toEqual([]);
      expect(await probe(nothing, { ...accepted, now: at(15) }, seeded("autoinstall"))).toEqual(["clearBootOverride"]);
      expect(await probe(nothing, { ...accepted, now: at(3) }, seeded("ignition"))).toEqual(["clearBootOverride"]);
    });

    test.each([null, "b1"])(
      "has it cleared in time where it is not even known whether the BMC heard of the restart (boot before: %s)",
      async (bootId) => {
        const announced = { actingAt: at(0) };
        expect(await probe(nothing, { ...announced, now: at(4.9) }, { bootId })).toEqual([]);
        expect(await probe(nothing, { ...announced, now: at(5) }, { bootId })).toEqual(["clearBootOverride"]);
        expect(await probe(nothing, { ...announced, now: at(5), hasNotBegun: true }, { bootId })).toEqual([]);
        expect(await probe(nothing, { now: at(5) }, { bootId })).toEqual([]);
      },
    );

    test("has it cleared at once where the installer says that it has begun", async () => {
      const said = { installerSeen: installerMark(evidence.token) };
      expect(await probe(nothing, said)).toEqual(["clearBootOverride"]);
      // Whoever reports before the machine has booted takes no boot source away that is yet to be read.
      expect(await probe(nothing, said, {}, "once")).toEqual([]);
    });

    test("writes down that the installer may restart the machine, once that does not lead to the medium again", async () => {
      const mark = installerMark(evidence.token);
      const { can } = world(undefined, "always");
      const probed = (boot: object, more: object = {}) =>
        benchOf(
          "repave",
          { image: "ubuntu" },
          { ...can, boot: { ...can.boot, ...boot } },
          {
            ...{ installerSeen: mark, ...accepted },
            ...more,
          },
        ).probe(evidence);
      const free = { restartedAt: accepted.receipt.restartedAt, bootSourceFreeFor: mark };
      expect(await probed({})).toMatchObject({ state: "in_progress", receipt: free });
      // Neither a BMC that refuses nor one that is silent leads to that.
      const refuses = async () => {
        throw new DeviceFailure("refused_by_device", "bmc", "no");
      };
      expect(await probed({ clearBootOverride: refuses })).not.toHaveProperty("receipt");
      expect(await probed({ readBootOverride: unreachable })).not.toHaveProperty("receipt");
      // Once is enough.
      expect(await probed({ clearBootOverride: refuses }, { receipt: free })).toMatchObject({ state: "in_progress" });
    });

    test("goes on, and says so, where it cannot be cleared", async () => {
      const { can } = world(undefined, "always");
      const clearBootOverride = async () => {
        throw new DeviceFailure("refused_by_device", "bmc", "no");
      };
      const bench = benchOf("repave", { image: "ubuntu" }, { ...can, boot: { ...can.boot, clearBootOverride } });
      expect(await bench.probe(evidence)).toMatchObject({
        state: "in_progress",
        message: expect.stringContaining("installs again at each boot until it is ejected: no"),
      });
    });
  });

  test("keeps when the BMC accepted the restart", async () => {
    const { can } = world(undefined);
    const bench = benchOf("repave", { image: "ubuntu" }, can, { now: new Date(5) });
    expect(await bench.act(evidence)).toEqual({ receipt: { restartedAt: new Date(5).toISOString() } });
  });

  test("is done, and undone, with what the BMC keeps", async () => {
    const { can } = world(booted(stamp()));
    const keeping = { ...can, imaging: { ...can.imaging, cleanUp: async () => "the BMC keeps its drive" } };
    const bench = benchOf("repave", { image: "ubuntu" }, keeping);
    expect(await bench.probe(evidence)).toMatchObject({
      state: "done",
      message: expect.stringContaining("; the BMC keeps its drive"),
    });
    expect(await bench.undo(evidence)).toEqual({ stays: "the BMC keeps its drive" });
  });

  test("goes on while somebody keeps us out, as the system of before and an installer may, and says so", async () => {
    const { can } = world(undefined);
    const readFile = async () => {
      throw new DeviceFailure("credentials_rejected", "bmc", "10.0.0.1 accepts none of our keys");
    };
    const bench = benchOf("repave", { image: "ubuntu" }, { ...can, exec: { readFile } });
    expect(await bench.before()).toMatchObject({ bootId: null, lastReset: "r2" });
    expect(await bench.probe(evidence)).toEqual({
      state: "in_progress",
      message: expect.stringContaining("keeps us out, which an installer may: 10.0.0.1 accepts none of our keys"),
      cause: { code: "install_failed", facts: { progress: expect.any(String) } },
    });
  });

  test("is unknown while neither the system nor the BMC answers", async () => {
    const { can } = world(undefined);
    const silent = { ...can, system: { readBoot: unreachable } };
    expect(await benchOf("repave", { image: "ubuntu" }, silent).probe(evidence)).toMatchObject({ state: "unknown" });
  });

  test("is refused where only a password could sign in to the new system", async () => {
    const { can } = world(undefined);
    const ssh = async () => ({ ...anSsh, credentials: { password: "secret" } });
    await expect(benchOf("repave", { image: "ubuntu" }, can, { targets: { ssh } }).before()).rejects.toMatchObject({
      disposition: "fail",
      message: expect.not.stringContaining("secret"),
    });
  });
});

// biome-ignore format: a table is read by its columns
test.each([
  // system now   reset now   medium in, armed   before: boot, reset   expected
  ["b1",          "r1",       true,  true,       "b1", "r1",           "not_done"],
  ["b1",          "r2",       true,  true,       "b1", "r1",           "in_progress"],
  [undefined,     "r2",       true,  false,      "b1", "r1",           "in_progress"],
  [undefined,     "r2",       false, false,      "b1", "r1",           "in_progress"],
  [undefined,     "r1",       true,  true,       "b1", "r1",           "not_done"],
  ["b2",          "r2",       true,  false,      "b1", "r1",           "failed"],
  // A BMC that does not tell of resets.
  ["b1",          null,       true,  true,       "b1", null,           "not_done"],
  [undefined,     null,       true,  true,       "b1", null,           "in_progress"],
  [undefined,     null,       false, false,      "b1", null,           "not_done"],
  ["b2",          null,       true,  false,      "b1", null,           "failed"],
  // And a machine that was down before.
  [undefined,     null,       true,  true,       null, null,           "not_done"],
  [undefined,     null,       true,  false,      null, null,           "in_progress"],
  // Whose restart was accepted, by a BMC that keeps the override for every boot.
  [undefined,     null,       true,  true,       null, null,           "in_progress", true],
  [undefined,     null,       false, false,      null, null,           "not_done",    true],
  ["b1",          null,       true,  true,       "b1", null,           "not_done",    true],
] as const)("system %s, reset %s, medium in: %s, armed: %s, after boot %s and reset %s is %s",
  (bootId, lastReset, inserted, armed, bootBefore, resetBefore, expected, ...[wasAccepted]) => {
    const look = () => {
      try {
        return readProbe(progressOfInstall({ evidence: { ...evidence, bootId: bootBefore, lastReset: resetBefore }, bootId, lastReset, imaging: { inserted, armed }, doing: "booting", wasAccepted: wasAccepted === true })).state;
      } catch (error) {
        return error instanceof StepFailure ? "failed" : error;
      }
    };
    expect(look()).toBe(expected);
  });

test("a stamp without a token is not from us", () => {
  expect(parseStamp(undefined)).toBeUndefined();
  expect(parseStamp("image=x\ndigest=y\n")).toBeUndefined();
  expect(parseStamp("token = abc\nnonsense\ndigest=a=b\n")).toMatchObject({ token: "abc", digest: "a=b" });
});
