import { describe, expect, test } from "vitest";
import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { Duration } from "../../../kernel/time/duration.ts";
import { mediumUrl } from "../../transport/medium-url.ts";
import type { RedfishClient } from "../client.ts";
import { isResource, type Resource } from "../resource.ts";
import { createSensors } from "../shelf/sensors.ts";
import { createMachineBoot } from "./boot.ts";
import { createComputerSystem } from "./computer-system.ts";
import { createMachineImaging } from "./imaging.ts";
import { createMachineLocator } from "./locator.ts";
import { createMachines } from "./machine.ts";
import { createMachinePower } from "./power.ts";
import { createMachineChassis, createMachineSensors } from "./sensors.ts";
import { createMachineVitals } from "./vitals.ts";

const target: BmcTarget = {
  address: "bmc",
  port: 443,
  scheme: "https",
  username: "root",
  password: "secret",
  trust: { mode: "off" },
};
const call = {
  signal: new AbortController().signal,
  subject: "test",
  mayTouchDevice: (wanted: Duration) => wanted,
};
const link = (path: string) => ({ "@odata.id": path });
const RESET = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const INSERT = "/redfish/v1/Managers/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia";
const EJECT = "/redfish/v1/Managers/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia";
const order = { location: "http://images/a.iso", cloudInitRef: "ci", token: "t1" };

