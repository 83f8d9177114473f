import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSeededValues } from "../seeded-values.ts";
import { createSimulatedClock } from "../simulated-clock.ts";
import { buildSite } from "../site.ts";
import { firmwareMemory } from "../testing/firmware-memory.ts";
import { MANAGER_RESTART_MS, POWER_CHANGE_MS, type Power } from "./power.ts";
import { PowerShelf } from "./power-shelf.ts";
import type { PowerCommand } from "./powered-device.ts";

const honest = { is: "honest" } as const;
const idle = { is: "idle" } as const;
const lying = { is: "lying", faultId: "fault-1" } as const;

/** A shelf whose time is ours; `reborn` is the same shelf as a new process finds it. */
function shelfOnTheBench(options: { power?: Power; speed?: number } = {}) {
  const seeded = createSeededValues(1);
  const [spec] = buildSite({ racks: [{ shelves: [{ power: options.power ?? "on" }] }] }, seeded).shelves;
  if (spec === undefined) throw new Error("the site has no shelf");
  const stored = new Map<string, string>();
  const presentFaults = new Set(["fault-1"]);
  let real = 1_000_000;
  const clock = createSimulatedClock({ realAt: real, simulatedAt: real, speed: options.speed ?? 1 }, () => real);
  const surroundings = {
    clock,
    seeded,
    load: (id: string) => (stored.has(id) ? (JSON.parse(stored.get(id) as string) as unknown) : undefined),
    save: (id: string, state: unknown) => stored.set(id, JSON.stringify(state)),
    isFaultPresent: (id: string) => presentFaults.has(id),
    firmware: firmwareMemory(),
  };
  return {
    shelf: new PowerShelf(spec, surroundings),
    reborn: () => new PowerShelf(spec, surroundings),
    pass: (ms: number) => {
      real += ms;
    },
    clock,
    presentFaults,
  };
}

