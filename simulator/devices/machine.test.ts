import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSeededValues } from "../seeded-values.ts";
import { createSimulatedClock } from "../simulated-clock.ts";
import { buildSite } from "../site.ts";
import { firmwareMemory } from "../testing/firmware-memory.ts";
import { Machine } from "./machine.ts";
import { BOOT_MS, INSTALL_MS, JOIN_MS, POST_MS, SHUTDOWN_MS } from "./machine-life.ts";
import { NO_OVERRIDE, RESET_TYPES } from "./machine-state.ts";
import { POWER_CHANGE_MS } from "./power.ts";

const honest = { is: "honest" } as const;
const UP_MS = POST_MS + BOOT_MS;

/** A machine whose time is ours; `reborn` is the same machine as a new process finds it. */
function machineOnTheBench(entry: Record<string, unknown> = {}) {
  const seeded = createSeededValues(1);
  const site = buildSite({ racks: [{ shelves: 0, machines: [entry] }] }, seeded);
  const [spec] = site.machines;
  const [image] = site.images;
  if (spec === undefined || image === undefined) throw new Error("the site has no machine");
  const stored = new Map<string, string>();
  const failing = { install: false };
  let real = 1_000_000;
  const clock = createSimulatedClock({ realAt: real, simulatedAt: real, speed: 1 }, () => real);
  const surroundings = {
    clock,
    seeded,
    load: (id: string) => (stored.has(id) ? (JSON.parse(stored.get(id) as string) as unknown) : undefined),
    save: (id: string, state: unknown) => stored.set(id, JSON.stringify(state)),
    isFaultPresent: (id: string) => id === "fault-1",
    firmware: firmwareMemory(),
    images: site.images,
    pxeImage: site.pxe.image,
    installFails: () => failing.install,
    hangsInPost: () => false,
    hasBootServer: () => false,
  };
  return {
    machine: new Machine(spec, surroundings),
    reborn: () => new Machine(spec, surroundings),
    pass: (ms: number) => {
      real += ms;
    },
    clock,
    image,
    failing,
  };
}

const once = (target: "Cd" | "Pxe" | "BiosSetup" | "Hdd") => ({ ...NO_OVERRIDE, enabled: "Once", target }) as const;

