import { describe, expect, test } from "vitest";
import { aProfile, aRequest, wholeRack } from "../../../test/support/racks/whole-rack.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { FirmwareComponent, RackFirmware } from "../rack-firmware/rack-firmware.ts";
import type { MaintenanceStage } from "./payloads.ts";
import { planValidation, planWork, type RackLimits, type Work } from "./plan-work.ts";
import type { Activity, MaintenanceScope, Rack, Tray } from "./rack.ts";

const LIMITS: RackLimits = {
  claimWait: minutes(30),
  hasRackManager: false,
  firmwareAtOnce: 18,
  powerAtOnce: 4,
  flashDeadline: minutes(60),
  maintenanceAtOnce: 10,
  ingestionAtOnce: 50,
  stopAfterFailures: 5,
};
const component = (device: FirmwareComponent["device"], name = "bmc"): FirmwareComponent => ({
  device,
  component: name,
  class: "prod",
  version: "2.0",
  digest: "sha256:0",
  bytes: 1,
  targets: [],
  activation: "none",
  order: 0,
});
const firmware = (id: string, change: Partial<RackFirmware> = {}): RackFirmware => ({
  id,
  hardwareType: "gb200",
  available: true,
  isDefault: false,
  components: [component("compute"), component("switch")],
  ...change,
});
const FW = firmware("fw-default", { isDefault: true });

const asked = (
  activities: readonly Activity[],
  scope: Partial<MaintenanceScope> = {},
  change: Partial<Rack> = {},
): Rack =>
  wholeRack("ready", {
    defaultFirmware: FW,
    maintenanceRequest: {
      ...aRequest("r1"),
      activities,
      scope: { machine_ids: [], switch_ids: [], power_shelf_ids: [], ...scope },
    },
    ...change,
  });
const work = (rack: Rack, limits = LIMITS): Work => {
  const planned = planWork(rack, limits);
  if (planned?.type !== "work") throw new Error(`no work: ${JSON.stringify(planned)}`);
  return planned;
};
/** What a stage comes to, in one word or a short text. */
const stage = (rack: Rack, name: MaintenanceStage): string => {
  const payload = work(rack).payloads[name];
  if ("skip" in payload) return `skip: ${payload.skip}`;
  if ("refuse" in payload) return `refuse ${payload.refuse.code}`;
  return "firmware_id" in payload ? payload.firmware_id : "done";
};
const named = (firmware_version: string): Activity => ({ kind: "firmware_upgrade", firmware_version });
const tray = (id: string, change: Partial<Tray> = {}): Tray => ({
  ...(wholeRack("ready").trays[0] as Tray),
  id,
  ...change,
});

