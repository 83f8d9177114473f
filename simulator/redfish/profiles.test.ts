import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PROFILE_NAMES, PROFILES, type ProfileName, TRAIT_NAMES } from "../devices/profile.ts";
import { startTemporarySimulator } from "../testing/temporary-simulator.ts";

const SYSTEM = "/redfish/v1/Systems/1";
const CD = "/redfish/v1/Managers/bmc/VirtualMedia/Cd";
const MACHINE = "m-rack1-01";
const SHELF = "rack-1-shelf-1";

let site: Awaited<ReturnType<typeof startTemporarySimulator>>;

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=1", speed: 1 });
});
afterAll(() => site[Symbol.asyncDispose]());
beforeEach(async () => {
  await takeOn("ideal");
  await patch({ Boot: { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None" } });
});

const takeOn = (profile: ProfileName | readonly string[], device = MACHINE) =>
  site.control("PUT", `/devices/${device}/profile`, { profile });
const system = async () => (await site.redfish(MACHINE, SYSTEM)).json<Record<string, never>>();
const patch = (body: unknown) => site.redfish(MACHINE, SYSTEM, { method: "PATCH", body });
const post = (path: string, body: unknown) => site.redfish(MACHINE, path, { method: "POST", body });
const reset = (ResetType: string) => post(`${SYSTEM}/Actions/ComputerSystem.Reset`, { ResetType });
const truth = async <T = Record<string, unknown>>(device = MACHINE) =>
  (await site.control<T>("GET", `/devices/${device}`)).body;
const once = (target: string) => ({
  Boot: { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: target },
});

describe("a profile", () => {
  test("is set by name or as a list of traits, is shown, and every one of them is listed", async () => {
    const { body } = await site.control<{ traits: object; profiles: object }>("GET", "/profiles");
    expect(Object.keys(body.traits)).toEqual(TRAIT_NAMES);
    expect(Object.keys(body.profiles)).toEqual(PROFILE_NAMES);
    expect((await takeOn("worst")).body).toMatchObject({ profile: "worst", traits: PROFILES.worst });
    expect((await takeOn(["no_sessions", "late_power"])).body).toMatchObject({
      profile: null,
      traits: ["late_power", "no_sessions"],
    });
    expect((await takeOn([])).body).toMatchObject({ profile: "ideal", traits: [] });
    expect((await takeOn("no_sessions", SHELF)).body).toMatchObject({ profile: "no_sessions" });
    await takeOn("ideal", SHELF);
  });

  test.each([{ profile: "perfect" }, { profile: ["rude"] }, {}, { profile: "ideal", more: 1 }])(
    "that is none (%j) changes nothing",
    async (body) => {
      await takeOn("late_power");
      expect((await site.control("PUT", `/devices/${MACHINE}/profile`, body)).status).toBe(400);
      expect(await truth()).toMatchObject({ profile: "late_power" });
    },
  );
});

describe("a controller", () => {
  test("without LastResetTime and BootProgress shows neither", async () => {
    await takeOn("no_last_reset_time");
    expect(Object.keys(await system())).not.toContain("LastResetTime");
    expect(Object.keys(await system())).toContain("BootProgress");
    await takeOn("no_boot_progress");
    expect(Object.keys(await system())).not.toContain("BootProgress");
    expect(Object.keys(await system())).toContain("LastResetTime");
  });

  test("that keeps Once as Continuous knows no override to nothing", async () => {
    await takeOn("once_kept_as_continuous");
    expect((await system()).Boot).toMatchObject({
      BootSourceOverrideEnabled: "Continuous",
      BootSourceOverrideTarget: "Hdd",
    });
    expect((await patch(once("Pxe"))).status).toBe(204);
    expect((await system()).Boot).toMatchObject({
      BootSourceOverrideEnabled: "Continuous",
      BootSourceOverrideTarget: "Pxe",
    });
    expect((await patch(once("None"))).status).toBe(400);
    expect(await truth()).toMatchObject({ boot_override: { enabled: "Continuous", target: "Pxe" } });
  });

  test("that wants a target with every override refuses a lone Disabled", async () => {
    await takeOn("lone_disabled_refused");
    await patch(once("Pxe"));
    expect((await patch({ Boot: { BootSourceOverrideEnabled: "Disabled" } })).status).toBe(400);
    expect(await truth()).toMatchObject({ boot_override: { enabled: "Once", target: "Pxe" } });
    await patch({ Boot: { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "Hdd" } });
    expect(await truth()).toMatchObject({ boot_override: { enabled: "Disabled" } });
  });

  test("that fails for a missing device takes a CD once it is inserted", async () => {
    await takeOn("missing_device_fails");
    expect((await patch(once("Cd"))).status).toBe(500);
    expect(await truth()).toMatchObject({ boot_override: { enabled: "Disabled" } });
    await post(`${CD}/Actions/VirtualMedia.InsertMedia`, { Image: "http://images/a.iso" });
    expect((await patch(once("Cd"))).status).toBe(204);
    await post(`${CD}/Actions/VirtualMedia.EjectMedia`, {});
  });

  test("that downloads media refuses one that it cannot reach, and has nothing then", async () => {
    const INSERT = `${CD}/Actions/VirtualMedia.InsertMedia`;
    const control = new URL("/profiles", site.simulator.controlUrl).href;
    await takeOn("media_downloaded");
    const refused = await post(INSERT, { Image: "http://127.0.0.1:9/a.iso" });
    expect(refused.status).toBe(500);
    expect(JSON.stringify(refused.json())).toContain("could not be downloaded");
    expect(await truth()).toMatchObject({ media: null });
    expect((await post(INSERT, { Image: control })).status).toBe(204);
    expect(await truth()).toMatchObject({ media: control });
    await post(`${CD}/Actions/VirtualMedia.EjectMedia`, {});
  });

  test("that gives its reason in the message alone has nothing else to go by", async () => {
    await takeOn("reason_in_message_only");
    const reply = await patch({ Boot: { BootSourceOverrideTarget: "Tape" } });
    expect(reply.status).toBe(400);
    expect(reply.json()).toEqual({
      error: {
        code: "Base.1.0.GeneralError",
        message: expect.stringContaining("Boot/BootSourceOverrideTarget"),
        "@Message.ExtendedInfo": [{ MessageId: "Base.1.0.GeneralError" }],
      },
    });
  });

  test("without sessions says so in its root, and takes Basic", async () => {
    await takeOn("no_sessions");
    const root = await site.redfish(MACHINE, "/redfish/v1/", { auth: null });
    expect(root.text).not.toContain("Session");
    const account = { UserName: "root", Password: "x" };
    expect((await post("/redfish/v1/SessionService/Sessions", account)).status).toBe(404);
    expect((await site.redfish(MACHINE, SYSTEM)).status).toBe(200);
  });

  test("that accepts unknown resets lists none and does nothing for them", async () => {
    await takeOn("unknown_resets_accepted");
    expect((await system()).Actions).toEqual({
      "#ComputerSystem.Reset": { target: `${SYSTEM}/Actions/ComputerSystem.Reset` },
    });
    const { effects } = await truth();
    expect((await reset("Sing")).status).toBe(204);
    expect((await post(`${SYSTEM}/Actions/ComputerSystem.Reset`, {})).status).toBe(400);
    expect((await truth()).effects).toEqual(effects);
  });
});

test("a controller with several systems lists the neighbour's first, and answers for it with its own account", async () => {
  await takeOn("several_systems");
  const neighbour = await truth<{ system_uuid: string; serial: string }>("m-rack1-02");
  const { Members } = (await site.redfish(MACHINE, "/redfish/v1/Systems")).json<{ Members: unknown[] }>();
  expect(Members).toEqual([{ "@odata.id": "/redfish/v1/Systems/2" }, { "@odata.id": SYSTEM }]);
  const other = await site.redfish(MACHINE, "/redfish/v1/Systems/2");
  expect(other.json()).toMatchObject({ UUID: neighbour.system_uuid, SerialNumber: neighbour.serial });
  expect(other.text).not.toContain(`${SYSTEM}"`);
  const seen = new Set<string>();
  const open = ["/redfish/v1/Systems/2"];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    expect([path, (await site.redfish(MACHINE, path)).status]).toEqual([path, 200]);
    for (const [, link = ""] of (await site.redfish(MACHINE, path)).text.matchAll(/"@odata\.id":"([^"]+)"/g))
      open.push(link);
  }
  expect([...seen].some((path) => path.startsWith("/redfish/v1/Managers/bmc2/VirtualMedia/"))).toBe(true);
  await post("/redfish/v1/Systems/2/Actions/ComputerSystem.Reset", { ResetType: "ForceOff" });
  expect([(await truth("m-rack1-02")).power, (await truth()).power]).toEqual(["powering_off", "on"]);
  expect((await site.redfish(MACHINE, "/redfish/v1/Systems/2", { auth: null })).status).toBe(401);
  const { body } = await site.control<{ bmc_endpoint: string }[]>("GET", "/inventory/machines");
  expect(body[0]?.bmc_endpoint).toMatch(/^127\.65\.1\.1:\d+\/redfish\/v1\/Systems\/1$/);
});

describe("late power", () => {
  test.each([
    ["ForceOff", { PowerState: "On" }, { power: "off", reported_power: "off" }],
    ["On", { PowerState: "Off" }, { power: "on", reported_power: "on" }],
  ])("of %s shows the old state first", async (type, before, after) => {
    await takeOn("late_power");
    expect((await reset(type)).status).toBe(204);
    expect(await system()).toMatchObject(before);
    await waitAtSpeed(async () => expect(await truth()).toMatchObject(after));
  });

  test("of a restart begins the self-test later", async () => {
    await takeOn("ideal");
    await site.control("POST", `/devices/${MACHINE}/power`, { power: "on" });
    await takeOn("late_power");
    const { LastResetTime } = await system();
    await reset("ForceRestart");
    expect(await system()).toMatchObject({ PowerState: "On", LastResetTime });
    await waitAtSpeed(async () => expect((await system()).LastResetTime).not.toBe(LastResetTime));
  });

  test("of a shelf shows the old state first", async () => {
    await takeOn("late_power", SHELF);
    const chassis = "/redfish/v1/Chassis/powershelf";
    const body = { ForceOffType: "ForceOff" };
    await site.redfish(SHELF, `${chassis}/Actions/Chassis.ForceOff`, { method: "POST", body });
    expect((await site.redfish(SHELF, chassis)).json()).toMatchObject({ PowerState: "On" });
    await waitAtSpeed(async () => expect(await truth(SHELF)).toMatchObject({ power: "off", reported_power: "off" }));
    await takeOn("ideal", SHELF);
  });
});

/** All waiting is simulated time: at a hundredfold speed, eleven seconds are nothing. */
async function waitAtSpeed(check: () => Promise<void>): Promise<void> {
  await site.control("PUT", "/speed", { speed: 100 });
  await expect
    .poll(
      () =>
        check().then(
          () => true,
          () => false,
        ),
      { timeout: 5_000, interval: 20 },
    )
    .toBe(true);
  await site.control("PUT", "/speed", { speed: 1 });
}
