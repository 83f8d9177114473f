import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { PROFILES, type ProfileName, TRAIT_NAMES, type Trait, traitsOf } from "../../../simulator/devices/profile.ts";
import { describeBootDevice } from "../../../src/capabilities/conformance/boot-device.ts";
import { describeComputerSystem } from "../../../src/capabilities/conformance/computer-system.ts";
import type { DeviceTrouble, SetUpBench } from "../../../src/capabilities/conformance/device-bench.ts";
import { describeImaging } from "../../../src/capabilities/conformance/imaging.ts";
import { describeLocator } from "../../../src/capabilities/conformance/locator.ts";
import type { MachineBench, MachineLimit } from "../../../src/capabilities/conformance/machine-bench.ts";
import { describePowerControl } from "../../../src/capabilities/conformance/power-control.ts";
import { describeReset } from "../../../src/capabilities/conformance/reset.ts";
import { describeSensors } from "../../../src/capabilities/conformance/sensors.ts";
import { describeVitals } from "../../../src/capabilities/conformance/vitals.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createRedfishMachineProvider } from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { type MachineSite, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { machineBenchFor } from "./simulated-machine-bench.ts";

/**
 * The provider of machines over BMCs that are less helpful than the ideal one. What goes wrong on the way to a BMC is the same for all of
 * them, and is tried with the ideal one (machine-conformance.test.ts).
 */
const NO_TROUBLES: readonly DeviceTrouble[] = [];

const SUITES = {
  power: describePowerControl,
  reset: describeReset,
  boot: describeBootDevice,
  imaging: describeImaging,
  locator: describeLocator,
  system: describeComputerSystem,
  sensors: describeSensors,
  vitals: describeVitals,
} as const satisfies Record<
  string,
  (name: string, setUp: SetUpBench<MachineBench>, troubles: readonly DeviceTrouble[]) => void
>;
type Suite = keyof typeof SUITES;

/** In which suites a trait alone can show, and what a controller with it cannot do. All others run with CHAOS_LONG. */
const SHOWS_IN: Readonly<
  Record<Trait, { readonly suites: readonly Suite[]; readonly cannot?: readonly MachineLimit[] }>
> = {
  no_last_reset_time: { suites: ["system"], cannot: ["tell_last_reset"] },
  no_boot_progress: { suites: ["system"] },
  once_kept_as_continuous: { suites: ["boot", "imaging"], cannot: ["use_up_override", "boot_in_own_order"] },
  lone_disabled_refused: { suites: ["boot", "imaging"] },
  missing_device_fails: { suites: ["boot", "imaging"], cannot: ["boot_from_empty_drive"] },
  reason_in_message_only: { suites: ["boot"] },
  no_health_rollup: { suites: ["vitals"] },
  late_power: { suites: ["power", "reset"] },
  unknown_resets_accepted: { suites: ["reset"] },
  no_sessions: { suites: ["system"] },
  media_downloaded: { suites: [] },
  medium_url_hidden: { suites: [] },
  one_virtual_drive: { suites: [] },
  several_systems: { suites: ["power", "reset", "boot", "imaging", "system"] },
  // Streams of events are tried with all of them in device-events.test.ts.
  no_events: { suites: [] },
  events_pushed: { suites: [] },
  events_elsewhere: { suites: [] },
  events_hang: { suites: [] },
  events_silent: { suites: [] },
  events_without_keep_alive: { suites: [] },
  events_forgotten: { suites: [] },
  events_drip: { suites: [] },
  events_flood: { suites: [] },
  events_cut: { suites: [] },
  events_of_requests: { suites: [] },
  // These show when firmware is replaced, which none of the suites here does.
  push_only: { suites: [] },
  multipart_only: { suites: [] },
  simple_only: { suites: [] },
  tasks_unlisted: { suites: [] },
  task_without_percent: { suites: [] },
  task_gone_when_done: { suites: [] },
  version_shown_late: { suites: [] },
  busy_though_taken: { suites: [] },
  new_certificate_after_flash: { suites: [] },
  unauthorized_while_starting: { suites: [] },
  version_needs_reset: { suites: [] },
};
const ALL = Object.keys(SUITES) as Suite[];
const isLong = process.env.CHAOS_LONG !== undefined;

let site: MachineSite;
let directory: string;
let used = 0;
const open: (() => Promise<void>)[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-profiles-"));
  const file = join(directory, "site.yaml");
  const racks = Array.from({ length: 12 }, (_, at) => `  - { id: rack-${at + 1}, shelves: 0, machines: 60 }\n`);
  writeFileSync(file, `racks:\n${racks.join("")}`);
  site = await startMachineSite({ speed: 100, site: file });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});
afterAll(async () => {
  await site.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Each test has a machine of its own. */
const withProfile = (profile: ProfileName) => async (): Promise<MachineBench> => {
  const machine = site.machines[used];
  if (machine === undefined) throw new Error("more machines are needed");
  used += 1;
  await site.control("PUT", `/devices/${machine.machine_id}/profile`, { profile });
  const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
  const provider = createRedfishMachineProvider({ gateway });
  open.push(async () => {
    await provider.close();
    gateway.close();
  });
  const cannot = traitsOf(profile).flatMap((trait) => SHOWS_IN[trait].cannot ?? []);
  const bench = await machineBenchFor(site, machine, provider);
  const path = traitsOf(profile).includes("several_systems") ? { path: "/redfish/v1/Systems/1" } : {};
  return { ...bench, target: { ...bench.target, ...path }, cannot };
};

const whole = Object.keys(PROFILES).filter((name) => name !== "ideal") as (keyof typeof PROFILES)[];
describe.each([...whole, ...TRAIT_NAMES])("a controller that is %s", (profile) => {
  const suites = isLong || profile in PROFILES ? ALL : SHOWS_IN[profile as Trait].suites;
  for (const suite of suites) SUITES[suite]("a machine", withProfile(profile), NO_TROUBLES);

  test("is what the simulator says that it is", async () => {
    const { target } = await withProfile(profile)();
    const { traits } = await site.control<{ traits: string[] }>(
      "GET",
      `/devices/${site.machines[used - 1]?.machine_id}`,
    );
    expect([target.address.length > 0, traits]).toEqual([true, [...traitsOf(profile)]]);
  });
});
