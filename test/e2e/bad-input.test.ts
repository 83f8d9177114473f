import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { Forge } from "../../contract/forge/forge_pb.js";
import { type DevSite, startDevSite } from "../support/dev-site.ts";
import { eventually } from "../support/eventually.ts";
import type { ServerProcess } from "../support/processes/server-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** Bad input at the surface of a running server: a clear refusal that names the field, and nothing is changed. */
let site: DevSite;
let server: ServerProcess;
let token: string;
let shelfId: string;

beforeAll(async () => {
  site = await startDevSite({ MILLWRIGHT_MONITOR_INTERVAL: "1h", MILLWRIGHT_MONITOR_EVENTS: "false" }); // nothing changes but by what we do
  ({ server, token } = site);
  shelfId = site.shelfIds[0] ?? "";
  await eventually(
    async () => {
      // A rack is passed every minute, and writes nothing.
      const work =
        "select 1 from work where kind <> 'rack' and (lease_owner is not null or wake_at < now() + interval '1 minute')";
      return (await site.database.db.query(work)).length === 0;
    },
    { what: "the controller has nothing to do", seen: server.process.transcript },
  );
});
afterAll(() => site.close());

/** All that a call could have changed. Machines are looked at all the time, and what changes there is told in the journal. */
async function everything(): Promise<unknown> {
  const [row] = await site.database.db.query(
    `select (select count(*) from journal where kind <> 'machine') as journal, (select count(*) from secrets) as secrets,
            (select count(*) from tokens) as tokens, (select count(*) from health_reports) as reports,
            (select jsonb_agg(to_jsonb(s) - 'facts' order by id) from power_shelves s) as shelves,
            (select jsonb_agg(to_jsonb(r) - 'facts' order by id) from racks r) as racks,
            (select jsonb_agg(to_jsonb(e) - 'facts' order by id) from expected_power_shelves e) as expected`,
  );
  return row;
}

const OFF = "POWER_SHELF_MAINTENANCE_OPERATION_POWER_OFF";
const MAINTENANCE = "forge.Forge/SetPowerShelfMaintenance";
const START = "millwright.v1.RackService/StartRackMaintenance";
const expected = {
  bmcMacAddress: "02:00:00:00:00:01",
  bmcUsername: "root",
  bmcPassword: "x",
  shelfSerialNumber: "S1",
  bmcIpAddress: "127.0.0.1:1",
  metadata: { name: "one" },
};

