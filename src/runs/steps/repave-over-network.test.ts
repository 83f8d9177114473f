import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  aMachine,
  anImage,
  benchOf,
  type Fakes,
  fakeSystem,
  unreachable,
} from "../../../test/support/runs/step-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { NetInstallSeen } from "../../capabilities/net-install.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";

const evidence = {
  token: "t1",
  digest: anImage.digest,
  location: "ubuntu-2404",
  kind: "netboot",
  proof: "token",
  bootId: "b1",
  lastReset: "r1",
};
const stamp = `image=ubuntu\ndigest=${anImage.digest}\nmachine=m-1\nserial=S1\ntoken=t1\n`;

interface World {
  readonly install?: Partial<NetInstallSeen>;
  /** Absent: nobody answers over SSH. */
  readonly bootId?: string;
  readonly stamp?: string;
  readonly lastReset?: string | null;
  readonly override?: { readonly source: "pxe" | "http" | "none"; readonly lasts: "once" | "always" };
  readonly machine?: Machine;
  /** Of the action, by the process that announced it. */
  readonly hasNotBegun?: boolean;
  readonly receipt?: JsonObject;
  readonly can?: Fakes;
}

function world({ install = {}, bootId, stamp: text = "", lastReset = "r2", override, can, ...around }: World = {}) {
  const calls: string[] = [];
  const note = (name: string) => async () => void calls.push(name);
  const files = bootId && { "/etc/millwright-image": text, "/proc/sys/kernel/random/boot_id": `${bootId}\n` };
  const bench = benchOf(
    "repave",
    { image: "ubuntu" },
    {
      exec: fakeSystem(() => files || undefined),
      system: { readBoot: async () => ({ lastReset, progress: "booting" }) },
      boot: {
        readBootOverride: async () => override ?? { source: "none", lasts: "once" },
        setBootOverride: async (_, source) => void calls.push(`boot ${source}`),
        clearBootOverride: note("clear"),
      },
      reset: { resetPower: async (_, mode) => void calls.push(`reset ${mode}`) },
      netInstall: {
        check: async ({ runId, machineId, workflowId }) => void calls.push(`check ${runId} ${machineId} ${workflowId}`),
        read: async () => ({ state: "absent", message: "", tokenShown: false, awaitsProof: false, ...install }),
      },
      ...can,
    },
    around,
  );
  return { bench, calls };
}
const probe = (given: World, change: object = {}) => world(given).bench.probe({ ...evidence, ...change });

