import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Capabilities } from "../../capabilities/provider.ts";
import { seconds } from "../../kernel/time/duration.ts";
import type { FakeMachine } from "./fake-machine.ts";
import { FAKE_PASSWORD } from "./fake-places.ts";
import type { FakeWorld } from "./fake-world.ts";

const COMMAND_SETTLES = seconds(20);
const NO_OVERRIDE = { source: "none", lasts: "once" } as const;

type FromOutside = Pick<
  Capabilities,
  "power" | "reset" | "boot" | "imaging" | "system" | "locator" | "sensors" | "vitals"
>;

/** What a fake machine can be asked from outside. */
export function createFakeBmc(world: FakeWorld): FromOutside {
  const open = (target: BmcTarget, call: CallContext): FakeMachine => {
    const machine = world.ask(target, call);
    if (target.password === FAKE_PASSWORD) return machine;
    throw new DeviceFailure(
      "credentials_rejected",
      "bmc",
      `wrong credentials: fake machine ${machine.id} does not accept them`,
    );
  };
  return {
    power: {
      readPower: async (target, call) => open(target, call).power,
      async setPower(target, desired, call, told) {
        const machine = open(target, call);
        const { power } = machine;
        if (power === desired || power === `powering_${desired}`) return { commanded: false };
        if (told && Math.abs(world.clock.now().getTime() - told.at.getTime()) < COMMAND_SETTLES)
          return { commanded: false };
        if (desired === "off") world.failIfTold("rma");
        machine.turn(desired);
        return { commanded: true };
      },
    },
    reset: {
      async resetPower(target, _mode, call) {
        const machine = open(target, call);
        world.failIfTold("reboot");
        machine.restart();
      },
    },
    boot: {
      readBootOverride: async (target, call) => open(target, call).override,
      async setBootOverride(target, source, call) {
        const machine = open(target, call);
        world.failIfTold("netboot");
        await world.wait("netboot", call);
        machine.override = { source, lasts: "once" };
      },
      async clearBootOverride(target, call) {
        open(target, call).override = NO_OVERRIDE;
      },
    },
    imaging: {
      checkSeed: async (target, call) => void open(target, call),
      async prepare(target, order, call) {
        const machine = open(target, call);
        machine.medium = order;
        machine.override = { source: "cd", lasts: "once" };
      },
      async start(target, _order, call) {
        const machine = open(target, call);
        world.failIfTold("repave");
        machine.restart();
      },
      async readProgress(target, { token }, call) {
        const { medium, override } = open(target, call);
        const inserted = medium?.token === token;
        return { inserted, armed: inserted && override.source === "cd" };
      },
      async cleanUp(target, { token }, call) {
        const machine = open(target, call);
        if (machine.medium?.token === token) machine.eject();
        return undefined;
      },
    },
    system: {
      async identify(target, call) {
        const { serial, systemUuid, mac } = open(target, call);
        return { serial, vendor: "Millwright", model: "fake machine", systemUuid, macs: [mac] };
      },
      async readBoot(target, call) {
        const machine = open(target, call);
        const { power, bootId, lastReset } = machine;
        const off = power === "off" || power === "powering_off";
        return { lastReset, progress: off ? "off" : bootId === undefined ? "booting" : "running" };
      },
      async readFirmware(target, call) {
        open(target, call);
        return [{ name: "BMC", version: "1.0.0" }];
      },
    },
    locator: {
      readLocator: async (target, call) => open(target, call).locator,
      async setLocator(target, light, call) {
        open(target, call).locator = light;
      },
    },
    vitals: {
      async readVitals(target, call) {
        const { serial, systemUuid, power } = open(target, call);
        return { serial, systemUuid, power, health: "ok", ailments: [] };
      },
    },
    sensors: {
      async readHealth(target, call) {
        const { power } = open(target, call);
        return { status: "ok", readings: [{ name: "power draw", value: power === "off" ? 0 : 400, unit: "W" }] };
      },
      async readLog(target, call) {
        open(target, call);
        return [];
      },
    },
  };
}