describe("which firmware is used", () => {
  const ingestion = (change: Partial<Rack> = {}) => wholeRack("discovering", { defaultFirmware: FW, ...change });
  const reprovision = (change: Partial<Rack> = {}) =>
    wholeRack("ready", { defaultFirmware: FW, reprovisionRequest: aRequest("r2"), ...change });

  // biome-ignore format: a table is read by its columns
  test.each<readonly [string, Rack, string]>([
    ["ingestion",                    ingestion(),                                                                    "fw-default"],
    ["reprovision",                  reprovision(),                                                                  "fw-default"],
    ["on demand, no version",        asked([{ kind: "firmware_upgrade" }]),                                          "fw-default"],
    ["on demand, all activities",    asked([]),                                                                      "fw-default"],
    ["on demand, an empty version",  asked([named("")]),                                                             "fw-default"],
    ["on demand, a version",         asked([named("fw-v2.1")], {}, { requestedFirmware: firmware("fw-v2.1") }),      "fw-v2.1"],
    ["an unknown version",           asked([named("fw-v9")]),                                                        "refuse firmware_unknown"],
    ["one that is not available",    asked([named("fw-v2.1")], {}, { requestedFirmware: firmware("fw-v2.1", { available: false }) }), "skip: firmware fw-v2.1 is not available"],
    ["one for other hardware",       asked([named("fw-v2.1")], {}, { requestedFirmware: firmware("fw-v2.1", { hardwareType: "gb300" }) }), "refuse firmware_mismatch"],
    ["one for any hardware",         asked([named("fw-v2.1")], {}, { requestedFirmware: firmware("fw-v2.1", { hardwareType: "any" }) }), "fw-v2.1"],
    ["no profile",                   ingestion({ profile: null }),                                                   "skip: the rack has no profile, so its hardware type is not known"],
    ["no hardware type",             ingestion({ profile: { ...aProfile, hardwareType: null } }),                    "skip: profile small has no hardware type"],
    ["no default",                   ingestion({ defaultFirmware: null }),                                           "skip: there is no default firmware for hardware type gb200"],
    ["one that cannot be read",      asked([named("fw-v2.1")], {}, { requestedFirmware: firmware("fw-v2.1", { available: false, unreadable: "no list" }) }), "refuse firmware_unavailable"],
    ["a default that is damaged",    ingestion({ defaultFirmware: { ...FW, available: false, unreadable: "no list" } }), "skip: the record of firmware fw-default cannot be read (no list): delete it (millwright rack-firmware delete fw-default) and create it again"],
    ["a default that is not there",  ingestion({ defaultFirmware: { ...FW, available: false } }),                    "skip: firmware fw-default is not available"],
    ["nothing for these devices",    asked([], { power_shelf_ids: ["ps1"] }),                                        "skip: firmware fw-default has nothing for the devices in scope"],
    ["a component that it lacks",    asked([{ kind: "firmware_upgrade", components: ["cpld"] }]),                    "refuse firmware_unknown"],
    ["not requested",                asked([{ kind: "power_sequence" }]),                                            "skip: not requested"],
  ])("%s", (_, rack, expected) => {
    expect(stage(rack, "firmware_upgrade")).toBe(expected);
  });

  test("devices for which the record has nothing are left alone, and that is no failure", () => {
    const { payloads, workSet } = work(asked([]));
    expect(payloads.firmware_upgrade).toMatchObject({
      compute: { devices: ["m1"] },
      switch: { devices: ["sw1"] },
      power_shelf: { devices: [], components: [] },
      unfit: [],
    });
    expect(workSet.firmware?.wanted.compute).toEqual([{ component: "bmc", version: "2.0", targets: [] }]);
  });
});

describe("the scope", () => {
  const setOf = (rack: Rack) => {
    const { machines, switches, shelves } = work(rack).workSet;
    return [machines, switches, shelves];
  };
  const two = { trays: [tray("m1"), tray("m2")] };

  test("three empty lists mean the whole rack", () => {
    expect(setOf(asked([], {}, two))).toEqual([["m1", "m2"], ["sw1"], ["ps1"]]);
  });
  test("otherwise an empty list means none of that kind", () => {
    expect(setOf(asked([], { machine_ids: ["m2"] }, two))).toEqual([["m2"], [], []]);
    expect(setOf(asked([], { machine_ids: ["m1"], switch_ids: ["sw1"] }, two))).toEqual([["m1"], ["sw1"], []]);
  });
  test("an ingestion ignores that of a pending request", () => {
    const rack = wholeRack("discovering", { ...two, maintenanceRequest: aRequest("r1") });
    expect(setOf(rack)[0]).toEqual(["m1", "m2"]);
    expect(work(rack)).toMatchObject({ trigger: "ingestion", workSet: { barsForMs: 0 } });
  });
  test("a device that has left the rack since is left out, and named", () => {
    expect(work(asked([], { machine_ids: ["m1", "m9"] })).workSet.leftOut).toEqual([
      { id: "m9", why: "it is not in the rack any more" },
    ]);
  });
});