describe("power shelf", () => {
  test("takes five seconds to go off, and gives power until then", () => {
    const { shelf, pass } = shelfOnTheBench();
    shelf.command("off", honest);
    pass(POWER_CHANGE_MS - 1);
    expect(shelf.read()).toMatchObject({ power: "powering_off", reported: "powering_off" });
    expect(shelf.read().meter.output_watts).toBeGreaterThan(10_000);
    pass(1);
    expect(shelf.read()).toMatchObject({ power: "off", reported: "off", meter: { output_watts: 0, output_volts: 0 } });
  });

  test("gives no power until it is on", () => {
    const { shelf, pass } = shelfOnTheBench({ power: "off" });
    shelf.command("on", honest);
    expect(shelf.read()).toMatchObject({ power: "powering_on", meter: { output_watts: 0 } });
    pass(POWER_CHANGE_MS);
    expect(shelf.read().power).toBe("on");
    expect(shelf.read().meter.output_volts).toBeGreaterThan(48);
  });

  test("twenty times the speed is twenty times as fast, and a change of speed loses no pending change", () => {
    const { shelf, pass, clock } = shelfOnTheBench({ speed: 20 });
    shelf.command("off", honest);
    pass(200);
    expect(shelf.read().power).toBe("powering_off");
    clock.setSpeed(1);
    pass(999);
    expect(shelf.read().power).toBe("powering_off");
    pass(1);
    expect(shelf.read().power).toBe("off");
  });

  test("a cycle goes through off", () => {
    const { shelf, pass } = shelfOnTheBench();
    shelf.command("cycle", honest);
    pass(POWER_CHANGE_MS);
    expect(shelf.read()).toMatchObject({ power: "powering_on", meter: { output_watts: 0 } });
    pass(POWER_CHANGE_MS);
    expect(shelf.read().power).toBe("on");
    expect(shelf.effects).toMatchObject({ power_cycle_commands: 1, power_changes: 2 });
  });

  test("a command for what is under way is counted and changes nothing", () => {
    const { shelf, pass } = shelfOnTheBench();
    shelf.command("off", honest);
    pass(4_000);
    shelf.command("off", honest);
    pass(1_000);
    expect(shelf.read().power).toBe("off");
    expect(shelf.effects).toMatchObject({ power_off_commands: 2, power_changes: 1 });
  });

  test("ends as last commanded, was changed no oftener than commanded, and a new process sees it the same", () => {
    const step = fc.record({
      command: fc.constantFrom<PowerCommand>("on", "off", "cycle"),
      wait: fc.integer({ min: 0, max: 2 * POWER_CHANGE_MS }),
      crash: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 20 }), (steps) => {
        const { shelf, reborn, pass } = shelfOnTheBench();
        let present = shelf;
        for (const { command, wait, crash } of steps) {
          present.command(command, honest);
          pass(wait);
          if (crash) present = reborn();
        }
        pass(2 * POWER_CHANGE_MS);
        const last = steps.at(-1)?.command;
        expect(present.read().power).toBe(last === "cycle" ? "on" : last);
        expect(reborn().read()).toEqual(present.read());
        expect(reborn().effects).toEqual(present.effects);
        expect(present.effects.power_changes).toBeLessThanOrEqual(2 * steps.length);
      }),
    );
  });

  test("when it accepts and does nothing, neither state nor meter changes", () => {
    const { shelf, pass } = shelfOnTheBench();
    shelf.command("off", idle);
    pass(2 * POWER_CHANGE_MS);
    expect(shelf.read()).toMatchObject({ power: "on", reported: "on" });
    expect(shelf.effects).toMatchObject({ power_off_commands: 1, power_changes: 0 });
  });

  test("when it lies, it reports the wanted state and the meter says otherwise, until the fault is gone", () => {
    const { shelf, reborn, pass, presentFaults } = shelfOnTheBench();
    shelf.command("off", lying);
    expect(shelf.read().reported).toBe("powering_off");
    pass(POWER_CHANGE_MS);
    expect(reborn().read()).toMatchObject({ power: "on", reported: "off" });
    expect(reborn().read().meter.output_watts).toBeGreaterThan(10_000);
    presentFaults.clear();
    expect(shelf.read()).toMatchObject({ power: "on", reported: "on" });
  });

  test("an honest command ends the lie", () => {
    const { shelf, pass } = shelfOnTheBench();
    shelf.command("off", lying);
    shelf.command("off", honest);
    pass(POWER_CHANGE_MS);
    expect(shelf.read()).toMatchObject({ power: "off", reported: "off", meter: { output_watts: 0 } });
  });

  test("the switch at the rack works at once and replaces what is under way", () => {
    const { shelf, pass } = shelfOnTheBench();
    shelf.command("off", honest);
    shelf.switchAtRack("off", honest);
    expect(shelf.read().power).toBe("off");
    shelf.switchAtRack("on", honest);
    pass(POWER_CHANGE_MS);
    expect(shelf.read().power).toBe("on");
    expect(shelf.effects).toMatchObject({ power_off_commands: 1, power_on_commands: 0, power_changes: 2 });
  });

  test("a lying shelf goes on reporting what it was before somebody used the switch", () => {
    const { shelf } = shelfOnTheBench();
    shelf.switchAtRack("off", lying);
    expect(shelf.read()).toMatchObject({ power: "off", reported: "on", meter: { output_watts: 0 } });
  });

  test("the log tells what was asked and what happened when, also if nobody looked meanwhile", () => {
    const { shelf, pass, clock } = shelfOnTheBench();
    const start = clock.realNow();
    shelf.command("off", honest);
    pass(60_000);
    expect(shelf.log).toEqual([
      [1, start, "power_off_accepted"],
      [2, start + POWER_CHANGE_MS, "powered_off"],
    ]);
  });

  test("the log forgets its oldest entries and never reuses a number", () => {
    const { shelf, pass } = shelfOnTheBench();
    for (let round = 0; round < 100; round += 1) {
      shelf.command(round % 2 === 0 ? "off" : "on", honest);
      pass(POWER_CHANGE_MS);
    }
    const numbers = shelf.log.map(([sequence]) => sequence);
    expect(numbers).toEqual(Array.from({ length: 64 }, (_, index) => 137 + index));
  });

  test("a restarting management controller is out of reach for a while, and the output does not care", () => {
    const { shelf, reborn, pass } = shelfOnTheBench();
    shelf.restartManager();
    expect(shelf.reachable).toBe(false);
    expect(reborn().reachable).toBe(false);
    expect(shelf.read().meter.output_watts).toBeGreaterThan(10_000);
    pass(MANAGER_RESTART_MS);
    expect(shelf.reachable).toBe(true);
  });
});