/** Method, body, status, and what the message must say. */
// biome-ignore format: a table is read by its columns
const REFUSALS: readonly (readonly [title: string, method: string, body: () => unknown, status: number, says: RegExp])[] = [
  ["no ids",                   MAINTENANCE, () => ({ powerShelfIds: [], operation: OFF }),                            400, /power_shelf_ids/],
  ["a malformed id",           MAINTENANCE, () => ({ powerShelfIds: [{ id: "No Such/Id" }], operation: OFF }),        400, /power_shelf_ids/],
  ["an empty id",              MAINTENANCE, () => ({ powerShelfIds: [{ id: "" }], operation: OFF }),                  400, /power_shelf_ids/],
  ["an endless id",            MAINTENANCE, () => ({ powerShelfIds: [{ id: "a".repeat(10_000) }], operation: OFF }),  400, /power_shelf_ids/],
  ["an id with a zero byte",   MAINTENANCE, () => ({ powerShelfIds: [{ id: "ps\u0000" }], operation: OFF }),          400, /power_shelf_ids/],
  ["too many ids",             MAINTENANCE, () => ({ powerShelfIds: Array.from({ length: 101 }, (_, n) => ({ id: `ps-${n}` })), operation: OFF }), 400, /power_shelf_ids.*100/],
  ["one unknown id of two",    MAINTENANCE, () => ({ powerShelfIds: [{ id: shelfId }, { id: "ps-unknown" }], operation: OFF }), 404, /ps-unknown/],
  ["no operation",             MAINTENANCE, () => ({ powerShelfIds: [{ id: shelfId }] }),                             400, /operation/],
  ["an unknown number",        MAINTENANCE, () => ({ powerShelfIds: [{ id: shelfId }], operation: 99 }),              400, /operation/],
  ["an unknown word",          MAINTENANCE, () => ({ powerShelfIds: [{ id: shelfId }], operation: "EXPLODE" }),       400, /operation.*POWER_OFF/],
  ["an unknown field",         MAINTENANCE, () => ({ powerShelfIds: [{ id: shelfId }], operation: OFF, forse: true }), 400, /forse/],
  ["an endless reference",     MAINTENANCE, () => ({ powerShelfIds: [{ id: shelfId }], operation: OFF, reference: "r".repeat(5_000) }), 400, /reference/],
  ["a text for a list",        MAINTENANCE, () => ({ powerShelfIds: shelfId, operation: OFF }),                       400, /power_shelf_ids/],
  ["a wrong type of request",  MAINTENANCE, () => [1, 2, 3],                                                          400, /./],
  ["an empty list of ids",     "forge.Forge/FindPowerShelvesByIds", () => ({ powerShelfIds: [] }),                    400, /power_shelf_ids/],
  ["an unknown deletion",      "forge.Forge/DeletePowerShelf", () => ({ id: { id: "ps-unknown" } }),                  404, /ps-unknown/],
  ["a deletion of nothing",    "forge.Forge/DeletePowerShelf", () => ({}),                                            400, /id/],
  ["a bad MAC address",        "forge.Forge/AddExpectedPowerShelf", () => ({ ...expected, bmcMacAddress: "zz" }),     400, /bmc_mac_address/],
  ["a bad endpoint",           "forge.Forge/AddExpectedPowerShelf", () => ({ ...expected, bmcIpAddress: "a b:1" }),   400, /bmc_ip_address/],
  ["a port out of range",      "forge.Forge/AddExpectedPowerShelf", () => ({ ...expected, bmcIpAddress: "127.0.0.1:70000" }), 400, /bmc_ip_address/],
  ["no user name",             "forge.Forge/AddExpectedPowerShelf", () => ({ ...expected, bmcUsername: "" }),         400, /bmc_username/],
  ["a bad UUID",               "forge.Forge/AddExpectedPowerShelf", () => ({ ...expected, expectedPowerShelfId: { value: "7" } }), 400, /expected_power_shelf_id/],
  ["one bad row of a list",    "forge.Forge/ReplaceAllExpectedPowerShelves", () => ({ expectedPowerShelves: [expected, { ...expected, bmcMacAddress: "" }] }), 400, /expected_power_shelves\[1\].bmc_mac_address/],
  ["the same row twice",       "forge.Forge/ReplaceAllExpectedPowerShelves", () => ({ expectedPowerShelves: [expected, expected] }), 400, /02:00:00:00:00:01/],
  ["a name of one letter",     "forge.Forge/UpdatePowerShelfMetadata", () => ({ powerShelfId: { id: shelfId }, metadata: { name: "x" } }), 400, /metadata.name/],
  ["a version of the past",    "forge.Forge/UpdatePowerShelfMetadata", () => ({ powerShelfId: { id: shelfId }, ifVersionMatch: "V0-T0", metadata: { name: "fine" } }), 400, /if_version_match/],
  ["a bad page size",          "millwright.v1.PowerShelfService/ListPowerShelves", () => ({ pageSize: -1 }),          400, /page_size/],
  ["a foreign page token",     "millwright.v1.PowerShelfService/ListPowerShelves", () => ({ pageToken: "bogus" }),    400, /page_token/],
  ["a foreign cursor",         "millwright.v1.HistoryService/ListHistory", () => ({ kind: "power_shelf", id: shelfId, pageToken: "bogus" }), 400, /page_token/],
  ["an unknown kind",          "millwright.v1.HistoryService/ListHistory", () => ({ kind: "spaceship", id: "x" }),    400, /kind/],
  ["an unknown role",          "millwright.v1.TokenService/CreateToken", () => ({ name: "eve", roles: ["emperor"] }), 400, /roles/],
  ["an unknown token",         "millwright.v1.TokenService/RevokeToken", () => ({ id: "0123456789abcdef" }),          404, /./],
  ["an unknown shelf",         "millwright.v1.PowerShelfService/GetPowerShelf", () => ({ id: "ps-unknown" }),         404, /ps-unknown/],
  ["an unknown rack",          START, () => ({ rackId: "rack-99" }),                                                  404, /rack-99 does not exist/],
  ["a rack in another case",   START, () => ({ rackId: "RACK-1" }),                                                   404, /RACK-1 does not exist/],
  ["no rack",                  START, () => ({}),                                                                     400, /rack_id/],
  ["a rack with a zero byte",  START, () => ({ rackId: "rack-1\u0000" }),                                             400, /rack_id/],
  ["a rack with a new line",   START, () => ({ rackId: "rack-1\nrack-2" }),                                           400, /rack_id/],
  ["a tray with an escape",    START, () => ({ rackId: "rack-1", machineIds: ["m\u001b[31m"] }),                      400, /machine_ids/],
  ["10,000 trays",             START, () => ({ rackId: "rack-1", machineIds: Array.from({ length: 10_000 }, (_, n) => `m-${n}`) }), 400, /machine_ids|scope/],
  ["an empty tray",            START, () => ({ rackId: "rack-1", machineIds: [""] }),                                 400, /machine_ids/],
  ["an unknown activity",      START, () => ({ rackId: "rack-1", activities: [{ kind: "explode" }] }),                400, /activities\[0\].kind/],
  ["an activity twice",        START, () => ({ rackId: "rack-1", activities: [{ kind: "power_sequence" }, { kind: "power_sequence" }] }), 400, /activities/],
  ["an unknown operation",     START, () => ({ rackId: "rack-1", activities: [{ kind: "power_sequence", operation: "melt" }] }), 400, /operation/],
  ["a version with a zero byte", START, () => ({ rackId: "rack-1", activities: [{ kind: "firmware_upgrade", firmwareVersion: "fw\u0000" }] }), 400, /firmware_version/],
  ["a component with a zero byte", START, () => ({ rackId: "rack-1", activities: [{ kind: "firmware_upgrade", components: ["bmc\u0000"] }] }), 400, /components/],
  ["a reference with a zero byte", START, () => ({ rackId: "rack-1", reference: "x\u0000" }),                         400, /reference/],
  ["an unknown rack to refresh", "millwright.v1.RackService/RefreshRack", () => ({ id: "rack-99" }),                  404, /rack-99/],
  ["no rack to refresh",       "millwright.v1.RackService/RefreshRack", () => ({}),                                   400, /id/],
  ["an unknown rack to end",   "millwright.v1.RackService/TerminateRackMaintenance", () => ({ rackId: "rack-99" }),   404, /rack-99/],
  ["an unknown rack to clear", "millwright.v1.RackService/ClearRackError", () => ({ rackId: "rack-99" }),             404, /rack-99/],
  ["an unknown rack to reprovision", "millwright.v1.RackService/ReprovisionRack", () => ({ rackId: "rack-99" }),      404, /rack-99/],
  ["an unknown field of racks", "millwright.v1.RackService/ListRacks", () => ({ filter: "colour=red" }),              400, /colour/],
  ["an unknown order of racks", "millwright.v1.RackService/ListRacks", () => ({ orderBy: "colour" }),                 400, /colour/],
  ["an unknown state of racks", "millwright.v1.RackService/ListRacks", () => ({ state: "broken" }),                   400, /state/],
  ["an unknown switch",        "millwright.v1.SwitchService/GetSwitch", () => ({ id: "sw-unknown" }),                 404, /sw-unknown/],
  ["a switch with a zero byte", "millwright.v1.SwitchService/GetSwitch", () => ({ id: "sw\u0000" }),                  400, /id/],
  ["an unknown switch to read", "millwright.v1.SwitchService/RefreshSwitch", () => ({ id: "sw-unknown" }),            404, /sw-unknown/],
  ["a bad MAC of a switch",    "millwright.v1.SwitchService/ListSwitches", () => ({ nvosMac: "zz" }),                 400, /nvos_mac/],
  ["an unknown state of switches", "millwright.v1.SwitchService/ListSwitches", () => ({ state: "broken" }),           400, /state/],
  ["10,000 racks",             "forge.Forge/FindRacksByIds", () => ({ rackIds: Array.from({ length: 10_000 }, (_, n) => ({ id: `rack-${n}` })) }), 400, /rack_ids.*100/],
  ["no racks",                 "forge.Forge/FindRacksByIds", () => ({}),                                              400, /rack_ids/],
  ["an unknown rack on demand", "forge.Forge/OnDemandRackMaintenance", () => ({ rackId: { id: "rack-99" } }),         404, /rack-99/],
  ["an empty activity",        "forge.Forge/OnDemandRackMaintenance", () => ({ rackId: { id: "rack-1" }, scope: { activities: [{}] } }), 400, /activit/],
  ["a rack name of one letter", "forge.Forge/UpdateRackMetadata", () => ({ rackId: { id: "rack-1" }, metadata: { name: "x" } }), 400, /metadata.name/],
];

