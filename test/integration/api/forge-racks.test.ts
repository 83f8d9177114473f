import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import { SwitchService } from "../../../contract/millwright/v1/switch_pb.js";
import { LISTED_ROWS } from "../../support/listed-rows.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, dumpTables, type ForgeUnderTest, refusal, startForge } from "./forge-under-test.ts";

let it: ForgeUnderTest;
let racks: ReturnType<typeof createClient<typeof RackService>>;
beforeAll(async () => {
  it = await startForge();
  racks = createClient(RackService, it.api.grpc());
});
afterAll(() => it.close());

const part = (count: number) => ({ count });
const put = (name: string, count = 1) =>
  racks.putRackProfile({
    profile: { name, hardwareType: "gb200", compute: part(count), switches: part(9), powerShelves: part(8) },
  });
const rackOf = async (id: string) => (await racks.getRack({ id })).rack;

describe("expected racks", () => {
  test("make a rack with their profile, which says what is missing", async () => {
    await put("nvl72", 18);
    await it.forge.addExpectedRack(
      { rackId: { id: "rack-1" }, rackProfileId: { id: "nvl72" }, metadata: { labels: [{ key: "row", value: "7" }] } },
      as("ann"),
    );
    expect((await it.forge.getRack({ id: "rack-1" })).rack).toMatchObject([
      { id: { id: "rack-1" }, rackState: "Created", status: { lifecycle: { state: '{"state":"created"}' } } },
    ]);
    const { rackIds } = await it.forge.findRackIds({ label: { key: "row", value: "7" } });
    expect(rackIds.map(({ id }) => id)).toEqual(["rack-1"]);
    const found = async (label?: { key: string; value?: string }) =>
      (await it.forge.findRackIds(label ? { label } : {})).rackIds.length;
    expect([await found(), await found({ key: "row" }), await found({ key: "row", value: "8" })]).toEqual([1, 1, 0]);
    expect([await found({ key: "hall" }), await found({ key: "" })]).toEqual([0, 0]);
    expect(await it.forge.getRackProfile({ rackId: { id: "rack-1" } })).toMatchObject({
      rackProfileId: { id: "nvl72" },
      profile: { rackHardwareType: { value: "gb200" }, capabilities: { compute: { count: 18 }, switch: { count: 9 } } },
    });
    expect((await it.forge.findRackStateHistories({ rackIds: [{ id: "rack-1" }] })).histories["rack-1"]).toMatchObject({
      records: [{ state: '{"state": "created"}' }],
    });
  });

  test("that are updated change the profile of their rack", async () => {
    await put("small");
    await it.forge.updateExpectedRack({ rackId: { id: "rack-1" }, rackProfileId: { id: "small" } });
    expect((await rackOf("rack-1"))?.profile).toBe("small");
    expect(await refusal(racks.deleteRackProfile({ name: "small" }))).toMatchObject({ code: Code.FailedPrecondition });
  });

  test("are replaced as a whole, and their racks stay", async () => {
    await it.forge.replaceAllExpectedRacks({
      expectedRacks: [{ rackId: { id: "rack-2" }, rackProfileId: { id: "nvl72" } }],
    });
    expect((await it.forge.getAllExpectedRacks({})).expectedRacks.map(({ rackId }) => rackId?.id)).toEqual(["rack-2"]);
    expect((await racks.listRacks({})).racks.map(({ id }) => id)).toEqual(["rack-1", "rack-2"]);
  });

  test.each([
    ["no rack", { rackProfileId: { id: "small" } }, Code.InvalidArgument],
    ["no profile", { rackId: { id: "rack-9" } }, Code.InvalidArgument],
    [
      "a rack id that is too long",
      { rackId: { id: "r".repeat(65) }, rackProfileId: { id: "small" } },
      Code.InvalidArgument,
    ],
    [
      "a rack that is expected already",
      { rackId: { id: "rack-2" }, rackProfileId: { id: "small" } },
      Code.AlreadyExists,
    ],
  ])("with %s are refused and change nothing", async (_, row, code) => {
    const before = await dumpTables(it.db, ["expected_racks"]);
    expect(await refusal(it.forge.addExpectedRack(row))).toMatchObject({ code });
    expect(await dumpTables(it.db, ["expected_racks"])).toEqual(before);
  });
});