/** A BMC made of JSON. What it is told to change, it changes, unless the test says otherwise. */
function aBmc(options: {
  readonly system?: Resource;
  readonly drive?: Resource;
  readonly more?: Readonly<Record<string, unknown>>;
  /** What it makes of a change of `Boot`. */
  readonly keeps?: (boot: Resource) => Resource;
  /** The action that it carries out without ever saying so. */
  readonly loses?: string;
  /** With which status it refuses a command. */
  readonly refuses?: (path: string, body: Resource) => number | undefined;
  /** With which words. */
  readonly says?: (body: Resource) => string;
  /** Which actions it accepts without carrying them out. */
  readonly ignores?: string;
  readonly onPost?: (path: string) => void;
}) {
  const commands: string[] = [];
  /** On the monotonic clock; each request takes `each`. */
  const time = { now: 0, each: 0, requests: 0 };
  const resources: Record<string, unknown> = {
    "/redfish/v1/": {
      Systems: link("/redfish/v1/Systems"),
      Managers: link("/redfish/v1/Managers"),
      UpdateService: link("/redfish/v1/UpdateService"),
    },
    "/redfish/v1/Systems": { Members: [link("/redfish/v1/Systems/1")] },
    "/redfish/v1/Systems/1": {
      PowerState: "On",
      Boot: { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None" },
      Actions: { "#ComputerSystem.Reset": { target: RESET } },
      Links: { ManagedBy: [link("/redfish/v1/Managers/1")] },
      ...options.system,
    },
    "/redfish/v1/Managers/1": { VirtualMedia: link("/redfish/v1/Managers/1/VirtualMedia") },
    "/redfish/v1/Managers/1/VirtualMedia": {
      Members: [link("/redfish/v1/Managers/1/VirtualMedia/Usb"), link("/redfish/v1/Managers/1/VirtualMedia/Cd")],
    },
    "/redfish/v1/Managers/1/VirtualMedia/Usb": { MediaTypes: ["USBStick"] },
    "/redfish/v1/Managers/1/VirtualMedia/Cd": {
      MediaTypes: ["CD"],
      Inserted: false,
      Image: null,
      Actions: { "#VirtualMedia.InsertMedia": { target: INSERT }, "#VirtualMedia.EjectMedia": { target: EJECT } },
      ...options.drive,
    },
    ...options.more,
  };
  const check = (path: string, body: Resource) => {
    const status = options.refuses?.(path, body);
    if (status === undefined) return;
    const said = options.says?.(body) ?? `answered ${status}`;
    throw new DeviceFailure(status < 500 ? "refused_by_device" : "busy", "bmc", said, { status });
  };
  const change = (path: string, members: Resource) => {
    resources[path] = { ...(resources[path] as Resource), ...members };
  };
  const get: RedfishClient["get"] = async (_target, path) => {
    time.now += time.each;
    time.requests += 1;
    const resource = resources[path];
    if (isResource(resource)) return { status: 200, resource, headers: {} };
    throw new DeviceFailure("protocol", "bmc", `no ${path}`, { disposition: "fail", status: 404 });
  };
  const client: RedfishClient = {
    get,
    getOpenly: get,
    upload: () => Promise.reject(new Error("this machine takes no uploads")),
    remove: () => Promise.reject(new Error("of this machine nothing is removed")),
    expectRestart: () => undefined,
    find: async (...asked) => (isResource(resources[asked[1]]) ? (await get(...asked)).resource : undefined),
    async post(_target, path, body) {
      commands.push(`${path.split(".").at(-1)} ${JSON.stringify(body)}`);
      options.onPost?.(path);
      check(path, body);
      if (path === options.ignores) return { status: 200, resource: {}, headers: {} };
      const [drive = "", action] = path.split("/Actions/VirtualMedia.");
      if (action === "InsertMedia") change(drive, { Inserted: true, Image: body.Image });
      if (action === "EjectMedia") change(drive, { Inserted: false, Image: null });
      if (path === options.loses) throw new DeviceFailure("unreachable", "bmc", "the connection was closed");
      return { status: 200, resource: {}, headers: {} };
    },
    async patch(_target, path, body) {
      commands.push(`patch ${JSON.stringify(body)}`);
      check(path, body);
      const boot = isResource(body.Boot) ? (options.keeps ?? ((same) => same))(body.Boot) : undefined;
      const before = (resources[path] as Resource).Boot as Resource;
      change(path, boot === undefined ? body : { Boot: { ...before, ...boot } });
    },
    stream: () => Promise.reject(new Error("no streams here")),
    close: async () => undefined,
  };
  const machines = createMachines(client);
  const clock = { now: () => new Date(0), monotonic: () => 0 };
  const power = createMachinePower(machines, { clock });
  return {
    commands,
    resources,
    power,
    boot: createMachineBoot(machines),
    imaging: createMachineImaging(machines, power),
    inspect: createComputerSystem(machines),
    locator: createMachineLocator(machines),
    sensors: createMachineSensors(machines, createSensors(createMachineChassis(machines, client))),
    vitals: createMachineVitals(machines, { now: () => new Date(0), monotonic: () => time.now }),
    time,
  };
}
const offering = (...values: string[]) => ({
  Actions: { "#ComputerSystem.Reset": { target: RESET, "ResetType@Redfish.AllowableValues": values } },
});

describe("a reset", () => {
  test.each([
    ["graceful", ["GracefulRestart", "ForceRestart"], "GracefulRestart"],
    ["graceful", ["ForceRestart"], "ForceRestart"],
    ["forced", ["GracefulRestart", "PowerCycle"], "PowerCycle"],
  ] as const)("%s, of a machine that offers %j, is %s", async (mode, offered, expected) => {
    const bmc = aBmc({ system: offering(...offered) });
    await bmc.power.resetPower(target, mode, call);
    expect(bmc.commands).toEqual([`Reset {"ResetType":"${expected}"}`]);
  });

  test("of a machine that is off turns it on", async () => {
    const bmc = aBmc({ system: { PowerState: "Off", ...offering("On", "ForceRestart") } });
    await bmc.power.resetPower(target, "graceful", call);
    expect(bmc.commands).toEqual(['Reset {"ResetType":"On"}']);
  });

  test("that is not offered is never sent: some answer unknown ones with success", async () => {
    const bmc = aBmc({ system: offering("Nmi") });
    await expect(bmc.power.resetPower(target, "forced", call)).rejects.toMatchObject({ disposition: "fail" });
    expect(bmc.commands).toEqual([]);
  });

  test("is not sent while it is open which of several systems is meant", async () => {
    const Members = [link("/redfish/v1/Systems/1"), link("/redfish/v1/Systems/2")];
    const bmc = aBmc({ more: { "/redfish/v1/Systems": { Members } } });
    await expect(bmc.power.resetPower(target, "forced", call)).rejects.toThrow(
      "has 2 computer systems (1, 2); name the machine's own in its BMC endpoint, like https://bmc:443/redfish/v1/Systems/1",
    );
    expect(bmc.commands).toEqual([]);
  });

  test("goes to the one of several systems that the endpoint names, and to no other", async () => {
    const second = `${RESET.replace("Systems/1", "Systems/2")}`;
    const posted: string[] = [];
    const bmc = aBmc({
      more: {
        "/redfish/v1/Systems": { Members: [link("/redfish/v1/Systems/1"), link("/redfish/v1/Systems/2")] },
        "/redfish/v1/Systems/2": {
          SerialNumber: "S-2",
          PowerState: "Off",
          Actions: { "#ComputerSystem.Reset": { target: second } },
        },
      },
      onPost: (path) => posted.push(path),
    });
    const [one, two] = ["1", "2"].map((id) => ({ ...target, path: `/redfish/v1/Systems/${id}` }));
    if (!one || !two) throw new Error("there are two");
    // Both stand behind one address: what is known of the one must not be taken for the other.
    expect(await bmc.power.readPower(one, call)).toBe("on");
    expect(await bmc.power.readPower(two, call)).toBe("off");
    expect(await bmc.inspect.identify(two, call)).toMatchObject({ serial: "S-2" });
    await bmc.power.resetPower(two, "forced", call);
    expect(posted).toEqual([second]);
    await expect(bmc.power.readPower({ ...target, path: "/redfish/v1/Systems/3" }, call)).rejects.toThrow(
      "has no computer system 3 (it has 1, 2)",
    );
  });
});

describe("power", () => {
  test("is not commanded twice while a BMC takes its time to show it", async () => {
    const bmc = aBmc({});
    expect(await bmc.power.setPower(target, "off", call)).toEqual({ commanded: true });
    expect(await bmc.power.setPower(target, "off", call)).toEqual({ commanded: false });
    expect(bmc.commands).toHaveLength(1);
  });

  test.each([
    ["On", "on"],
    ["PoweringOff", "powering_off"],
    ["Paused", "unknown"],
    [null, "unknown"],
  ])("reported as %s is %s", async (PowerState, expected) => {
    expect(await aBmc({ system: { PowerState } }).power.readPower(target, call)).toBe(expected);
  });
});

describe("the boot override", () => {
  test("is set for one boot, and not again when it is there", async () => {
    const bmc = aBmc({});
    await bmc.boot.setBootOverride(target, "pxe", call);
    await bmc.boot.setBootOverride(target, "pxe", call);
    expect(bmc.commands).toEqual([
      'patch {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}',
    ]);
    expect(await bmc.boot.readBootOverride(target, call)).toEqual({ source: "pxe", lasts: "once" });
    await bmc.boot.clearBootOverride(target, call);
    expect(await bmc.boot.readBootOverride(target, call)).toEqual({ source: "none", lasts: "once" });
  });

  test("that a BMC keeps for every boot is told as it is, and not fought over", async () => {
    const bmc = aBmc({ keeps: (boot) => ({ ...boot, BootSourceOverrideEnabled: "Continuous" }) });
    await bmc.boot.setBootOverride(target, "pxe", call);
    expect(await bmc.boot.readBootOverride(target, call)).toEqual({ source: "pxe", lasts: "always" });
    await bmc.boot.setBootOverride(target, "pxe", call);
    expect(bmc.commands).toHaveLength(1);
  });

  const cleared = (boot: Resource) => boot.BootSourceOverrideEnabled === "Disabled";
  const alwaysOn = (boot: Resource) => ({ ...boot, BootSourceOverrideEnabled: "Continuous" });
  const bootIn = ({ Boot }: Resource) => (isResource(Boot) ? Boot : {});

  test.each([
    [
      "wants a target beside it",
      (boot: Resource) => cleared(boot) && boot.BootSourceOverrideTarget === undefined,
      400,
      "none",
    ],
    ["does not know None", (boot: Resource) => boot.BootSourceOverrideTarget === "None", 500, "none"],
    ["never switches it off", cleared, 400, "disk"],
  ] as const)("is cleared on a BMC that %s", async (_, isRefused, status, expected) => {
    const bmc = aBmc({
      ...(expected === "disk" && { keeps: alwaysOn }),
      refuses: (_path, body) => (isRefused(bootIn(body)) ? status : undefined),
    });
    await bmc.boot.setBootOverride(target, "cd", call);
    await bmc.boot.clearBootOverride(target, call);
    expect(await bmc.boot.readBootOverride(target, call)).toMatchObject({ source: expected });
  });

  test("is cleared on a BMC that accepts Disabled and keeps the override", async () => {
    const bmc = aBmc({ keeps: (boot) => (cleared(boot) ? {} : alwaysOn(boot)) });
    await bmc.boot.setBootOverride(target, "cd", call);
    await bmc.boot.clearBootOverride(target, call);
    expect(await bmc.boot.readBootOverride(target, call)).toEqual({ source: "disk", lasts: "always" });
  });

  test("that cannot be cleared in any words fails with what the BMC said", async () => {
    const bmc = aBmc({ refuses: (_path, body) => (bootIn(body).BootSourceOverrideTarget === "Cd" ? undefined : 400) });
    await bmc.boot.setBootOverride(target, "cd", call);
    await expect(bmc.boot.clearBootOverride(target, call)).rejects.toMatchObject({
      family: "declines",
      message: "answered 400",
    });
  });

  test("that the machine does not offer is refused with those that it does", async () => {
    const Boot = { "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Hdd"] };
    const bmc = aBmc({ system: { Boot } });
    await expect(bmc.boot.setBootOverride(target, "pxe", call)).rejects.toThrow("it offers None, Hdd");
    expect(bmc.commands).toEqual([]);
  });
});

