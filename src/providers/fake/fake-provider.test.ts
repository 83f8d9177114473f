import { describe, expect, test } from "vitest";
import { describeBootDevice } from "../../capabilities/conformance/boot-device.ts";
import { describeCluster } from "../../capabilities/conformance/cluster.ts";
import { describeComputerSystem } from "../../capabilities/conformance/computer-system.ts";
import { aCall, type DeviceTrouble } from "../../capabilities/conformance/device-bench.ts";
import { describeImaging } from "../../capabilities/conformance/imaging.ts";
import { describeLocator } from "../../capabilities/conformance/locator.ts";
import type { MachineBench } from "../../capabilities/conformance/machine-bench.ts";
import { describePowerControl } from "../../capabilities/conformance/power-control.ts";
import { describeRemoteExec } from "../../capabilities/conformance/remote-exec.ts";
import { describeReset } from "../../capabilities/conformance/reset.ts";
import { describeSensors } from "../../capabilities/conformance/sensors.ts";
import { describeVitals } from "../../capabilities/conformance/vitals.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { FAKE_PASSWORD, fakeBmc, fakeCluster, fakeSsh } from "./fake-places.ts";
import { createFakeProvider } from "./fake-provider.ts";
import { FAKE_FAILURES } from "./fake-speed.ts";

/** Nothing lies between us and a fake machine that could go wrong. */
const NO_TROUBLES: readonly DeviceTrouble[] = [];

async function aBench(): Promise<MachineBench> {
  const provider = createFakeProvider({ speed: "instant" });
  const machine = provider.world.machine("m-1");
  return {
    provider,
    target: fakeBmc("m-1"),
    cannot: ["fall_ill", "log_what_happens"],
    serial: machine.serial,
    systemUuid: machine.systemUuid,
    macs: [machine.mac],
    mediumLocation: "https://images.example/ubuntu.iso",
    async realPower() {
      const { power } = machine;
      if (power === "unknown") throw new Error("a fake machine knows its power");
      return power;
    },
    switchAtRack: async (power) => machine.switchAtRack(power),
    commandsAccepted: async () => machine.counts.commands,
    requestsReceived: async () => machine.counts.requests,
    restarts: async () => machine.counts.restarts,
    realOverride: async () => machine.override,
    realLocator: async () => machine.locator,
    realMedium: async () => machine.medium?.location ?? null,
    async cause() {},
    async putRight() {},
  };
}

describe("fake", () => {
  describePowerControl("a fake machine", aBench, NO_TROUBLES);
  describeReset("a fake machine", aBench, NO_TROUBLES);
  describeBootDevice("a fake machine", aBench, NO_TROUBLES);
  describeImaging("a fake machine", aBench, NO_TROUBLES);
  describeLocator("a fake machine", aBench, NO_TROUBLES);
  describeComputerSystem("a fake machine", aBench, NO_TROUBLES);
  describeSensors("a fake machine", aBench, NO_TROUBLES);
  describeVitals("a fake machine", aBench, NO_TROUBLES);

  describeRemoteExec("a fake machine", async () => {
    const provider = createFakeProvider({ speed: "instant" });
    const { hostKey, systemUuid } = provider.world.machine("m-1");
    return {
      provider,
      target: { ...fakeSsh("m-1"), hostKey },
      file: { path: "/sys/class/dmi/id/product_uuid", text: `${systemUuid}\n` },
      foreign: { privateKey: "some\nother key\n", hostKey: "ssh-ed25519 AAAA" },
      nowhere: { address: "m-1", port: 22 },
    };
  });

  describeCluster("fake machines", async () => {
    const provider = createFakeProvider({ speed: "default" });
    const machine = provider.world.machine("m-1");
    return {
      provider,
      target: fakeCluster("c1"),
      identity: { systemUuid: machine.systemUuid, serial: null, addresses: [] },
      async join() {
        const { endpoint } = await provider.can.cluster.mintJoin(
          fakeCluster("c1"),
          { id: "abcdef", lifetime: seconds(60) },
          aCall(),
        );
        const env = { JOIN_ENDPOINT: endpoint, MILLWRIGHT_MARK: "1", MILLWRIGHT_SCRIPT: "kubeadm join\n" };
        await provider.can.exec.run(fakeSsh("m-1"), { script: "", env, timeout: seconds(1) }, aCall());
      },
      goDown: async () => machine.switchAtRack("off"),
      nowhere: { apiUrl: "https://nowhere.example:6443" },
    };
  });
});

test("runs no script but the simplest, and lets every other succeed", async () => {
  const { can } = createFakeProvider({ speed: "instant" });
  const run = (script: string) =>
    can.exec
      .run(fakeSsh("m-1"), { script, env: {}, timeout: seconds(1) }, aCall())
      .then(({ code, output }) => [code, output]);
  expect(await run("echo one\necho two\nexit 3\necho three\n")).toEqual([3, "one\ntwo\n"]);
  expect(await run('if [ -e /etc/passwd ]; then\n  exit 1\nfi\necho "$(id)"\n')).toEqual([0, ""]);
});

test.each(FAKE_FAILURES.filter((each) => each !== "join" && each !== "verify"))(
  "fails at %s when it is set to, and says that it was",
  async (failure) => {
    const { can } = createFakeProvider({ speed: "instant", failures: [failure] });
    const bmc = fakeBmc("m-1");
    const order = { location: "https://images.example/a.iso", cloudInitRef: "", token: "t" };
    const asks = {
      netboot: () => can.boot.setBootOverride(bmc, "pxe", aCall()),
      reboot: () => can.reset.resetPower(bmc, "forced", aCall()),
      repave: () => can.imaging.start(bmc, order, aCall()),
      rma: () => can.power.setPower(bmc, "off", aCall()),
    };
    await expect(asks[failure]()).rejects.toThrow(`set to fail at ${failure}`);
  },
);

test("ends a wait as soon as it is told to stop", async () => {
  const { can } = createFakeProvider({ speed: "slow" });
  const stop = new AbortController();
  const asked = can.boot.setBootOverride(fakeBmc("m-1"), "pxe", aCall({ signal: stop.signal }));
  stop.abort();
  await expect(asked).rejects.toThrow("was stopped");
  expect(await can.boot.readBootOverride(fakeBmc("m-1"), aCall())).toMatchObject({ source: "none" });
});

test("never says its password, which opens nothing else anyway", async () => {
  const { can } = createFakeProvider({ speed: "instant" });
  await expect(can.power.readPower({ ...fakeBmc("m-1"), port: 443 }, aCall())).rejects.not.toThrow(FAKE_PASSWORD);
});
