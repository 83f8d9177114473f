import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startTemporarySimulator } from "../testing/temporary-simulator.ts";

const SYSTEM = "/redfish/v1/Systems/1";
const CD = "/redfish/v1/Managers/bmc/VirtualMedia/Cd";
const MACHINE = "m-rack1-01";

let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
const reports: string[] = [];

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=1", log: (line) => reports.push(line) });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  expect(reports).toEqual([]);
});
beforeEach(async () => {
  await site.control("DELETE", "/faults");
});

const get = async <T = Record<string, unknown>>(device: string, path: string) =>
  (await site.redfish(device, path)).json<T>();
const post = (device: string, path: string, body: unknown) => site.redfish(device, path, { method: "POST", body });
const patch = (device: string, body: unknown) => site.redfish(device, SYSTEM, { method: "PATCH", body });
const reset = (device: string, ResetType: string) =>
  post(device, `${SYSTEM}/Actions/ComputerSystem.Reset`, { ResetType });
const truth = async <T = Record<string, unknown>>(device: string) =>
  (await site.control<T>("GET", `/devices/${device}`)).body;

describe("the management controller of a machine", () => {
  test("shows no link that leads nowhere", async () => {
    const seen = new Set<string>();
    const open = ["/redfish/v1/"];
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      if (seen.has(path)) continue;
      seen.add(path);
      const reply = await site.redfish(MACHINE, path);
      expect([path, reply.status]).toEqual([path, 200]);
      for (const [, link = ""] of reply.text.matchAll(/"@odata\.id":"([^"]+)"/g)) open.push(link);
    }
    expect(seen.size).toBeGreaterThan(28);
  });

  test("shows the system with its identity, its boot override and what a reset may be", async () => {
    const device = await truth<{ serial: string; system_uuid: string; mac_addresses: string[] }>(MACHINE);
    expect(await get(MACHINE, SYSTEM)).toMatchObject({
      SerialNumber: device.serial,
      UUID: device.system_uuid,
      PowerState: "On",
      BiosVersion: expect.any(String),
      BootProgress: { LastState: "OSRunning" },
      Boot: { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None", BootSourceOverrideMode: "UEFI" },
      Actions: {
        "#ComputerSystem.Reset": {
          "ResetType@Redfish.AllowableValues": [
            "On",
            "ForceOff",
            "GracefulShutdown",
            "GracefulRestart",
            "ForceRestart",
            "PowerCycle",
          ],
        },
      },
    });
    expect(await get(MACHINE, `${SYSTEM}/EthernetInterfaces/eth1`)).toMatchObject({
      MACAddress: device.mac_addresses[1],
    });
    expect(await get(MACHINE, "/redfish/v1/UpdateService/FirmwareInventory")).toMatchObject({
      "Members@odata.count": 2,
    });
  });

  test("keeps what a PATCH sets, and leaves alone what it does not name", async () => {
    expect(
      (await patch(MACHINE, { Boot: { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Cd" } })).status,
    ).toBe(204);
    expect((await patch(MACHINE, { Boot: { BootSourceOverrideMode: "Legacy" } })).status).toBe(204);
    expect((await patch(MACHINE, { LocationIndicatorActive: true })).status).toBe(204);
    expect(await get(MACHINE, SYSTEM)).toMatchObject({
      LocationIndicatorActive: true,
      Boot: {
        BootSourceOverrideEnabled: "Once",
        BootSourceOverrideTarget: "Cd",
        BootSourceOverrideMode: "Legacy",
      },
    });
    expect(await truth(MACHINE)).toMatchObject({ locator_lit: true, effects: { boot_override_changes: 2 } });
  });

  test.each([
    [{ Boot: { BootSourceOverrideTarget: "Floppy" } }, "PropertyValueNotInList", "Boot/BootSourceOverrideTarget"],
    [{ Boot: { BootSourceOverrideTarget: "UefiHttp" } }, "PropertyValueConflict", "Boot/HttpBootUri"],
    [{ Boot: { BootSource: "Cd" } }, "PropertyUnknown", "Boot/BootSource"],
    [{ PowerState: "Off" }, "PropertyUnknown", "PowerState"],
    [{ LocationIndicatorActive: "yes" }, "PropertyValueTypeError", "LocationIndicatorActive"],
    [[], "UnrecognizedRequestBody", "JSON object"],
  ])("refuses to PATCH %j and names what is wrong", async (body, message, named) => {
    const before = (await truth<{ boot_override: unknown }>("m-rack1-02")).boot_override;
    const reply = await patch("m-rack1-02", body);
    expect(reply.status).toBe(400);
    expect(reply.text).toContain(`Base.1.16.${message}`);
    expect(reply.text).toContain(named);
    expect(await truth("m-rack1-02")).toMatchObject({ boot_override: before });
  });

  test("powers off and on, is fine with what is there already, and counts each command", async () => {
    const device = "m-rack1-03";
    expect((await reset(device, "On")).status).toBe(204);
    expect(await truth(device)).toMatchObject({ power: "on", effects: { power_on_commands: 1, power_changes: 0 } });
    expect((await reset(device, "ForceOff")).status).toBe(204);
    expect(await get(device, SYSTEM)).toMatchObject({ PowerState: "PoweringOff" });
    await site.control("POST", `/devices/${device}/power`, { power: "off" });
    expect(await get(device, SYSTEM)).toMatchObject({ PowerState: "Off", BootProgress: { LastState: "None" } });
    expect((await reset(device, "ForceOff")).status).toBe(204);
    expect(await truth(device)).toMatchObject({ effects: { power_off_commands: 2, resets: 3, power_changes: 1 } });
  });

  test.each(["ForceRestart", "GracefulRestart", "PowerCycle"])(
    "refuses %s while it is off, and counts nothing",
    async (type) => {
      const device = "m-rack1-04";
      await site.control("POST", `/devices/${device}/power`, { power: "off" });
      const reply = await reset(device, type);
      expect(reply.status).toBe(409);
      expect(reply.text).toContain("ResourceInStandby");
      expect(await truth(device)).toMatchObject({ power: "off", effects: { resets: 0 } });
    },
  );

  test("holds one medium: the same again is fine, another is refused until the first is ejected", async () => {
    const insert = (Image: string) =>
      post(MACHINE, `${CD}/Actions/VirtualMedia.InsertMedia`, { Image, UserName: "u", Password: "canary-of-media" });
    expect((await insert("http://mirror.test/one.iso?token=t")).status).toBe(204);
    expect((await insert("http://mirror.test/one.iso?token=t")).status).toBe(204);
    expect((await insert("http://mirror.test/two.iso")).status).toBe(409);
    const shown = await site.redfish(MACHINE, CD);
    expect(shown.json()).toMatchObject({
      Inserted: true,
      Image: "http://mirror.test/one.iso?token=t",
      ImageName: "one.iso",
      UserName: "u",
      Password: null,
    });
    expect((await post(MACHINE, `${CD}/Actions/VirtualMedia.EjectMedia`, {})).status).toBe(204);
    expect((await post(MACHINE, `${CD}/Actions/VirtualMedia.EjectMedia`, undefined)).status).toBe(204);
    expect(await get(MACHINE, CD)).toMatchObject({ Inserted: false, Image: null });
    expect(await truth(MACHINE)).toMatchObject({ effects: { media_inserts: 1, media_ejects: 1 } });
    expect(JSON.stringify((await site.control("GET", `/devices/${MACHINE}`)).body) + shown.text).not.toContain(
      "canary",
    );
  });

  test.each([
    [{}, "ActionParameterMissing"],
    [{ Image: "not a url" }, "PropertyValueTypeError"],
    [{ Image: "http://a.test/x", Eject: true }, "ActionParameterUnknown"],
    [{ Image: "http://a.test/x", Inserted: false }, "ActionParameterValueNotInList"],
  ])("refuses to insert %j", async (body, message) => {
    const reply = await post("m-rack1-02", `${CD}/Actions/VirtualMedia.InsertMedia`, body);
    expect(reply.status).toBe(400);
    expect(reply.text).toContain(message);
    expect(await truth("m-rack1-02")).toMatchObject({ media: null });
  });

  test("writes what happens into its log", async () => {
    const device = "m-rack1-05";
    await reset(device, "ForceRestart");
    const log = await get<{ Members: { Message: string }[] }>(
      device,
      "/redfish/v1/Managers/bmc/LogServices/EventLog/Entries",
    );
    expect(log.Members.map(({ Message }) => Message)).toEqual([
      "Reset type ForceRestart was requested.",
      "The power-on self-test has started.",
    ]);
  });

  test("lies and breaks as the shelves' controllers do", async () => {
    const device = "m-rack1-06";
    await site.control("POST", "/faults", { device, method: "POST", fault: { type: "lie_accept" }, times: 1 });
    await reset(device, "ForceOff");
    expect(await get(device, SYSTEM)).toMatchObject({ PowerState: "On" });
    await site.control("POST", "/faults", { device, fault: { type: "wrong_serial", serial: "OTHER" }, times: 1 });
    expect(await get(device, SYSTEM)).toMatchObject({ SerialNumber: "OTHER" });
    await site.control("POST", "/faults", { device, fault: { type: "status", status: 503 }, times: 1 });
    expect((await site.redfish(device, SYSTEM)).status).toBe(503);
    expect((await site.redfish("rack-1-shelf-1", "/redfish/v1/")).status).toBe(200);
  });
});