describe("expected switches", () => {
  const row = {
    bmcMacAddress: "02:00:00:00:00:01",
    bmcUsername: "root",
    bmcPassword: "bmc-secret",
    switchSerialNumber: "SN1",
    bmcIpAddress: "192.0.2.7:8443",
    nvosMacAddresses: ["02-00-00-00-00-02"],
    nvosUsername: "admin",
    nvosPassword: "nvos-secret",
    rackId: { id: "rack-3" },
  };

  test("put their rack on record, and show neither password", async () => {
    await it.forge.addExpectedSwitch(row);
    const shown = await it.forge.getExpectedSwitch({ bmcMacAddress: row.bmcMacAddress });
    expect(shown).toMatchObject({ nvosMacAddresses: ["02:00:00:00:00:02"], nvosUsername: "admin", bmcPassword: "" });
    expect(shown.nvosPassword).toBeUndefined();
    expect((await rackOf("rack-3"))?.state).toBe("created");
    const secrets = await it.db.query<{ name: string }>(
      "select name from secrets where name like '%02:00:00:00:00:01'",
    );
    expect(secrets.map(({ name }) => name).toSorted()).toEqual(["bmc/02:00:00:00:00:01", "nvos/02:00:00:00:00:01"]);
  });

  test.each([
    ["an NVOS password without a name", { nvosUsername: "" }],
    ["a new NVOS name without a password", { nvosUsername: "other", nvosPassword: "" }],
    ["an NVOS MAC address that is none", { nvosMacAddresses: ["nonsense"] }],
  ])("with %s are refused", async (_, change) => {
    expect(await refusal(it.forge.updateExpectedSwitch({ ...row, ...change }))).toMatchObject({
      code: Code.InvalidArgument,
    });
  });

  test("take both passwords with them", async () => {
    await it.forge.deleteExpectedSwitch({ bmcMacAddress: row.bmcMacAddress });
    expect(await it.db.query("select name from secrets where name like '%02:00:00:00:00:01'")).toEqual([]);
  });
});

test("a machine that moves mentions both racks", async () => {
  const registered = (rack: string) => ({ machineId: "m-1", spec: { rack } });
  const { registerMachine } = await import("../../../src/services/machine/machines.ts");
  const nobody = { name: "ann", roles: [], address: null };
  const spec = {
    provider: "",
    serial: "",
    macAddresses: [],
    slot: "",
    location: "",
    customerId: "",
    targetClusterRef: "",
    sshEndpoint: "",
    sshHostKey: "",
    jumpHosts: [],
    bmcEndpoint: "",
    bmcProtocol: "",
    bmcTlsTrust: "",
  };
  await registerMachine(it.deps, nobody, { id: "m-1", labels: {}, spec: { ...spec, ...registered("rack-4").spec } });
  await it.db.execute("delete from work where kind = 'rack'");
  await registerMachine(it.deps, nobody, { id: "m-1", labels: {}, spec: { ...spec, ...registered("rack-5").spec } });
  const woken = await it.db.query<{ id: string }>("select id from work where kind = 'rack' order by id");
  expect(woken.map(({ id }) => id)).toEqual(["rack-4", "rack-5"]);
  expect((await rackOf("rack-5"))?.counts[0]).toMatchObject({ kind: "compute tray", have: 1 });
});