describe("trays that somebody uses", () => {
  for (const assigned of ["yes", "unknown"] as const) {
    const inUse = { trays: [tray("m1"), tray("m2", { assigned })] };

    test(`ingestion and reprovision leave them out, with all switches and shelves (${assigned})`, () => {
      for (const rack of [
        wholeRack("discovering", inUse),
        wholeRack("ready", { ...inUse, reprovisionRequest: aRequest("r") }),
      ]) {
        const { workSet } = work(rack);
        expect(workSet).toMatchObject({ machines: ["m1"], switches: [], shelves: [] });
        expect(workSet.leftOut.map(({ id }) => id)).toEqual(["m2", "sw1", "ps1"]);
        expect(workSet.unused).toEqual(["m1"]);
      }
    });

    test(`a request that covers them, or what they depend on, is refused with their names (${assigned})`, () => {
      for (const scope of [{}, { machine_ids: ["m2"] }, { switch_ids: ["sw1"] }, { power_shelf_ids: ["ps1"] }]) {
        const planned = planWork(asked([], scope, inUse), LIMITS);
        expect(planned, JSON.stringify(scope)).toMatchObject({ type: "refused", why: expect.stringContaining("m2") });
      }
      expect(work(asked([], { machine_ids: ["m1"] }, inUse)).workSet.machines).toEqual(["m1"]);
    });
  }

  test("a request may include them, for a reason", () => {
    const rack = asked([], {}, { trays: [tray("m1"), tray("m2", { assigned: "yes" })] });
    const request = rack.maintenanceRequest;
    const forced = { ...rack, maintenanceRequest: request && { ...request, include_assigned: { reason: "leak" } } };
    expect(work(forced)).toMatchObject({ workSet: { machines: ["m1", "m2"], switches: ["sw1"], unused: [] } });
  });

  test("no tray of the rack may come into use while a switch or a shelf is worked on", () => {
    const two = { trays: [tray("m1"), tray("m2")] };
    expect(work(asked([], { machine_ids: ["m1"], switch_ids: ["sw1"] }, two)).workSet.unused).toEqual(["m1", "m2"]);
    expect(work(asked([], { machine_ids: ["m1"] }, two)).workSet.unused).toEqual(["m1"]);
  });

  test("those that depend on a switch or a shelf are kept from use as long as that is worked on", () => {
    const three = { trays: [tray("m1"), tray("m2"), tray("m3", { unprovenRun: "run-7" })] };
    for (const scope of [{ switch_ids: ["sw1"] }, { power_shelf_ids: ["ps1"] }]) {
      const { machines, keptUnassigned } = work(asked([], scope, three)).workSet;
      expect([machines, keptUnassigned], "m3 is held by its own run").toEqual([[], ["m1", "m2"]]);
    }
    const rack = asked([], { switch_ids: ["sw1"] }, three);
    const request = rack.maintenanceRequest;
    const forced = { ...rack, maintenanceRequest: request && { ...request, include_assigned: { reason: "leak" } } };
    expect(work(forced).workSet.keptUnassigned).toEqual([]);
  });
});