describe("virtual media", () => {
  test("are inserted once into the drive for CDs, and booted from next", async () => {
    const bmc = aBmc({});
    await bmc.imaging.prepare(target, order, call);
    await bmc.imaging.prepare(target, order, call);
    expect(bmc.commands.map((command) => command.split(" ")[0])).toEqual(["InsertMedia", "patch"]);
    expect(bmc.commands[0]).toContain(mediumUrl(order));
    expect(await bmc.imaging.readProgress(target, order, call)).toEqual({ inserted: true, armed: true });
  });

  test("of somebody else are taken out first, and never by cleaning up", async () => {
    const bmc = aBmc({ drive: { Inserted: true, Image: mediumUrl({ ...order, token: "t0" }) } });
    expect(await bmc.imaging.readProgress(target, order, call)).toEqual({ inserted: false, armed: false });
    await bmc.imaging.cleanUp(target, order, call);
    expect(bmc.commands).toEqual([]);
    await bmc.imaging.prepare(target, order, call);
    expect(bmc.commands.map((command) => command.split(" ")[0])).toEqual(["EjectMedia", "InsertMedia", "patch"]);
  });

  test("are known by the file's name where the BMC does not show the whole address", async () => {
    const bmc = aBmc({ drive: { Inserted: true, Image: "a.iso" } });
    expect(await bmc.imaging.readProgress(target, order, call)).toMatchObject({ inserted: true });
    const other = aBmc({ drive: { Inserted: true, Image: "b.iso" } });
    expect(await other.imaging.readProgress(target, order, call)).toMatchObject({ inserted: false });
  });

  test("are taken out with the boot override in the end", async () => {
    const bmc = aBmc({});
    await bmc.imaging.prepare(target, order, call);
    await bmc.imaging.cleanUp(target, order, call);
    await bmc.imaging.cleanUp(target, order, call);
    expect(bmc.commands.map((command) => command.split(" ")[0])).toEqual([
      "InsertMedia",
      "patch",
      "EjectMedia",
      "patch",
    ]);
    expect(await bmc.boot.readBootOverride(target, call)).toMatchObject({ source: "none" });
  });

  test("leave no boot override behind when the answer to taking them out is lost", async () => {
    const bmc = aBmc({ loses: EJECT });
    await bmc.imaging.prepare(target, order, call);
    await expect(bmc.imaging.cleanUp(target, order, call)).rejects.toMatchObject({ family: "silent" });
    await bmc.imaging.cleanUp(target, order, call);
    expect(await bmc.imaging.readProgress(target, order, call)).toMatchObject({ inserted: false });
    expect(await bmc.boot.readBootOverride(target, call)).toMatchObject({ source: "none" });
  });

  describe("with a seed beside them", () => {
    const seedUrl = (token: string) => `http://server/seeds/run-1/${token.padEnd(64, "0")}/seed.iso`;
    const seeded = { ...order, seed: { url: seedUrl("a") } };
    const SECOND = "/redfish/v1/Managers/1/VirtualMedia/Usb";
    const second = (drive: Resource = {}) => ({
      [SECOND]: {
        MediaTypes: ["USBStick"],
        Inserted: false,
        Image: null,
        Actions: {
          "#VirtualMedia.InsertMedia": { target: `${SECOND}/Actions/VirtualMedia.InsertMedia` },
          "#VirtualMedia.EjectMedia": { target: `${SECOND}/Actions/VirtualMedia.EjectMedia` },
        },
        ...drive,
      },
    });

    test("have it in the second drive first, an address that says nothing, and are both ejected", async () => {
      const bmc = aBmc({ more: second() });
      await bmc.imaging.checkSeed?.(target, call);
      await bmc.imaging.prepare(target, seeded, call);
      await bmc.imaging.prepare(target, seeded, call);
      expect(bmc.commands.slice(0, 2)).toEqual([
        expect.stringContaining(seedUrl("a")),
        expect.stringContaining('"Image":"http://images/a.iso"'),
      ]);
      expect(bmc.commands).toHaveLength(3);
      expect(await bmc.imaging.readProgress(target, seeded, call)).toEqual({ inserted: true, armed: true });
      await bmc.imaging.cleanUp(target, seeded, call);
      expect(await bmc.imaging.readProgress(target, seeded, call)).toEqual({ inserted: false, armed: false });
      expect(bmc.resources[SECOND]).toMatchObject({ Inserted: false });
    });

    test("of another order are told from them by the seed alone, and stay", async () => {
      const bmc = aBmc({
        more: second({ Inserted: true, Image: seedUrl("b") }),
        drive: { Inserted: true, Image: order.location },
      });
      expect(await bmc.imaging.readProgress(target, seeded, call)).toMatchObject({ inserted: false });
      await bmc.imaging.cleanUp(target, seeded, call);
      expect(bmc.commands).toEqual([]);
    });

    test("are refused before anything is done where there is one drive", async () => {
      const bmc = aBmc({});
      await expect(bmc.imaging.checkSeed?.(target, call)).rejects.toThrow("one virtual drive");
      await expect(bmc.imaging.prepare(target, seeded, call)).rejects.toMatchObject({ disposition: "fail" });
      expect(bmc.commands).toEqual([]);
    });

    test("that the BMC cannot fetch fail the attempt in its words, without the way to the seed", async () => {
      const bmc = aBmc({
        more: second(),
        refuses: (path) => (path.startsWith(SECOND) ? 500 : undefined),
        says: (body) => `cannot download ${body.Image}`,
      });
      const failure = await bmc.imaging.prepare(target, seeded, call).catch((error: unknown) => error as DeviceFailure);
      expect(failure).toMatchObject({ family: "declines", disposition: "retry" });
      expect(String(failure)).toContain("the medium with the seed was not inserted: cannot download (the seed)");
      expect(String(failure)).not.toContain("/seeds/");
    });

    test.each([
      ["the whole address", (url: string) => url],
      ["the path alone", (url: string) => new URL(url).pathname],
      ["the key alone", (url: string) => url.split("/").at(-2) ?? ""],
    ])("that the BMC refuses to eject with %s say so without the way to the seed", async (_, shown) => {
      const bmc = aBmc({
        more: second({ Inserted: true, Image: seedUrl("a") }),
        drive: { Inserted: true, Image: order.location },
        refuses: (path) => (path.startsWith(SECOND) ? 400 : undefined),
        says: () => `cannot unmount ${shown(seedUrl("a"))}`,
      });
      const failure = await bmc.imaging.cleanUp(target, seeded, call).catch((error: unknown) => error as DeviceFailure);
      expect(failure).toMatchObject({ code: "refused_by_device", facts: { status: 400 } });
      expect(String(failure)).toMatch(
        /the medium with the seed is still inserted \(cannot unmount (\(the seed\)|\*\*\*)\)/,
      );
      expect(JSON.stringify(failure)).not.toMatch(/seeds\/|[0-9a-f]{64}/);
    });
  });

  describe("in the end", () => {
    const isSet = ({ Boot }: Resource) => isResource(Boot) && Boot.BootSourceOverrideTarget === "Cd";
    const keepsOverride = (path: string, body: Resource) =>
      path.endsWith("Systems/1") && !isSet(body) ? 400 : undefined;

    test("are ejected although the override cannot be cleared, which is told", async () => {
      const bmc = aBmc({ refuses: keepsOverride });
      await bmc.imaging.prepare(target, order, call);
      expect(await bmc.imaging.cleanUp(target, order, call)).toMatch(/^the medium is ejected, but the BMC keeps/);
      expect(await bmc.imaging.readProgress(target, order, call)).toEqual({ inserted: false, armed: false });
    });

    test.each([
      ["refuses to eject", { refuses: (path: string) => (path === EJECT ? 400 : undefined) }, "if its boot order"],
      ["only says that it ejects", { ignores: EJECT }, "if its boot order"],
      [
        "refuses both",
        { refuses: (path: string, body: Resource) => (path === EJECT ? 400 : keepsOverride(path, body)) },
        "at each boot",
      ],
    ])("are told to be inserted still by a BMC that %s", async (_, conduct, again) => {
      const bmc = aBmc(conduct);
      await bmc.imaging.prepare(target, order, call);
      await expect(bmc.imaging.cleanUp(target, order, call)).rejects.toMatchObject({
        family: "declines",
        message: expect.stringMatching(`^the medium is still inserted: the machine installs again ${again}`),
      });
    });

    test("are known to be in where the BMC does not show which", async () => {
      const bmc = aBmc({ drive: { Inserted: true, Image: null } });
      expect(await bmc.imaging.readProgress(target, order, call)).toMatchObject({ inserted: true });
    });
  });

  test("cannot be inserted where there is no such drive", async () => {
    const bmc = aBmc({ drive: { MediaTypes: ["Floppy"] } });
    await expect(bmc.imaging.prepare(target, order, call)).rejects.toMatchObject({ disposition: "fail" });
  });
});

