import { connect as connectTcp } from "node:net";
import { networkInterfaces } from "node:os";
import { connect as connectTls } from "node:tls";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startTemporarySimulator } from "../testing/temporary-simulator.ts";

const LITEON = "rack-1-shelf-1";
const STANDARD = "rack-2-shelf-1";
const LITEON_CHASSIS = "/redfish/v1/Chassis/powershelf";
const STANDARD_CHASSIS = "/redfish/v1/Chassis/chassis";

type TemporarySimulator = Awaited<ReturnType<typeof startTemporarySimulator>>;
let site: TemporarySimulator;
/** Any characters; the arbitrary of all of Unicode takes seconds to build. */
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array).toString("latin1"));
const reports: string[] = [];

beforeAll(async () => {
  site = await startTemporarySimulator({ speed: 1_000_000, log: (line) => reports.push(line) });
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
const fault = (rule: unknown) => site.control("POST", "/faults", rule);
const effects = async (device: string) =>
  (await site.control<{ effects: Record<string, number> }>("GET", `/devices/${device}`)).body.effects;

describe("Redfish", () => {
  test("only the service root is readable without credentials", async () => {
    const root = await site.redfish(LITEON, "/redfish/v1/", { auth: null });
    expect(root.status).toBe(200);
    expect(root.headers["odata-version"]).toBe("4.0");
    for (const path of [
      LITEON_CHASSIS,
      "/redfish/v1/Chassis",
      "/redfish/v1/SessionService/Sessions",
      "/redfish/v1/Nowhere",
    ]) {
      expect((await site.redfish(LITEON, path, { auth: null })).status).toBe(401);
    }
  });

  test.each([LITEON, STANDARD])("every link that %s shows leads somewhere", async (device) => {
    const seen = new Set<string>();
    const open = ["/redfish/v1/"];
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      if (seen.has(path)) continue;
      seen.add(path);
      const reply = await site.redfish(device, path);
      expect([path, reply.status]).toEqual([path, 200]);
      for (const [, link = ""] of reply.text.matchAll(/"@odata\.id":"([^"]+)"/g)) open.push(link);
    }
    expect(seen.size).toBeGreaterThan(25);
  });

  test("the Lite-On layout shows its shelf, six supplies, its manager and its MAC", async () => {
    const { body: device } = await site.control<{ serial: string; mac: string }>("GET", `/devices/${LITEON}`);
    expect(await get(LITEON, LITEON_CHASSIS)).toMatchObject({
      ChassisType: "Shelf",
      Manufacturer: "LITE-ON",
      Model: "PF-1333-7R",
      SerialNumber: device.serial,
      PowerState: "On",
    });
    expect(await get(LITEON, `${LITEON_CHASSIS}/PowerSubsystem/PowerSupplies`)).toMatchObject({
      "Members@odata.count": 6,
    });
    expect(await get(LITEON, `${LITEON_CHASSIS}/PowerSubsystem/PowerSupplies/ps5`)).toMatchObject({
      PowerState: true,
      SerialNumber: expect.any(String),
      FirmwareVersion: expect.any(String),
      Status: { Health: "OK" },
    });
    expect(await get(LITEON, "/redfish/v1/Managers/bmc")).toMatchObject({ FirmwareVersion: "r1.3.9" });
    expect(await get(LITEON, "/redfish/v1/Managers/bmc/EthernetInterfaces/eth0")).toMatchObject({
      MACAddress: device.mac,
    });
    expect(await get(LITEON, "/redfish/v1/Systems/system")).toMatchObject({ PowerState: "PoweringOff" });
  });

  test("the standard layout says with the supplies' state what is off, and has no system", async () => {
    await site.redfish(STANDARD, `${STANDARD_CHASSIS}/Actions/Chassis.Reset`, {
      method: "POST",
      body: { ResetType: "ForceOff" },
    });
    await expect.poll(() => get(STANDARD, STANDARD_CHASSIS), { timeout: 9_000 }).toMatchObject({ PowerState: "Off" });
    expect(await get(STANDARD, `${STANDARD_CHASSIS}/PowerSubsystem/PowerSupplies/ps0`)).toMatchObject({
      Status: { State: "StandbyOffline" },
    });
    expect((await site.redfish(STANDARD, "/redfish/v1/Systems")).status).toBe(404);
  });

  test("Lite-On's own actions switch the output, and sensors and log follow", async () => {
    const device = "rack-1-shelf-2";
    const off = { method: "POST", body: { ForceOffType: "ForceOff" } };
    expect((await site.redfish(device, `${LITEON_CHASSIS}/Actions/Chassis.ForceOff`, off)).status).toBe(200);
    await expect.poll(() => get(device, LITEON_CHASSIS), { timeout: 9_000 }).toMatchObject({ PowerState: "Off" });
    expect(await get(device, `${LITEON_CHASSIS}/Sensors/output_power`)).toMatchObject({
      Reading: 0,
      ReadingUnits: "W",
    });
    await site.redfish(device, `${LITEON_CHASSIS}/Actions/Chassis.On`, { method: "POST", body: { OnType: "On" } });
    await expect.poll(() => get(device, LITEON_CHASSIS), { timeout: 9_000 }).toMatchObject({ PowerState: "On" });
    const entries = "/redfish/v1/Managers/bmc/LogServices/EventLog/Entries";
    const log = await get<{ Members: { Message: string }[] }>(device, entries);
    expect(log.Members.map(({ Message }) => Message)).toEqual([
      "Power off was requested.",
      "The output was switched off.",
      "Power on was requested.",
      "The output was switched on.",
    ]);
    expect(await get(device, `${entries}?$skip=1&$top=1`)).toMatchObject({
      Members: [{ Id: "2" }],
      "Members@odata.count": 4,
    });
    expect((await site.redfish(device, `${entries}?$top=-1`)).status).toBe(400);
    expect(await effects(device)).toMatchObject({ power_on_commands: 1, power_off_commands: 1, power_changes: 2 });
  });

  test.each([
    ["no body", {}, "ActionParameterMissing"],
    ["malformed JSON", { rawBody: "{" }, "MalformedJSON"],
    ["something else than an object", { body: [1] }, "UnrecognizedRequestBody"],
    ["a parameter of another action", { body: { ResetType: "On" } }, "ActionParameterUnknown"],
    ["a value that is not allowed", { body: { OnType: "Off" } }, "ActionParameterValueNotInList"],
    ["a value of another type", { body: { OnType: { On: "On" } } }, "ActionParameterValueNotInList"],
  ])("an action with %s is refused and changes nothing", async (_what, call, message) => {
    const before = await effects(LITEON);
    const reply = await site.redfish(LITEON, `${LITEON_CHASSIS}/Actions/Chassis.On`, { method: "POST", ...call });
    expect(reply.status).toBe(400);
    expect(reply.json()).toMatchObject({ error: { "@Message.ExtendedInfo": [{ MessageId: `Base.1.16.${message}` }] } });
    expect(await effects(LITEON)).toEqual(before);
  });

  test("a method that a resource lacks is refused with those that it has", async () => {
    const reply = await site.redfish(LITEON, "/redfish/v1/AccountService", { method: "PATCH", body: {} });
    expect([reply.status, reply.headers.allow]).toEqual([405, "GET, HEAD"]);
    expect((await site.redfish(LITEON, "/redfish/v1/Chassis/other")).status).toBe(404);
  });

  test("a body that is too large is refused", async () => {
    const reply = await site.redfish(LITEON, `${LITEON_CHASSIS}/Actions/Chassis.On`, {
      method: "POST",
      rawBody: "x".repeat(70_000),
    });
    expect(reply.status).toBe(413);
  });

  test("a session signs in until it is deleted", async () => {
    const { body: rows } = await site.control<{ bmc_password: string }[]>("GET", "/inventory");
    const account = { UserName: "root", Password: rows[0]?.bmc_password };
    const created = await site.redfish(LITEON, "/redfish/v1/SessionService/Sessions", {
      method: "POST",
      auth: null,
      body: account,
    });
    expect(created.status).toBe(201);
    const call = { auth: null, headers: { "X-Auth-Token": String(created.headers["x-auth-token"]) } };
    expect((await site.redfish(LITEON, LITEON_CHASSIS, call)).status).toBe(200);
    expect((await site.redfish(LITEON, String(created.headers.location), { ...call, method: "DELETE" })).status).toBe(
      204,
    );
    expect((await site.redfish(LITEON, LITEON_CHASSIS, call)).status).toBe(401);
  });

  test("ten wrong passwords lock the account of that device only", async () => {
    const wrong = { auth: ["root", "wrong"] as const };
    for (let attempt = 0; attempt < 10; attempt += 1)
      expect((await site.redfish("rack-1-shelf-8", LITEON_CHASSIS, wrong)).status).toBe(401);
    const locked = await site.redfish("rack-1-shelf-8", LITEON_CHASSIS);
    expect(locked.status).toBe(401);
    expect(locked.text).toContain("locked");
    expect((await site.redfish("rack-1-shelf-7", LITEON_CHASSIS)).status).toBe(200);
  });

  test("an address without a device is cut before anything is said", async () => {
    const socket = connectTcp({ host: "127.64.99.1", port: site.simulator.redfishPort });
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.on("error", () => {}).on("close", () => resolve("closed"));
    expect(await promise).toBe("closed");
  });

  const outside = Object.values(networkInterfaces())
    .flat()
    .find((face) => face?.family === "IPv4" && !face.internal)?.address;
  test.skipIf(outside === undefined)("an address outside of loopback is cut before anything is said", async () => {
    const socket = connectTcp({ host: outside ?? "", port: site.simulator.redfishPort });
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.on("error", () => {}).on("close", () => resolve("closed"));
    expect(await promise).toBe("closed");
  });

  test("what is not HTTP is refused", async () => {
    const address = { host: "127.64.1.1", port: site.simulator.redfishPort };
    const socket = connectTls({ ...address, rejectUnauthorized: false }, () => socket.write("\u0000 nonsense\r\n\r\n"));
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    socket.once("data", (chunk: Buffer) => resolve(chunk.toString())).once("error", reject);
    expect(await promise).toMatch(/^HTTP\/1\.1 400 /);
    socket.destroy();
  });

  test("no path, method or body brings it down", async () => {
    const call = fc.record({
      method: fc.constantFrom("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS"),
      path: fc.oneof(
        fc.stringMatching(/^\/[!-~]{0,40}$/),
        fc.constantFrom(
          LITEON_CHASSIS,
          `${LITEON_CHASSIS}/Actions/Chassis.Nothing`,
          "/redfish/v1/SessionService/Sessions",
          "//",
          "/%",
          "/redfish/v1/__proto__",
        ),
      ),
      rawBody: fc.oneof(fc.json(), bytes, fc.constant("[".repeat(60_000))),
      headers: fc.constantFrom({}, { "X-Auth-Token": "" }, { Authorization: "Basic ====" }, { Authorization: "Basic" }),
    });
    await fc.assert(
      fc.asyncProperty(call, async ({ headers, ...rest }) => {
        const reply = await site.redfish("rack-1-shelf-6", rest.path, {
          ...rest,
          ...(Object.keys(headers).length > 0 ? { auth: null, headers } : {}),
        });
        expect(reply.status).toBeGreaterThanOrEqual(200);
        expect(reply.status).toBeLessThan(500);
      }),
      { numRuns: 50 },
    );
    expect((await site.redfish("rack-1-shelf-5", LITEON_CHASSIS)).status).toBe(200);
  });
});

describe("faults on the wire", () => {
  test("a status is answered instead, with body and headers, as often as the rule says, and nothing is done", async () => {
    await fault({
      device: LITEON,
      method: "POST",
      fault: { type: "status", status: 503, headers: { "Retry-After": "7" } },
      times: 1,
    });
    const before = await effects(LITEON);
    const on = { method: "POST", body: { OnType: "On" } };
    const refused = await site.redfish(LITEON, `${LITEON_CHASSIS}/Actions/Chassis.On`, on);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "7"]);
    expect(refused.json()).toHaveProperty("error.code");
    expect(await effects(LITEON)).toEqual(before);
    expect((await site.redfish(LITEON, `${LITEON_CHASSIS}/Actions/Chassis.On`, on)).status).toBe(200);
  });

  test("a drop cuts the connection; after the deed, when the rule says so", async () => {
    const on = { method: "POST", body: { OnType: "On" } };
    const before = await effects(LITEON);
    await fault({ device: LITEON, fault: { type: "drop" }, times: 1 });
    await expect(site.redfish(LITEON, `${LITEON_CHASSIS}/Actions/Chassis.On`, on)).rejects.toThrow();
    expect(await effects(LITEON)).toEqual(before);
    await fault({ device: LITEON, fault: { type: "drop", when: "after" }, times: 1 });
    await expect(site.redfish(LITEON, `${LITEON_CHASSIS}/Actions/Chassis.On`, on)).rejects.toThrow();
    expect((await effects(LITEON)).power_on_commands).toBe((before.power_on_commands ?? 0) + 1);
  });

  test("a hang says nothing until the client gives up, and harms no other device", async () => {
    await fault({ device: LITEON, fault: { type: "hang" } });
    const patience = new AbortController();
    const hung = site.redfish(LITEON, "/redfish/v1/", { signal: patience.signal });
    expect((await site.redfish(STANDARD, "/redfish/v1/")).status).toBe(200);
    patience.abort();
    await expect(hung).rejects.toThrow(/abort/i);
  });

  test("latency delays by real milliseconds, whatever the speed", async () => {
    await fault({ device: LITEON, fault: { type: "latency", ms: 60 } });
    const start = performance.now();
    expect((await site.redfish(LITEON, "/redfish/v1/")).status).toBe(200);
    expect(performance.now() - start).toBeGreaterThanOrEqual(55);
  });

  test("garbage is not JSON", async () => {
    await fault({ device: LITEON, path: LITEON_CHASSIS, fault: { type: "garbage" } });
    const reply = await site.redfish(LITEON, LITEON_CHASSIS);
    expect(reply.status).toBe(200);
    expect(() => reply.json()).toThrow(SyntaxError);
  });

  test("right credentials are refused, without locking the account", async () => {
    await fault({ device: LITEON, fault: { type: "wrong_credentials" }, times: 15 });
    for (let attempt = 0; attempt < 15; attempt += 1)
      expect((await site.redfish(LITEON, LITEON_CHASSIS)).status).toBe(401);
    expect((await site.redfish(LITEON, LITEON_CHASSIS)).status).toBe(200);
  });

  test("another serial is shown, and the true one again afterwards", async () => {
    const { SerialNumber: own } = await get(LITEON, LITEON_CHASSIS);
    await fault({ device: LITEON, fault: { type: "wrong_serial" }, times: 1 });
    await fault({ device: LITEON, fault: { type: "wrong_serial", serial: "OTHER" }, times: 1 });
    expect((await get(LITEON, LITEON_CHASSIS)).SerialNumber).not.toBe(own);
    expect((await get(LITEON, LITEON_CHASSIS)).SerialNumber).toBe("OTHER");
    expect((await get(LITEON, LITEON_CHASSIS)).SerialNumber).toBe(own);
  });

  test("a command is accepted and nothing happens", async () => {
    await fault({ device: "rack-1-shelf-3", fault: { type: "lie_accept" } });
    const off = { method: "POST", body: { ForceOffType: "ForceOff" } };
    expect((await site.redfish("rack-1-shelf-3", `${LITEON_CHASSIS}/Actions/Chassis.ForceOff`, off)).status).toBe(200);
    expect(await effects("rack-1-shelf-3")).toMatchObject({ power_off_commands: 1, power_changes: 0 });
    expect(await get("rack-1-shelf-3", LITEON_CHASSIS)).toMatchObject({ PowerState: "On" });
  });

  test("the wanted state is reported while the sensors tell the truth", async () => {
    const device = "rack-1-shelf-4";
    await fault({ device, fault: { type: "lie_state" }, times: 1 });
    await site.redfish(device, `${LITEON_CHASSIS}/Actions/Chassis.ForceOff`, {
      method: "POST",
      body: { ForceOffType: "ForceOff" },
    });
    await expect.poll(() => get(device, LITEON_CHASSIS), { timeout: 9_000 }).toMatchObject({ PowerState: "Off" });
    expect(
      (await get<{ Reading: number }>(device, `${LITEON_CHASSIS}/Sensors/output_voltage`)).Reading,
    ).toBeGreaterThan(48);
    expect((await site.control("GET", `/devices/${device}`)).body).toMatchObject({
      power: "on",
      reported_power: "off",
    });
    await site.control("DELETE", "/faults");
    expect(await get(device, LITEON_CHASSIS)).toMatchObject({ PowerState: "On" });
  });
});