describe("trays that are in MAAS", () => {
  const mixed = { trays: [tray("m1"), tray("m2", { inMaas: true })] };
  const others = { switches: [], shelves: [] };
  const onlyMaas = [{ id: "m2", why: "only MAAS touches its BMC" }];

  test("are in no stage and no validation, and named, whatever led to the maintenance", () => {
    const cycle = { kind: "power_sequence", operation: "cycle" } as const;
    for (const rack of [
      asked([{ kind: "firmware_upgrade" }, cycle], {}, mixed),
      wholeRack("discovering", { ...mixed, defaultFirmware: FW }),
      wholeRack("ready", { ...mixed, defaultFirmware: FW, reprovisionRequest: aRequest("r") }),
    ]) {
      const { payloads, workSet } = work(rack);
      expect(workSet).toMatchObject({ machines: ["m1"], switches: ["sw1"], shelves: ["ps1"], leftOut: onlyMaas });
      expect(payloads.firmware_upgrade).toMatchObject({ compute: { devices: ["m1"] } });
      expect(payloads.power_on_compute).toMatchObject({ devices: ["m1"] });
      const validation = planValidation({ ...rack, facts: { ...rack.facts, workSet } });
      expect(JSON.stringify([payloads, validation])).not.toContain("m2");
    }
  });

  test("are left out also of a request that named them when they were not, or that includes trays in use", () => {
    expect(work(asked([], { machine_ids: ["m1", "m2"] }, mixed)).workSet).toMatchObject({
      ...{ machines: ["m1"], leftOut: onlyMaas },
    });
    const rack = asked([], {}, { trays: [tray("m2", { inMaas: true, assigned: "yes" })] });
    const request = rack.maintenanceRequest;
    const forced = { ...rack, maintenanceRequest: request && { ...request, include_assigned: { reason: "leak" } } };
    expect(work(forced).workSet).toMatchObject({ machines: [], switches: ["sw1"], leftOut: onlyMaas });
  });

  test("are in nobody's way, in use or not, where no switch and no shelf is worked on", () => {
    const inUse = { trays: [tray("m1"), tray("m2", { inMaas: true, assigned: "unknown" })], ...others };
    expect(work(asked([], {}, inUse)).workSet).toMatchObject({ machines: ["m1"], leftOut: onlyMaas });
  });

  test("that may be in use keep the switches and shelves on which they depend from being touched", () => {
    const inUse = { trays: [tray("m1"), tray("m2", { inMaas: true, assigned: "yes" })] };
    const { workSet } = work(wholeRack("discovering", inUse));
    expect(workSet).toMatchObject({ machines: ["m1"], switches: [], shelves: [] });
    expect(workSet.leftOut.map(({ id }) => id)).toEqual(["m2", "sw1", "ps1"]);
    expect(planWork(asked([], {}, inUse), LIMITS)).toMatchObject({ type: "refused", why: "assigned trays: m2" });
  });
});

describe("an unproven flash", () => {
  test("keeps its device out of every stage, and fails the firmware stage by its name", () => {
    const rack = asked([], {}, { trays: [tray("m1", { unprovenRun: "run-7" })] });
    const { payloads, workSet } = work(rack);
    expect(workSet.machines).toEqual([]);
    expect(payloads.firmware_upgrade).toMatchObject({
      unfit: [{ kind: "machine", id: "m1", why: expect.stringContaining("run-7") }],
    });
    expect(payloads.power_on_compute).toEqual({ skip: "no compute tray is in scope" });
  });
});

describe("the fabric", () => {
  const fabric = (rack: Rack) => stage(rack, "configure_nmx_cluster");
  const explicit: readonly Activity[] = [{ kind: "configure_nmx_cluster" }];
  const noOs = { switches: [{ id: "sw1", state: "ready", trayIndex: 0, hasOs: false, unprovenRun: null }] };

  test("is configured where it can be", () => {
    expect(fabric(asked([]))).toBe("done");
    expect(fabric(asked([named("")]))).toBe("skip: not requested");
    expect(fabric(asked([], { machine_ids: ["m1"] }))).toBe("skip: no switch is in scope");
  });
  test("is skipped where it cannot and nobody named it; a named one fails", () => {
    const without = { profile: { ...aProfile, topology: null } };
    for (const cannot of [without, noOs]) {
      expect(fabric(asked([], {}, cannot))).toMatch(/^skip: /);
      expect(fabric(asked(explicit, {}, cannot))).toBe("refuse fabric_not_configured");
    }
    expect(
      "skip" in work(asked([], {}, noOs), { ...LIMITS, hasRackManager: true }).payloads.configure_nmx_cluster,
    ).toBe(false);
  });
});