describe("the power of a machine", () => {
  test("takes five seconds to go, and with it goes the operating system", () => {
    const { machine, pass } = machineOnTheBench();
    machine.reset("ForceOff", honest);
    pass(POWER_CHANGE_MS - 1);
    expect([machine.read().power, machine.upBootId]).toEqual(["powering_off", expect.any(String)]);
    pass(1);
    expect([machine.read().power, machine.upBootId, machine.state.life.is]).toEqual(["off", undefined, "off"]);
    expect(machine.read().meter.input_watts).toBeLessThan(50);
  });

  test("comes on, and three minutes later the operating system is up with a boot id of its own", () => {
    const { machine, pass } = machineOnTheBench({ power: "off" });
    machine.reset("On", honest);
    pass(POWER_CHANGE_MS + UP_MS - 1);
    expect([machine.read().power, machine.upBootId, machine.state.life.is]).toEqual(["on", undefined, "booting"]);
    pass(1);
    expect(machine.upBootId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    expect(machine.effects).toMatchObject({ power_changes: 1, boots: 1 });
  });

  test.each([
    ["ForceRestart", UP_MS, 0],
    ["GracefulRestart", SHUTDOWN_MS + UP_MS, 0],
    ["PowerCycle", 2 * POWER_CHANGE_MS + UP_MS, 2],
  ] as const)("%s is up again after %d ms, with another boot id", (type, duration, changes) => {
    const { machine, pass } = machineOnTheBench();
    const before = machine.upBootId;
    machine.reset(type, honest);
    pass(duration - 1);
    expect(machine.upBootId).toBeUndefined();
    pass(1);
    expect(machine.upBootId).not.toBe(before);
    expect(machine.effects).toMatchObject({ boots: 1, resets: 1, power_changes: changes });
  });

  test("a graceful shutdown takes its time and ends in off", () => {
    const { machine, pass } = machineOnTheBench();
    machine.reset("GracefulShutdown", honest);
    expect([machine.upBootId, machine.read().power]).toEqual([undefined, "on"]);
    pass(SHUTDOWN_MS);
    expect(machine.read().power).toBe("off");
  });

  test("a hung system does not hear a graceful command; a forced one helps", () => {
    const { machine, pass } = machineOnTheBench();
    expect(machine.crash()).toBe(true);
    expect(machine.crash()).toBe(false);
    machine.reset("GracefulRestart", honest);
    machine.reset("GracefulShutdown", honest);
    pass(10 * UP_MS);
    expect(machine.state.life).toEqual({ is: "hung", why: "kernel_panic" });
    machine.reset("ForceRestart", honest);
    pass(UP_MS);
    expect(machine.state.life.is).toBe("running");
  });

  test("while it lies it reports what was wanted, and its draw tells the truth", () => {
    const { machine, pass } = machineOnTheBench();
    machine.reset("ForceOff", { is: "lying", faultId: "fault-1" });
    pass(POWER_CHANGE_MS);
    expect(machine.read()).toMatchObject({ power: "on", reported: "off" });
    expect(machine.read().meter.input_watts).toBeGreaterThan(200);
    machine.reset("ForceOff", { is: "idle" });
    pass(POWER_CHANGE_MS);
    expect(machine.effects).toMatchObject({ power_off_commands: 2, power_changes: 0 });
  });

  test("whatever is commanded and whenever its process dies, a new process sees the same", () => {
    const step = fc.record({
      type: fc.constantFrom(...RESET_TYPES),
      target: fc.constantFrom("Hdd", "Cd", "Pxe", "BiosSetup"),
      wait: fc.integer({ min: 0, max: INSTALL_MS + 2 * UP_MS }),
      crash: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
        const { machine, reborn, pass, image } = machineOnTheBench();
        machine.insertMedia({ image: image.url, userName: null, writeProtected: true });
        let present = machine;
        for (const { type, target, wait, crash } of steps) {
          present.setBoot(once(target));
          present.reset(type, honest);
          pass(wait);
          if (crash) present = reborn();
        }
        expect(reborn().state).toEqual(present.state);
        const { boots, installs_started, resets } = present.effects;
        expect(installs_started).toBeLessThanOrEqual(resets);
        expect(boots).toBeLessThanOrEqual(resets + installs_started);
      }),
      { numRuns: 60 },
    );
  });
});