describe("refused by name, without a trace", () => {
  test.each(REFUSALS)("%s (%s)", async (_title, method, body, status, says) => {
    const before = await everything();
    const answer = await server.call<{ code?: string; message?: string }>(method, body(), token);
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status, text: expect.stringMatching(says) });
    expect(answer.body.code, "an error says its code").toBeTruthy();
    expect(await everything()).toEqual(before);
  });
});

/** What never becomes a call: sent as it is. */
async function send(path: string, init: RequestInit): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${server.httpUrl}/${path}`, { method: "POST", ...init });
  return { status: answer.status, text: await answer.text() };
}

describe("what is no call at all", () => {
  const json = { "content-type": "application/json" };
  const signedIn = () => ({ ...json, authorization: `Bearer ${token}` });

  test.each([
    ["JSON that ends early", () => signedIn(), '{"powerShelfIds": [', 400],
    ["no JSON at all", () => signedIn(), "power off, please", 400],
    ["a byte that is no UTF-8", () => signedIn(), Buffer.from([0x7b, 0xff, 0x7d]), 400],
    ["protobuf that is none", () => ({ ...signedIn(), "content-type": "application/proto" }), "\u0007garbage", 400],
    ["a form", () => ({ ...signedIn(), "content-type": "application/x-www-form-urlencoded" }), "a=b", 415],
    ["no content type", () => ({ authorization: `Bearer ${token}` }), Buffer.from("{}"), 415],
    ["a message beyond all limits", () => signedIn(), JSON.stringify({ reference: "x".repeat(20_000_000) }), 429],
    ["no token", () => json, "{}", 401],
    ["an empty token", () => ({ ...json, authorization: "Bearer " }), "{}", 401],
    [
      "a token of nobody",
      () => ({ ...json, authorization: `Bearer mw_${"0".repeat(16)}_${"0".repeat(64)}` }),
      "{}",
      401,
    ],
    ["another scheme", () => ({ ...json, authorization: "Basic cm9vdDpyb290" }), "{}", 401],
  ] as const)("%s is refused with %4$s", async (_title, headers, body, status) => {
    const before = await everything();
    expect(await send(MAINTENANCE, { headers: headers(), body })).toMatchObject({ status });
    expect(await everything()).toEqual(before);
    expect((await server.get("/healthz")).status).toBe(200);
  });

  test("an unknown method and an unknown path are not found", async () => {
    expect(await send("forge.Forge/SelfDestruct", { headers: signedIn(), body: "{}" })).toMatchObject({ status: 404 });
    expect(await send("api/v1/nothing", { headers: signedIn(), body: "{}" })).toMatchObject({ status: 404 });
  });

  test("unknown enum numbers over gRPC are refused by field", async () => {
    const authorize: Interceptor = (next) => (call) => {
      call.header.set("authorization", `Bearer ${token}`);
      return next(call);
    };
    const transport = createGrpcTransport({ baseUrl: `http://${server.grpcAddress}`, interceptors: [authorize] });
    const forge = createClient(Forge, transport);
    const before = await everything();
    await expect(
      forge.setPowerShelfMaintenance({ powerShelfIds: [{ id: shelfId }], operation: 99 as never }),
    ).rejects.toThrow(/invalid_argument.*operation/);
    await expect(forge.findPowerShelfIds({ deleted: 99 as never })).rejects.toThrow(/invalid_argument.*deleted/);
    expect(await everything()).toEqual(before);
  });
});

test("none of it was an error of the server's own", () => {
  expect(server.process.stderr()).not.toMatch(/unexpectedly|"level":"(error|fatal)"/);
});