describe("the health of a machine", () => {
  const well = { State: "Enabled", Health: "OK" };
  const ill = { State: "Enabled", Health: "Critical" };
  const SYSTEM = "/redfish/v1/Systems/1";
  const CHASSIS = "/redfish/v1/Chassis/1";
  /** Two processors, a storage with two drives; a chassis with fans as older firmware has them. */
  const parts = (system: Resource, chassis: Resource, more: Record<string, Resource> = {}) =>
    aBmc({
      system: {
        Status: well,
        Links: { Chassis: [link(CHASSIS)] },
        Processors: link(`${SYSTEM}/Processors`),
        Storage: link(`${SYSTEM}/Storage`),
        ...system,
      },
      more: {
        [CHASSIS]: { Status: well, Thermal: link(`${CHASSIS}/Thermal`), ...chassis },
        [`${SYSTEM}/Processors`]: { Members: [link(`${SYSTEM}/Processors/0`), link(`${SYSTEM}/Processors/1`)] },
        [`${SYSTEM}/Processors/0`]: { Name: "CPU 0", Status: well },
        [`${SYSTEM}/Processors/1`]: { Name: "CPU 1", Status: well },
        [`${SYSTEM}/Storage`]: { Members: [link(`${SYSTEM}/Storage/1`)] },
        [`${SYSTEM}/Storage/1`]: { Name: "RAID", Drives: [link(`${SYSTEM}/Drives/0`)], Status: well },
        [`${SYSTEM}/Drives/0`]: { Name: "Bay 0", Status: well },
        [`${CHASSIS}/Thermal`]: { Fans: [{ MemberId: "0", Name: "Fan 0", Status: well }], Temperatures: [] },
        ...more,
      },
    });
  const rollup = { Status: { ...well, HealthRollup: "OK" } };
  const read = (bmc: ReturnType<typeof aBmc>) => bmc.vitals.readVitals(target, call);

  test("is told by the sums of system and chassis in two requests", async () => {
    const bmc = parts(rollup, rollup, { [`${SYSTEM}/Drives/0`]: { Name: "Bay 0", Status: ill } });
    await read(bmc);
    const { requests } = bmc.time;
    expect(await read(bmc)).toMatchObject({ health: "ok", ailments: [] });
    expect(bmc.time.requests - requests).toBe(2);
  });

  test.each([
    ["a drive", `${SYSTEM}/Drives/0`, { Name: "Bay 0", Status: ill }, { name: "Bay 0", health: "critical" }],
    [
      "a fan of older firmware",
      `${CHASSIS}/Thermal`,
      { Fans: [{ MemberId: "0", Name: "Fan 0", Status: { Health: "Warning" } }] },
      { name: "Fan 0", health: "warning" },
    ],
  ])("names %s where the BMC has no sums", async (_what, path, resource, ailment) => {
    const bmc = parts({}, {}, { [path]: resource });
    expect(await read(bmc)).toMatchObject({ health: ailment.health, ailments: [ailment] });
  });

  test("reads the parts of a BMC without sums again only after a while", async () => {
    const bmc = parts({}, {});
    expect(await read(bmc)).toMatchObject({ health: "ok", ailments: [] });
    bmc.resources[`${SYSTEM}/Processors/1`] = { Name: "CPU 1", Status: ill };
    expect(await read(bmc)).toMatchObject({ health: "ok", ailments: [] });
    bmc.time.now += 11 * 60_000;
    expect(await read(bmc)).toMatchObject({ health: "critical", ailments: [{ name: "CPU 1", health: "critical" }] });
  });

  test("of a slow BMC is read over several checks, and names what it has found so far", async () => {
    const bmc = parts({ Status: { ...well, HealthRollup: "Critical" } }, rollup, {
      [`${SYSTEM}/Drives/0`]: { Name: "Bay 0", Status: ill },
    });
    bmc.time.each = 900;
    expect(await read(bmc)).toMatchObject({ health: "critical", ailments: [] });
    let requests = 0;
    for (let checks = 0; checks < 4; checks += 1) {
      const before = bmc.time.requests;
      await read(bmc);
      requests = Math.max(requests, bmc.time.requests - before);
    }
    expect(await read(bmc)).toMatchObject({ ailments: [{ name: "Bay 0", health: "critical" }] });
    expect(requests).toBeLessThanOrEqual(5);
  });

  test("is that of a summary, of one that says Health and one that says HealthRollup, the worse", async () => {
    const summary = parts({ ...rollup, MemorySummary: { Status: { HealthRollup: "Warning" } } }, rollup);
    expect(await read(summary)).toMatchObject({ health: "warning", ailments: [{ name: "memory", health: "warning" }] });
    const own = parts({ Status: { Health: "Critical", HealthRollup: "OK" } }, rollup);
    expect(await read(own)).toMatchObject({ health: "critical" });
  });

  test("does not count a place where nothing is plugged in", async () => {
    const bmc = parts({}, {}, { [`${SYSTEM}/Drives/0`]: { Name: "Bay 0", Status: { ...ill, State: "Absent" } } });
    expect(await read(bmc)).toMatchObject({ health: "ok", ailments: [] });
  });

  test("is read once of a BMC that lists its parts in a ring", async () => {
    const bmc = parts({}, {}, { [`${SYSTEM}/Drives/0`]: { Name: "Bay 0", Storage: link(`${SYSTEM}/Storage`) } });
    expect(await read(bmc)).toMatchObject({ health: "ok" });
    expect(bmc.time.requests).toBeLessThan(16);
  });
});

