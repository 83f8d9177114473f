import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CallContext } from "../../capabilities/call.ts";
import { aTarget } from "../../capabilities/conformance/device-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { RedfishClient } from "./client.ts";
import { isResource, type Resource } from "./resource.ts";
import { createInventory } from "./shelf/inventory.ts";
import { createPowerControl } from "./shelf/power.ts";
import { createSensors } from "./shelf/sensors.ts";
import { createShelves } from "./shelf/shelf.ts";

const target = aTarget({ username: "u", password: "p" });
const call: CallContext = {
  signal: new AbortController().signal,
  subject: "test",
  mayTouchDevice: (wanted: Duration) => wanted,
};

/** A BMC made of JSON: what it has at each path, and what it was told to do. */
function aBmc(resources: Readonly<Record<string, unknown>>, clock: Clock = systemClock) {
  const commands: (readonly [string, Resource])[] = [];
  const get: RedfishClient["get"] = async (_target, path) => {
    const resource = resources[path];
    if (isResource(resource)) return { status: 200, resource, headers: {} };
    throw new DeviceFailure("protocol", "bmc", `no ${path}`, { disposition: "fail", status: 404 });
  };
  const client: RedfishClient = {
    get,
    getOpenly: get,
    upload: () => Promise.reject(new Error("this shelf takes no uploads")),
    expectRestart: () => undefined,
    find: async (...asked) => (isResource(resources[asked[1]]) ? (await get(...asked)).resource : undefined),
    async post(_target, path, body) {
      commands.push([path, body]);
      return { status: 200, resource: {}, headers: {} };
    },
    patch: async () => undefined,
    remove: async () => undefined,
    stream: () => Promise.reject(new Error("no streams here")),
    close: async () => undefined,
  };
  const shelves = createShelves(client);
  const can = {
    power: createPowerControl(shelves, { clock }),
    inventory: createInventory(shelves),
    sensors: createSensors(shelves),
  };
  return { can, commands };
}

const link = (path: string) => ({ "@odata.id": path });
const root = "/redfish/v1/";
const aTree = (chassis: unknown, more: Readonly<Record<string, unknown>> = {}, id = "chassis") => ({
  [root]: {
    Chassis: link("/redfish/v1/Chassis"),
    Managers: link("/redfish/v1/Managers"),
    Systems: link("/redfish/v1/Systems"),
  },
  "/redfish/v1/Chassis": {
    Members: [link("/redfish/v1/Chassis/bmc-board"), link(`/redfish/v1/Chassis/${id}`)].slice(id === "chassis" ? 1 : 0),
  },
  [`/redfish/v1/Chassis/${id}`]: chassis,
  ...more,
});