describe("the power sequence", () => {
  const tiers = (rack: Rack) => {
    const { firmware_upgrade: _, configure_nmx_cluster: __, ...power } = work(rack).payloads;
    return Object.entries(power).flatMap(([name, payload]) => ("devices" in payload ? [name] : []));
  };
  const on = ["power_on_shelves", "power_on_switches", "power_on_compute"];

  test("only switches on, unless told", () => {
    expect(tiers(asked([]))).toEqual(on);
    expect(tiers(asked([{ kind: "power_sequence" }]))).toEqual(on);
    expect(tiers(asked([{ kind: "power_sequence", operation: "on" }]))).toEqual(on);
    expect(tiers(asked([{ kind: "power_sequence", operation: "off" }]))).toEqual([
      "power_off_compute",
      "power_off_switches",
    ]);
    expect(tiers(asked([{ kind: "power_sequence", operation: "cycle" }]))).toEqual([
      "power_off_compute",
      "power_off_switches",
      ...on,
    ]);
    expect(tiers(asked([named("")]))).toEqual([]);
  });

  test("is refused where the shelves cannot deliver what the rack takes", () => {
    const watts = (each: number) => ({
      profile: {
        ...aProfile,
        compute: { ...aProfile.compute, watts: each },
        switches: { ...aProfile.switches, watts: 100 },
      },
    });
    expect(stage(asked([], {}, watts(900)), "power_on_switches")).toBe("done");
    expect(stage(asked([], {}, watts(901)), "power_on_switches")).toBe("refuse power_capacity");
    const alone = asked([], { machine_ids: ["m1"] }, watts(901));
    expect(stage(alone, "power_on_compute")).toBe("refuse power_capacity");
    expect(stage(asked([], {}, { ...watts(901), shelves: [] }), "power_on_switches")).toBe("refuse power_capacity");
  });

  test("leaves nothing to validate where devices were switched off", () => {
    const off = work(asked([{ kind: "power_sequence", operation: "off" }]));
    const rack = wholeRack("validating", {
      facts: { topology: null, hasValidated: false, failedByItself: false, workSet: off.workSet },
    });
    expect(planValidation(rack).validate_devices).toEqual({ skip: "devices were switched off as requested" });
  });
});

test("validation reads what was worked on, and the fabric only where it was configured", () => {
  const { workSet } = work(asked([named("")]));
  const rack = wholeRack("validating", {
    facts: { topology: null, hasValidated: false, failedByItself: false, workSet },
  });
  expect(planValidation(rack)).toMatchObject({
    validate_devices: {
      devices: [
        { kind: "machine", id: "m1" },
        { kind: "switch", id: "sw1" },
        { kind: "power_shelf", id: "ps1" },
      ],
    },
    validate_fabric: { skip: "this maintenance did not configure the fabric" },
  });
});

describe("what begins", () => {
  test("reprovision comes before maintenance in ready; in error only a maintenance request begins", () => {
    const both = { reprovisionRequest: aRequest("r2"), maintenanceRequest: aRequest("r1") };
    expect(work(wholeRack("ready", both)).trigger).toBe("reprovision");
    expect(work(wholeRack("error", both)).trigger).toBe("on_demand");
    expect(planWork(wholeRack("error", { reprovisionRequest: aRequest("r2") }), LIMITS)).toBeNull();
    expect(planWork(wholeRack("ready"), LIMITS)).toBeNull();
  });
  test("the same work is begun once: its run follows from the request, or from the entry into the state", () => {
    expect(work(asked([])).unique).toEqual(["rack-1", "r1"]);
    const discovering = (stateSince: Date) => work(wholeRack("discovering", { stateVersion: 7, stateSince })).unique;
    expect(discovering(new Date(0))).toEqual(discovering(new Date(0)));
    expect(discovering(new Date(0)), "that of a rack made again").not.toEqual(discovering(new Date(1)));
    expect(work(asked([])).workSet.barsForMs).toBe(minutes(30));
  });
});