test("the health of one of several machines behind a BMC is that of its own chassis", async () => {
  const chassis = (id: string) => `/redfish/v1/Chassis/${id}`;
  const bmc = aBmc({
    more: {
      "/redfish/v1/Systems": { Members: [link("/redfish/v1/Systems/1"), link("/redfish/v1/Systems/2")] },
      "/redfish/v1/Systems/2": { Status: { Health: "OK" }, Links: { Chassis: [link(chassis("2"))] } },
      "/redfish/v1/Chassis": { Members: [link(chassis("1")), link(chassis("2"))] },
      [chassis("1")]: { Status: { Health: "OK" } },
      [chassis("2")]: { Status: { Health: "Critical" } },
    },
  });
  const second = { ...target, path: "/redfish/v1/Systems/2" };
  expect(await bmc.sensors.readHealth(second, call)).toMatchObject({ status: "critical" });
});

describe("what a machine tells", () => {
  test.each([
    [{ PowerState: "Off", BootProgress: { LastState: "OSRunning" } }, "off"],
    [{ BootProgress: { LastState: "OSRunning" } }, "running"],
    [{ BootProgress: { LastState: "OSBootStarted" } }, "booting"],
    [{ BootProgress: { LastState: "MemoryInitializationStarted" } }, "starting"],
    [{ BootProgress: { LastState: "OEM" } }, "unknown"],
    [{}, "unknown"],
  ])("of its boot in %j is %s", async (system, progress) => {
    expect(await aBmc({ system }).inspect.readBoot(target, call)).toEqual({ lastReset: null, progress });
  });

  test("of its locator is read and switched in either of the two forms", async () => {
    const present = aBmc({ system: { LocationIndicatorActive: false, IndicatorLED: "Off" } });
    await present.locator.setLocator(target, "lit", call);
    expect(present.commands).toEqual(['patch {"LocationIndicatorActive":true}']);
    expect(await present.locator.readLocator(target, call)).toBe("lit");
    const older = aBmc({ system: { IndicatorLED: "Off" } });
    await older.locator.setLocator(target, "lit", call);
    expect(older.commands).toEqual(['patch {"IndicatorLED":"Blinking"}']);
    await expect(aBmc({}).locator.setLocator(target, "lit", call)).rejects.toMatchObject({ disposition: "fail" });
  });
});