describe("switches and racks in lists", () => {
  let switches: ReturnType<typeof createClient<typeof SwitchService>>;
  beforeAll(async () => {
    switches = createClient(SwitchService, it.api.grpc());
    await LISTED_ROWS.switches(it.db, 1, 13);
  });
  const idsOf = async (request: object) => (await switches.listSwitches(request)).switches.map(({ id }) => id);

  test("switches are found by filters, in any order, and those marked for deletion only when they are asked for", async () => {
    expect(await idsOf({ filter: "fabric=not_ok", orderBy: "tray_index desc" })).toEqual([
      "sw-00007",
      "sw-00013",
      "sw-00011",
      "sw-00001",
    ]);
    expect(await idsOf({ rackId: "rack-1", state: "bomvalidating" })).toEqual([]);
    expect(await idsOf({ nvosMac: "DD-00-00-00-00-07" })).toEqual(["sw-00007"]);
    expect(await idsOf({ filter: "deleted=true" })).toEqual(["sw-00005", "sw-00010"]);
    expect((await switches.listSwitches({ withTotal: true, pageSize: 2 })).totalSize).toBe(11);
  });

  test("a switch is shown with its place, fabric and why, and is read when somebody asks", async () => {
    const { switch: one } = await switches.getSwitch({ id: "sw-00004" });
    expect(one).toMatchObject({
      ...{
        name: "Switch 4",
        rackId: "rack-0",
        state: "error",
        stuck: true,
        failing: true,
        failingSince: expect.anything(),
      },
      ...{ stateDetail: { cause: "it refused" }, powerState: "on", os: { macs: [] } },
    });
    await it.db.execute("delete from work where kind = 'switch'");
    await switches.refreshSwitch({ id: "sw-00004" });
    expect(await it.db.query("select id from work where kind = 'switch' and wake_at <= now()")).toEqual([
      { id: "sw-00004" },
    ]);
    expect(await refusal(switches.refreshSwitch({ id: "sw-none" }))).toMatchObject({ code: Code.NotFound });
  });

  test("a rack shows the wanted version of each component beside the one that its devices have", async () => {
    await put("measured", 0);
    await it.db.execute(
      `insert into rack_firmware (id, config, components, hardware_type, is_default, state)
       values ('fw-9', '""', '[{"device": "switch", "component": "bmc", "class": "prod", "version": "9.0", "digest": "sha256:${"a".repeat(64)}",
               "bytes": 1, "targets": [], "activation": "bmc_reset", "order": 0,
               "file": {"name": "f", "url": "http://files/f", "bytes": null, "sign": "bearer"}}]', 'gb200', true, 'available')`,
    );
    await it.db.execute(
      `insert into racks (id, name, rack_profile_id, state) values ('rack-1', 'rack-1', 'measured', 'ready')
       on conflict (id) do update set rack_profile_id = 'measured'`,
    );
    await it.db.execute(
      `update switches set facts = facts || '{"firmware": {"BMC": "8.7"}}', outcome = '{"type": "failing", "reason": "its BMC is silent"}' where id = 'sw-00001'`,
    );
    const rack = await rackOf("rack-1");
    expect(rack?.firmware).toBe("fw-9");
    expect(rack?.members.find(({ id }) => id === "sw-00001")).toMatchObject({
      ...{ kind: "switch", name: "Switch 1", state: "error", why: "its BMC is silent" },
      ...{ wantedFirmware: "fw-9", firmware: [{ component: "bmc", installed: "8.7", wanted: "9.0" }] },
    });
    // Maintenance of one switch gave it another: the others are still measured by the default, and a later maintenance of them changes nothing of it.
    const maintained = (id: string, firmware: string, at: string, device: string) => {
      const of = (kind: string) => ({
        devices: kind === "switch" ? [device] : [],
        components: [{ device: "switch", component: "bmc", version: "8.7", targets: [] }],
      });
      const payload = {
        firmware_id: firmware,
        compute: of("compute"),
        switch: of("switch"),
        power_shelf: of("power_shelf"),
      };
      return it.db.execute(
        `insert into runs (id, target_kind, target_id, request_id, fingerprint, type, plan_id, plan, job_id, attempt, action, initiator, state, facts, created_at)
         values ($1, 'rack', 'rack-1', $1, '', '', 'p', $2::jsonb, $1, 1, 'start', 'ann', 'SUCCEEDED', '{}', $3)`,
        [
          id,
          JSON.stringify({ planId: "p", steps: [{ name: "firmware_upgrade", kind: "rack_firmware", payload }] }),
          at,
        ],
      );
    };
    await maintained("run-a", "fw-7", "2026-01-01", "sw-00001");
    await maintained("run-b", "fw-8", "2026-01-02", "sw-00001");
    await maintained("run-c", "fw-6", "2026-01-03", "sw-00007");
    const after = await rackOf("rack-1");
    const wantedBy = (id: string) => after?.members.find((member) => member.id === id)?.wantedFirmware;
    expect([wantedBy("sw-00001"), wantedBy("sw-00013")]).toEqual(["fw-8", "fw-9"]);
  });

  test("racks that need somebody come first by urgency", async () => {
    await it.db.execute("update racks set state = 'error' where id = 'rack-3'");
    const { racks: listed } = await racks.listRacks({ orderBy: "urgency desc, id" });
    expect(listed[0]).toMatchObject({ id: "rack-3", urgency: 3, stuck: true });
    expect((await racks.listRacks({ stuckOnly: true })).racks.map(({ id }) => id)).toEqual(["rack-3"]);
  });
});