describe("the boot of a machine", () => {
  test("installs from virtual media once, and boots from its disk ever after", () => {
    const { machine, pass, image } = machineOnTheBench({ image: null, power: "off" });
    machine.insertMedia({
      image: `http://mirror.test/${image.url.split("/").at(-1)}?token=abc&cloud_init=cloud-init%2Fworker-node`,
      userName: null,
      writeProtected: true,
    });
    machine.setBoot(once("Cd"));
    machine.reset("On", honest);
    pass(POWER_CHANGE_MS + POST_MS);
    expect(machine.state.life).toMatchObject({ is: "installing", token: "abc", source: "virtual_media" });
    expect(machine.state.boot).toMatchObject({ enabled: "Disabled", target: "None" });
    pass(INSTALL_MS - 1);
    expect(machine.state.os).toBeNull();
    pass(1 + UP_MS);
    expect(machine.state.life.is).toBe("running");
    expect(machine.state.os).toMatchObject({
      image: image.ref,
      digest: image.digest,
      token: "abc",
      cloudInit: "cloud-init/worker-node",
      number: 1,
    });
    machine.reset("ForceRestart", honest);
    pass(UP_MS);
    expect(machine.effects).toMatchObject({ installs_started: 1, installs: 1, boots: 2 });
  });

  test("installs at each boot while the override is continuous", () => {
    const { machine, pass } = machineOnTheBench();
    machine.setBoot({ ...NO_OVERRIDE, enabled: "Continuous", target: "Pxe" });
    machine.reset("ForceRestart", honest);
    pass(3 * (POST_MS + INSTALL_MS));
    expect(machine.effects).toMatchObject({ installs: 3, boots: 0 });
    pass(1_000 * (POST_MS + INSTALL_MS));
    expect(machine.state.life.is).not.toBe("running");
  });

  test("a network boot installs what was arranged for the machine, with its token", () => {
    const { machine, pass, image } = machineOnTheBench();
    machine.setNetboot({ image: image.ref, cloudInit: "c", token: "t" });
    machine.setBoot(once("Pxe"));
    machine.reset("PowerCycle", honest);
    pass(2 * POWER_CHANGE_MS + POST_MS + INSTALL_MS + UP_MS);
    expect(machine.state.os).toMatchObject({ token: "t", cloudInit: "c", source: "pxe" });
  });

  test("an installation that fails leaves a hung machine with an empty disk", () => {
    const { machine, pass, failing } = machineOnTheBench();
    failing.install = true;
    machine.setBoot(once("Pxe"));
    machine.reset("ForceRestart", honest);
    pass(POST_MS + INSTALL_MS);
    expect(machine.state).toMatchObject({ os: null, life: { is: "hung", why: "install_failed" } });
    machine.reset("ForceRestart", honest);
    pass(POST_MS);
    expect(machine.state.life).toEqual({ is: "hung", why: "no_boot_device" });
    expect(machine.effects).toMatchObject({ installs_started: 1, installs: 0, installs_failed: 1 });
  });

  test("media that is missing or has nothing to boot is passed over for the disk", () => {
    const { machine, pass } = machineOnTheBench();
    machine.insertMedia({ image: "http://mirror.test/holiday.iso", userName: null, writeProtected: true });
    machine.setBoot(once("Cd"));
    machine.reset("ForceRestart", honest);
    pass(UP_MS);
    expect(machine.state.life.is).toBe("running");
    expect(machine.events.map(({ message }) => message).join()).toContain("nothing to boot");
  });

  test("an empty disk hangs, and so does the firmware's setup", () => {
    const empty = machineOnTheBench({ image: null });
    expect(empty.machine.state.life).toEqual({ is: "hung", why: "no_boot_device" });
    const { machine, pass } = machineOnTheBench();
    machine.setBoot(once("BiosSetup"));
    machine.reset("ForceRestart", honest);
    pass(UP_MS);
    expect(machine.state.life).toEqual({ is: "hung", why: "firmware_setup" });
  });
});

describe("a machine that joins a cluster", () => {
  test("is in it after a minute, leaves it with the next installation, and never joins by a reboot", () => {
    const { machine, pass } = machineOnTheBench();
    machine.beginJoin("c", false);
    pass(JOIN_MS - 1);
    expect(machine.state.kubelet).toBeNull();
    pass(1);
    expect(machine.state.kubelet).toEqual({ cluster: "c", active: true });
    machine.reset("ForceRestart", honest);
    pass(UP_MS);
    expect(machine.state.kubelet).toEqual({ cluster: "c", active: true });
    machine.setBoot(once("Pxe"));
    machine.reset("ForceRestart", honest);
    pass(POST_MS + INSTALL_MS + UP_MS);
    expect(machine.state.kubelet).toBeNull();
    expect(machine.effects).toMatchObject({ joins_started: 1, joins: 1 });
  });

  test("a reset in the middle loses the join", () => {
    const { machine, pass } = machineOnTheBench();
    machine.beginJoin("c", false);
    pass(JOIN_MS / 2);
    machine.reset("ForceRestart", honest);
    pass(UP_MS + JOIN_MS);
    expect(machine.state).toMatchObject({ kubelet: null, joining: null, effects: { joins: 0 } });
  });
});