describe("arbitrary JSON", () => {
  const anything = fc.jsonValue({ maxDepth: 4 });
  /** Shaped like what we look for, with anything in the places that we read. */
  const almost = fc.dictionary(
    fc.constantFrom(
      "PowerState",
      "SerialNumber",
      "Manufacturer",
      "Actions",
      "Status",
      "Members",
      "PowerSupplies",
      "Reading",
      "Entries",
      "Links",
      "PowerSubsystem",
      "Sensors",
      "LogServices",
      "Power",
      "Name",
      "Id",
    ),
    fc.oneof(
      anything,
      fc.constant(link("/redfish/v1/loop")),
      fc.constantFrom<unknown>("On", "Off", "LITE-ON", { target: 5 }),
    ),
  );

  test("is read without a crash: there is an answer, or a step failure", async () => {
    const ask = [
      (bmc: ReturnType<typeof aBmc>) => bmc.can.power.readPower(target, call),
      (bmc: ReturnType<typeof aBmc>) => bmc.can.power.setPower(target, "off", call),
      (bmc: ReturnType<typeof aBmc>) => bmc.can.inventory.readInventory(target, call),
      (bmc: ReturnType<typeof aBmc>) => bmc.can.sensors.readHealth(target, call),
      (bmc: ReturnType<typeof aBmc>) => bmc.can.sensors.readLog(target, call, { limit: 5 }),
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(anything, almost),
        fc.oneof(anything, almost),
        fc.constantFrom(...ask),
        async (chassis, linked, run) => {
          const bmc = aBmc(
            aTree(chassis, {
              "/redfish/v1/loop": linked,
              "/redfish/v1/Managers": linked,
              "/redfish/v1/Systems": linked,
            }),
          );
          const error: unknown = await run(bmc).then(
            () => undefined,
            (failure: unknown) => failure,
          );
          expect(error === undefined || error instanceof StepFailure).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("as the service root is a step failure, never a crash", async () => {
    await fc.assert(
      fc.asyncProperty(anything, async (value) => {
        await expect(aBmc({ [root]: value }).can.inventory.identify(target, call)).rejects.toBeInstanceOf(StepFailure);
      }),
    );
  });
});

describe("finding the shelf", () => {
  test("the chassis that is called so is the shelf, wherever it stands in the list", async () => {
    const bmc = aBmc(
      aTree({ SerialNumber: "S1" }, { "/redfish/v1/Chassis/bmc-board": { SerialNumber: "board" } }, "PowerShelf_1"),
    );
    expect(await bmc.can.inventory.identify(target, call)).toEqual({ serial: "S1", vendor: null, model: null });
  });

  test("older firmware lists one chassis under another name", async () => {
    const bmc = aBmc(aTree({ SerialNumber: " S2 ", Manufacturer: "LITE-ON", Model: "PF-1333-7R" }));
    expect(await bmc.can.inventory.identify(target, call)).toEqual({
      serial: "S2",
      vendor: "LITE-ON",
      model: "PF-1333-7R",
    });
  });

  test("a place that is gone is looked for again", async () => {
    const tree: Record<string, unknown> = aTree({ SerialNumber: "old" });
    const bmc = aBmc(tree);
    await bmc.can.inventory.identify(target, call);
    delete tree["/redfish/v1/Chassis/chassis"];
    Object.assign(tree, aTree({ SerialNumber: "new" }, {}, "powershelf"));
    expect(await bmc.can.inventory.identify(target, call)).toMatchObject({ serial: "new" });
  });

  test("a shelf that does not say who it is says so; whoever asked knows what to make of it", async () => {
    const bmc = aBmc(aTree({ SerialNumber: "", Manufacturer: " ", Model: null }));
    expect(await bmc.can.inventory.identify(target, call)).toEqual({ serial: null, vendor: null, model: null });
  });
});

describe("finding the command", () => {
  const reset = (allowed?: readonly string[]) => ({
    target: "/redfish/v1/reset",
    ...(allowed === undefined ? {} : { "ResetType@Redfish.AllowableValues": allowed }),
  });

  test("Lite-On shelves have actions of their own, also where they do not list them", async () => {
    const bmc = aBmc(
      aTree(
        { Manufacturer: "LITE-ON", PowerState: "Off", Actions: { "#Chassis.Reset": reset(["Reset"]) } },
        {},
        "powershelf",
      ),
    );
    await bmc.can.power.setPower(target, "on", call);
    expect(bmc.commands).toEqual([["/redfish/v1/Chassis/powershelf/Actions/Chassis.On", { OnType: "On" }]]);
  });

  test("others have Chassis.Reset", async () => {
    const bmc = aBmc(aTree({ PowerState: "On", Actions: { "#Chassis.Reset": reset(["On", "ForceOff"]) } }));
    await bmc.can.power.setPower(target, "off", call);
    expect(bmc.commands).toEqual([["/redfish/v1/reset", { ResetType: "ForceOff" }]]);
  });

  test("a reset that does not list the value is not tried, since some answer unknown values with success; the system's is", async () => {
    const bmc = aBmc(
      aTree(
        { PowerState: "On", Actions: { "#Chassis.Reset": reset(["PowerCycle"]) } },
        {
          "/redfish/v1/Systems": { Members: [link("/redfish/v1/Systems/system")] },
          "/redfish/v1/Systems/system": {
            Actions: { "#ComputerSystem.Reset": { target: "/redfish/v1/system-reset" } },
          },
        },
      ),
    );
    await bmc.can.power.setPower(target, "off", call);
    expect(bmc.commands).toEqual([["/redfish/v1/system-reset", { ResetType: "ForceOff" }]]);
  });

  test("a shelf that offers none is refused for good, and says what was looked for", async () => {
    const bmc = aBmc(aTree({ Manufacturer: "DELTA", PowerState: "On" }));
    await expect(bmc.can.power.setPower(target, "off", call)).rejects.toMatchObject({
      disposition: "fail",
      family: "declines",
      message: expect.stringContaining(
        "looked for Chassis.Reset with ResetType ForceOff, ComputerSystem.Reset with ResetType ForceOff",
      ),
    });
  });

  test("an action that points elsewhere is not used", async () => {
    const bmc = aBmc(
      aTree({ PowerState: "On", Actions: { "#Chassis.Reset": { target: "https://elsewhere/redfish/v1/reset" } } }),
    );
    await expect(bmc.can.power.setPower(target, "off", call)).rejects.toMatchObject({ family: "declines" });
    expect(bmc.commands).toEqual([]);
  });
});

describe("a command that was accepted", () => {
  const Actions = { "#Chassis.Reset": { target: "/redfish/v1/reset" } };

  test("is not repeated for 20 s, though the shelf shows nothing of it yet", async () => {
    let monotonic = 0;
    const bmc = aBmc(aTree({ PowerState: "On", Actions }), { now: () => new Date(0), monotonic: () => monotonic });
    for (monotonic of [0, 5_000, 11_000, 19_999]) await bmc.can.power.setPower(target, "off", call);
    expect(bmc.commands).toHaveLength(1);
    monotonic = 20_000;
    await bmc.can.power.setPower(target, "off", call);
    expect(bmc.commands).toHaveLength(2);
  });

  test("does not keep the opposite one from being sent", async () => {
    const tree: Record<string, unknown> = aTree({ PowerState: "On", Actions });
    const bmc = aBmc(tree);
    await bmc.can.power.setPower(target, "off", call);
    Object.assign(tree, aTree({ PowerState: "PoweringOff", Actions }));
    await bmc.can.power.setPower(target, "on", call);
    expect(bmc.commands.map(([, body]) => body)).toEqual([{ ResetType: "ForceOff" }, { ResetType: "On" }]);
  });
});

describe("a shelf whose chassis does not speak of power", () => {
  const withSupplies = (...states: readonly unknown[]) =>
    aBmc(
      aTree(
        { Manufacturer: "DELTA", SerialNumber: "D1", Power: link("/redfish/v1/power") },
        {
          "/redfish/v1/power": {
            PowerControl: [{ PowerCapacityWatts: 33_000 }],
            PowerSupplies: states.map((Power, index) => ({
              MemberId: `PowerSupplyUnit ${index + 1}`,
              Oem: { deltaenergysystems: { Power } },
              Status: { Health: "Warning" },
            })),
          },
        },
      ),
    );

  test.each([
    [[true, false], "on"],
    [["Off", "Off"], "off"],
    [["Off", 7], "unknown"],
    [[], "unknown"],
  ] as const)("with supplies that say %j is %s", async (states, expected) => {
    expect(await withSupplies(...states).can.power.readPower(target, call)).toBe(expected);
  });

  test("has an inventory from the older resource", async () => {
    expect(await withSupplies(true).can.inventory.readInventory(target, call)).toMatchObject({
      bmcFirmware: null,
      capacityWatts: 33_000,
      voltage: null,
      powerSupplies: [{ name: "PowerSupplyUnit 1", serial: null, on: true, health: "warning" }],
    });
  });
});