test("what a run has written to a tray counts, although nobody has inspected the tray since", async () => {
  const steps = [{ name: "update_bmc", kind: "update_firmware", payload: { component: "bmc", version: "9.1" } }];
  const components = [
    {
      ...{ device: "compute", component: "bmc", class: "prod", version: "9.1", digest: `sha256:${"b".repeat(64)}` },
      ...{ targets: [], activation: "bmc_reset", order: 0 },
      file: { name: "f", url: "http://files/f", bytes: null, sign: "bearer" },
    },
  ];
  await it.db.execute("update rack_firmware set components = $1::jsonb where id = 'fw-9'", [
    JSON.stringify(components),
  ]);
  await it.db.execute(
    `insert into machines (id, provider, state, rack, facts) values
       ('m-flashed', 'redfish', 'READY', 'rack-1', '{"firmware": {"BMC": "9.0"}, "bmcFirmware": "9.0", "observedAt": "2026-01-01T00:00:00.000Z"}')`,
  );
  const installed = async () =>
    (await rackOf("rack-1"))?.members.find(({ id }) => id === "m-flashed")?.firmware.map((each) => each.installed);
  expect(await installed()).toEqual(["9.0"]);
  const ran = (id: string, state: string, at: string, plan: readonly object[], visits: readonly object[]) =>
    it.db.execute(
      `insert into runs (id, target_kind, target_id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, attempt, action, initiator, state, facts, created_at)
       values ($1, 'machine', 'm-flashed', 'm-flashed', $1, '', '', 'p', $2::jsonb, $1, 1, 'start', 'ann', $3, $4::jsonb, $5)`,
      [
        id,
        JSON.stringify({ planId: "p", displayName: "", steps: plan, builtIn: true }),
        state,
        JSON.stringify({ startedAt: at, finishedAt: at, steps: visits }),
        at,
      ],
    );
  await ran("run-flash", "SUCCEEDED", "2026-01-02T00:10:00.000Z", steps, []);
  expect(await installed()).toEqual(["9.1"]);
  const of = (version: string, activation: string) => [
    { name: "update_bmc", kind: "update_firmware", payload: { component: "bmc", version, activation } },
    { name: "update_bios", kind: "update_firmware", payload: { component: "bios", version: "7", activation } },
  ];
  const proven = [{ name: "update_bmc", state: "SUCCEEDED", actingAt: "2026-01-03T00:00:00.000Z" }];
  // Ended between two components: the first is there all the same, unless it still waits for a restart.
  await ran("run-ended", "CANCELED", "2026-01-03T00:10:00.000Z", of("9.2", "none"), proven);
  await ran("run-waits", "CANCELED", "2026-01-04T00:10:00.000Z", of("9.3", "bmc_reset"), proven);
  expect(await installed()).toEqual(["9.2"]);
});
