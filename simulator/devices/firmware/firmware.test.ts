import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FaultBook } from "../../faults/fault-book.ts";
import { machineTree } from "../../redfish/machine-resources.ts";
import { RedfishService } from "../../redfish/redfish-service.ts";
import { createSeededValues } from "../../seeded-values.ts";
import { createSimulatedClock } from "../../simulated-clock.ts";
import { buildSite } from "../../site.ts";
import { openStateJournal } from "../../state-journal.ts";
import { firmwareMemory } from "../../testing/firmware-memory.ts";
import { temporaryDataDir } from "../../testing/temporary-simulator.ts";
import { Machine } from "../machine.ts";
import type { Trait } from "../profile.ts";

const FLASH = 600_000;
const RESTART = 20_000;

/** A machine whose time is ours; `reborn` is the same machine as a new process finds it. */
function machineOnTheBench(...traits: Trait[]) {
  const seeded = createSeededValues(1);
  const site = buildSite({ racks: [{ shelves: 0, machines: [{ profile: traits }] }] }, seeded);
  const [spec] = site.machines;
  if (spec === undefined) throw new Error("the site has no machine");
  let real = 1_000_000;
  const clock = createSimulatedClock({ realAt: real, simulatedAt: real, speed: 1 }, () => real);
  const kept = new Map<string, string>();
  const surroundings = {
    clock,
    seeded,
    load: (id: string) => (kept.has(id) ? (JSON.parse(kept.get(id) ?? "") as unknown) : undefined),
    save: (id: string, state: unknown) => kept.set(id, JSON.stringify(state)),
    isFaultPresent: () => false,
    firmware: firmwareMemory(),
    images: site.images,
    pxeImage: site.pxe.image,
    installFails: () => false,
    hangsInPost: () => false,
    hasBootServer: () => false,
  };
  const machine = new Machine(spec, surroundings);
  return {
    machine,
    clock,
    seeded,
    reborn: () => new Machine(spec, surroundings),
    pass(ms: number) {
      real += ms;
    },
    flash(component: string, version: string) {
      const image = { model: spec.model, component, version, bytes: 9, digest: "sha256:0" };
      return machine.firmware.update({ way: "simple", targets: [], image });
    },
  };
}

describe("the firmware of a device", () => {
  test("is what it was until the flash is over, also for a simulator that was killed meanwhile", () => {
    const { machine, reborn, pass, flash } = machineOnTheBench();
    flash("bmc", "2.0");
    pass(FLASH - 1);
    expect(machine.firmware.version("bmc")).toBe("1.09.2");
    const other = reborn();
    expect(other.firmware.flashes).toMatchObject([{ outcome: "running" }]);
    pass(1);
    expect(other.firmware.version("bmc")).toBe("2.0");
    expect([other.reachable, other.managerRestarts]).toEqual([false, 1]);
    pass(RESTART);
    expect(other.reachable).toBe(true);
    expect(other.events.map(({ message }) => message)).toEqual([
      "Firmware is being written.",
      "Firmware was written.",
      "The management controller was restarted.",
    ]);
  });

  test("of the system waits for a reset that comes after it was written", () => {
    const { machine, pass, flash } = machineOnTheBench();
    flash("bios", "U9");
    machine.reset("ForceRestart", { is: "honest" });
    pass(FLASH);
    expect([machine.firmware.version("bios"), machine.firmware.staged("bios")?.version]).toEqual(["U46-2.20", "U9"]);
    pass(1_000);
    machine.reset("ForceRestart", { is: "honest" });
    expect([machine.firmware.version("bios"), machine.firmware.staged("bios")]).toEqual(["U9", undefined]);
  });

  test("is shown late by a controller that does so", () => {
    const { machine, pass, flash } = machineOnTheBench("version_shown_late");
    flash("bmc", "2.0");
    pass(FLASH + 59_000);
    expect(machine.firmware.version("bmc")).toBe("1.09.2");
    pass(1_000);
    expect(machine.firmware.version("bmc")).toBe("2.0");
  });

  test("lets a controller that starts with it refuse every account for a while", () => {
    const { machine, clock, seeded, pass, flash } = machineOnTheBench("unauthorized_while_starting");
    using dir = temporaryDataDir();
    const journal = openStateJournal(join(dir.path, "journal"));
    const faults = new FaultBook({ journal, seeded, realNow: clock.realNow, atStart: [] });
    const service = new RedfishService({
      device: machine,
      tree: machineTree(),
      faults,
      seeded,
      realNow: clock.realNow,
    });
    const { username, password } = machine.spec;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const ask = () =>
      service.answer({ method: "GET", path: "/redfish/v1/Systems", query: "", headers: { authorization }, body: "" })
        .status;
    flash("bmc", "2.0");
    pass(FLASH);
    expect(ask()).toBe(401);
    pass(RESTART + 19_999);
    expect(ask()).toBe(401);
    pass(1);
    expect(ask()).toBe(200);
    journal.close();
  });
});