describe("an installation over the network", () => {
  test("by an installer that reads a seed and reports nothing is proved by the system that it leaves", async () => {
    const bySeed = { proof: "ssh", seed: { format: "nocloud", url: "" } };
    const installing = { state: "installing", message: "installing, 0 %" } as const;
    expect(await probe({ install: installing }, bySeed)).toMatchObject({
      state: "in_progress",
      message: expect.stringContaining("installing, 0 %; the new system has not shown itself"),
    });
    expect(await probe({ install: installing, bootId: "b2", stamp }, bySeed)).toMatchObject({
      state: "done",
      effects: [expect.objectContaining({ cause: "repave_proven" })],
    });
    // Without a seed its installer reports, and is waited for.
    expect(await probe({ install: installing, bootId: "b2", stamp }, { proof: "ssh" })).toMatchObject({
      state: "in_progress",
    });
  });

  test("is ordered before the machine is restarted, which then boots from the network", async () => {
    const { bench, calls } = world();
    expect(await bench.announces(evidence)).toEqual([
      { type: "require", kind: "machine", id: "m-1" },
      {
        type: "order",
        kind: "install",
        id: "m-1",
        order: {
          machineId: "m-1",
          runId: "run-1",
          orderId: createHash("sha256").update("t1").digest("hex"),
          stamp,
          workflowId: "ubuntu-2404",
          digest: anImage.digest,
          mac: "02:00:00:00:00:01",
        },
      },
    ]);
    await bench.act(evidence);
    expect(calls).toEqual(["check run-1 m-1 ubuntu-2404", "boot pxe", "reset forced"]);
  });

  test("boots over HTTP where that is armed already", async () => {
    const { bench, calls } = world({ override: { source: "http", lasts: "once" } });
    await bench.act(evidence);
    expect(calls).toEqual(["reset forced"]);
  });

  test("from a medium orders nothing", async () => {
    expect(await world().bench.announces({ ...evidence, kind: "iso" })).toEqual([]);
  });

  // biome-ignore format: a table is read by its columns
  test.each<readonly [string, World, object, string]>([
    ["nothing is ordered",                                        { install: { state: "absent" } },                                  {},                                  "not_done"],
    ["it is ordered, and the machine was not reset",              { install: { state: "ordered" }, lastReset: "r1", bootId: "b1" },  {},                                  "not_done"],
    ["the machine was reset, and is down",                        { install: { state: "ordered" } },                                 {},                                  "in_progress"],
    ["the BMC does not tell, and who was up is gone",             { install: { state: "ordered" }, lastReset: null },                {},                                  "in_progress"],
    ["the BMC does not tell, and who was up still is",            { install: { state: "ordered" }, lastReset: null, bootId: "b1" },  {},                                  "not_done"],
    ["nobody was up, and the network is still the next source",   { install: { state: "ordered" }, lastReset: null, override: { source: "pxe", lasts: "once" } }, { bootId: null }, "not_done"],
    ["nobody was up, and HTTP is still the next source",          { install: { state: "ordered" }, lastReset: null, override: { source: "http", lasts: "once" } }, { bootId: null }, "not_done"],
    ["nobody was up, and the source is used up",                  { install: { state: "ordered" }, lastReset: null },                { bootId: null },                    "in_progress"],
    ["nobody was up, and the BMC accepted and keeps the source",  { install: { state: "ordered" }, lastReset: null, override: { source: "pxe", lasts: "always" }, receipt: { restartedAt: "t" } }, { bootId: null }, "in_progress"],
    ["nothing tells of a restart that has not begun",             { install: { state: "ordered" }, lastReset: null, hasNotBegun: true }, { bootId: null },             "not_done"],
    ["the script is handed out",                                  { install: { state: "begun" } },                                   {},                                  "in_progress"],
    ["it installs, while an installer answers over SSH",          { install: { state: "installing" }, bootId: "b2" },                {},                                  "in_progress"],
    ["it is complete, and the new system is not up",              { install: { state: "installed", tokenShown: true } },             {},                                  "in_progress"],
    ["it is complete, and who answers is still the one of before", { install: { state: "installed", tokenShown: true }, bootId: "b1" }, {},                               "in_progress"],
    ["it is complete under its token, and the new system is up",  { install: { state: "installed", tokenShown: true }, bootId: "b2" }, {},                                "done"],
    ["it is to prove itself by SSH and shows nothing",            { install: { state: "installed" }, bootId: "b2" },                 { proof: "ssh" },                    "in_progress"],
    ["it is to prove itself by SSH and shows its stamp",          { install: { state: "installed" }, bootId: "b2", stamp },          { proof: "ssh" },                    "done"],
    ["it is complete, and the machine has no SSH",                { install: { state: "installed", tokenShown: true }, machine: aMachine({ ssh: null }) }, {},            "done"],
  ])("when %s", async (_, given, change, state) => {
    expect(await probe(given, change)).toMatchObject({ state });
  });

  test("that is proved pins the host key, takes the boot source back and makes the node active", async () => {
    const { bench, calls } = world({
      install: { state: "installed", tokenShown: true, awaitsProof: true },
      bootId: "b2",
    });
    expect(await bench.probe(evidence)).toMatchObject({
      facts: { sshHostKey: "ssh-ed25519 NEW", bootId: "b2", joinedCluster: null },
      conditions: [{ type: "Provisioned", status: true }],
      effects: [{ type: "move", kind: "install", id: "m-1", cause: "repave_proven" }],
    });
    expect(calls).toEqual(["clear"]);
  });

  test("of a node that is active already leaves it so", async () => {
    expect(await probe({ install: { state: "installed", tokenShown: true }, bootId: "b2" })).toMatchObject({
      effects: [],
    });
  });

  test.each<readonly [string, World, object, object]>([
    [
      "was given up by the node",
      { install: { state: "failed", message: "Disk not found" } },
      {},
      { disposition: "retry", message: "Disk not found" },
    ],
    [
      "came up from another source",
      { install: { state: "ordered" }, bootId: "b2" },
      {},
      { disposition: "retry", message: expect.stringContaining("without having booted from the network") },
    ],
    [
      "was called complete by a stranger",
      { install: { state: "installed" }, bootId: "b2" },
      {},
      { disposition: "fail" },
    ],
    [
      "is of another image",
      { install: { state: "installed" }, bootId: "b2", stamp: stamp.replace(anImage.digest, "sha256:other") },
      { proof: "ssh" },
      { disposition: "fail" },
    ],
    [
      "is on another machine",
      { install: { state: "installed" }, bootId: "b2", stamp: stamp.replace("m-1", "m-2").replace("S1", "S2") },
      { proof: "ssh" },
      { disposition: "intervene" },
    ],
  ])("that %s fails", async (_, given, change, failure) => {
    await expect(probe(given, change)).rejects.toMatchObject(failure);
  });

  test("is over only when the BMC was told to boot as before", async () => {
    const can: Fakes = { boot: { clearBootOverride: unreachable, readBootOverride: unreachable } };
    expect(await probe({ install: { state: "installed", tokenShown: true }, bootId: "b2", can })).toMatchObject({
      state: "unknown",
    });
  });

  test.each(["pxe", "http"] as const)("does not boot from %s for ever where the BMC keeps that", async (source) => {
    const { bench, calls } = world({ install: { state: "installing" }, override: { source, lasts: "always" } });
    await bench.probe(evidence);
    expect(calls).toEqual(["clear"]);
  });

  describe("on a BMC that does not clear its boot source", () => {
    const failing = (code: "refused_by_device" | "protocol" | "unreachable"): Fakes => ({
      boot: {
        readBootOverride: async () => ({ source: "pxe", lasts: "always" }),
        clearBootOverride: async () => {
          throw new DeviceFailure(code, "bmc", "still pxe");
        },
      },
    });
    const complete = { install: { state: "installed", tokenShown: true, awaitsProof: true }, bootId: "b2" } as const;

    test("goes on, and says so", async () => {
      const can = failing("refused_by_device");
      expect(await probe({ install: { state: "installing", message: "writing" }, can })).toMatchObject({
        state: "in_progress",
        message: expect.stringMatching(/^writing; the BMC keeps the network as boot source.*still pxe/),
      });
    });

    test("is done, and says so", async () => {
      expect(await probe({ ...complete, can: failing("refused_by_device") })).toMatchObject({
        state: "done",
        message: expect.stringContaining("the BMC keeps the network as boot source"),
        effects: [{ cause: "repave_proven" }],
      });
    });

    test.each(["protocol", "unreachable"] as const)("is not ordered again for that (%s)", async (code) => {
      const report = await probe({ ...complete, can: failing(code) });
      expect(report).toMatchObject({ state: "unknown", callsPerson: true });
      // The system may be down by then.
      const { receipt } = report;
      expect(await probe({ install: complete.install, ...(receipt && { receipt }) })).toMatchObject({
        state: "done",
        facts: { sshHostKey: "ssh-ed25519 NEW", bootId: "b2" },
      });
    });
  });

  test("needs no SSH where its report is the proof", async () => {
    const token = { ...anImage, kind: "netboot", location: "ubuntu-2404", proof: "token" } as const;
    const noted = await benchOf(
      "repave",
      { image: "ubuntu" },
      { system: { readBoot: async () => ({ lastReset: "r1", progress: "off" }) } },
      { machine: aMachine({ ssh: null }), targets: { image: async () => token } },
    ).before();
    expect(noted).toMatchObject({ kind: "netboot", proof: "token", location: "ubuntu-2404", bootId: null });
  });
});
