import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineIdListSchema, SystemPowerControl } from "../../../contract/common/common_pb.js";
import {
  ComputeTrayComponent,
  FirmwareUpdateState,
  ComponentManagerStatusCode as Status,
} from "../../../contract/forge/component_pb.js";
import { PowerShelfIdListSchema } from "../../../contract/forge/shared_pb.js";
import { explainRackFirmware } from "../../../src/services/explain/rack/rack-firmware.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { terminateRackMaintenance } from "../../../src/services/rack/maintenance.ts";
import { getRackFirmware } from "../../../src/services/rack-firmware/rack-firmware.ts";
import { hostReprovisionStore } from "../../../src/store/host-reprovision/host-reprovisions.ts";
import { countStates } from "../../../src/store/lifecycle/measurements.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { listRacks } from "../../../src/store/rack/racks.ts";
import { findDefaultFor } from "../../../src/store/rack-firmware/rack-firmware.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, type ForgeUnderTest, refusal, startForge } from "../api/forge-under-test.ts";

let it: ForgeUnderTest;
const tester = { name: "tester", roles: ["admin"], address: null };
const DIGEST = `sha256:${"0".repeat(64)}`;

beforeAll(async () => {
  it = await startForge();
  await it.db.execute(
    `insert into rack_profiles (name, hardware_type, class, created_by, compute, switches, power_shelves)
     values ('p', 'gb200', 'prod', 'test', '{"count":2}', '{"count":0}', '{"count":0}')`,
  );
  for (const [id, version, type] of [
    ["fw-v2.1", "2.1", "gb200"],
    ["fw-other", "2.2", "gb300"],
  ])
    await addFirmware(id as string, version as string, type as string);
});
afterAll(() => it.close());

const addFirmware = (id: string, version: string, type: string, state = "available") => {
  const of = (device: string, component: string) => ({
    ...{ device, component, class: "prod", version, digest: DIGEST, targets: [], activation: "none", order: 0 },
    file: { name: "a", url: "http://x/a", bytes: null, sign: "bearer" },
  });
  return it.db.execute(
    `insert into rack_firmware (id, config, components, hardware_type, state) values ($1, '{}', $2, $3, $4)`,
    [id, JSON.stringify([of("compute", "bmc"), of("power_shelf", "psu")]), type, state],
  );
};

let count = 0;
/** A rack in ready with machines that nobody uses, as if they had been discovered. */
async function aRack(
  machines: readonly string[],
  change: { id?: string; state?: string; profile?: string | null } = {},
) {
  count += 1;
  const { id = `rack-${count}`, state = "ready", profile = "p" } = change;
  for (const machine of machines) await registerMachine(it.deps, tester, { id: machine, labels: {}, spec: undefined });
  await it.db.execute("update machines set rack = $2, state = 'MAINTENANCE' where id = any($1)", [machines, id]);
  await it.db.execute(
    `insert into racks (id, name, rack_profile_id, state) values ($1, $1, $3, $2) on conflict (id) do update set state = $2, rack_profile_id = $3`,
    [id, state, profile],
  );
  return id;
}
const pending = async (rack: string) =>
  (
    await it.db.query<{ request: { scope: object; activities: object[]; id: string; initiator: string } | null }>(
      "select maintenance_requested as request from racks where id = $1",
      [rack],
    )
  )[0]?.request;
const trays = (...ids: string[]) => ({
  machineIds: { machineIds: ids.map((id) => ({ id })) },
  components: [] as ComputeTrayComponent[],
});
const update = (value: ReturnType<typeof trays>, targetVersion = "fw-v2.1") =>
  it.forge.updateComponentFirmware({ target: { case: "computeTrays", value }, targetVersion }, as("ann"));
const ok = (componentId: string) => expect.objectContaining({ componentId, status: Status.SUCCESS, error: "" });

describe("UpdateComponentFirmware", () => {
  test("machine-001 leads to rack-42: one request with both trays and the version", async () => {
    await aRack(["machine-001", "machine-002", "machine-003"], { id: "rack-42" });
    const { results } = await update(trays("machine-001", "machine-002", "machine-001"));
    expect(results).toEqual([ok("machine-001"), ok("machine-002")]);
    expect(await pending("rack-42")).toMatchObject({
      initiator: "ann",
      scope: { machine_ids: ["machine-001", "machine-002"], switch_ids: [], power_shelf_ids: [] },
      activities: [{ kind: "firmware_upgrade", firmware_version: "fw-v2.1" }],
    });
  });

  test("several racks are several requests, and one that is busy keeps no other from its upgrade", async () => {
    const [one, two] = [await aRack(["a1"]), await aRack(["b1"], { state: "maintenance" })];
    const { results } = await update(trays("a1", "b1", "nope"));
    expect(results).toEqual([
      ok("a1"),
      expect.objectContaining({
        componentId: "b1",
        status: Status.INVALID_ARGUMENT,
        error: expect.stringContaining("is maintenance"),
      }),
      expect.objectContaining({ componentId: "nope", status: Status.NOT_FOUND }),
    ]);
    expect(await pending(one)).toMatchObject({ scope: { machine_ids: ["a1"] } });
    expect(await pending(two)).toBeNull();
  });

  test("components go along, in the catalogue's words", async () => {
    const rack = await aRack(["c1"]);
    await update({ ...trays("c1"), components: [ComputeTrayComponent.CPLD_MB, ComputeTrayComponent.BMC] });
    expect(await pending(rack)).toMatchObject({ activities: [{ components: ["cpld_mb", "bmc"] }] });
  });

  test("of one rack, what is refused fails the call", async () => {
    await aRack(["d1"], { state: "validating" });
    expect(await refusal(update(trays("d1")))).toMatchObject({ code: Code.InvalidArgument });
    expect(await refusal(update(trays("nope-1")))).toMatchObject({ code: Code.NotFound });
    await aRack(["d2"]);
    expect(await refusal(update(trays("d2", "nope-1")))).toMatchObject({ code: Code.NotFound });
    await it.db.execute("update machines set rack = null where id = 'd2'");
    expect(await refusal(update(trays("d2")))).toMatchObject({ code: Code.FailedPrecondition });
  });

  test("a tray in use is refused by name", async () => {
    const rack = await aRack(["e1", "e2"]);
    await it.db.execute("update machines set state = 'READY', customer_id = 'acme' where id = 'e1'");
    const answer = await refusal(update(trays("e1")));
    expect(answer).toMatchObject({ code: Code.FailedPrecondition, message: expect.stringContaining("e1") });
    expect(await pending(rack)).toBeNull();
    expect((await update(trays("e2"))).results).toEqual([ok("e2")]);
  });

  test("of racks gives one result a rack", async () => {
    const [one, two] = [await aRack(["f1"]), await aRack(["f2"], { state: "created" })];
    const rackIds = { rackIds: [{ id: one }, { id: two }, { id: "nowhere" }] };
    const { results } = await it.forge.updateComponentFirmware({
      target: { case: "racks", value: { rackIds } },
      targetVersion: "",
    });
    expect(results.map(({ status }) => status)).toEqual([Status.SUCCESS, Status.INVALID_ARGUMENT, Status.NOT_FOUND]);
    expect(await pending(one)).toMatchObject({
      scope: { machine_ids: [] },
      activities: [{ kind: "firmware_upgrade" }],
    });
  });

  test("writes to a shelf directly, by a run of its own, and to none that feeds a tray in use", async () => {
    const rack = await aRack(["g1"]);
    for (const id of ["ps-a", "ps-b"]) await it.addShelf(id);
    await it.db.execute("update power_shelves set rack_id = $1 where id in ('ps-a', 'ps-b')", [rack]);
    const ids = [{ id: "ps-a" }];
    const shelves = (of: { id: string }[], targetVersion = "fw-v2.1") =>
      it.forge.updateComponentFirmware(
        { target: { case: "powerShelves", value: { powerShelfIds: { ids: of } } }, targetVersion },
        as("ann"),
      );
    expect((await shelves(ids)).results).toEqual([ok("ps-a")]);
    const runs = await it.db.query<{ plan: { steps: { kind: string; payload: object }[] } }>(
      "select plan from runs where target_kind = 'power_shelf' and target_id = 'ps-a'",
    );
    expect(runs[0]?.plan.steps[0]).toMatchObject({
      kind: "update_firmware",
      payload: { firmware_id: "fw-v2.1", component: "psu" },
    });
    expect(await pending(rack)).toBeNull();
    expect((await shelves(ids)).results[0]).toMatchObject({ status: Status.ALREADY_EXISTS });
    const status = await it.forge.getComponentFirmwareStatus({ target: { case: "powerShelfIds", value: { ids } } });
    expect(status.statuses[0]).toMatchObject({ state: FirmwareUpdateState.FW_STATE_QUEUED, targetVersion: "fw-v2.1" });
    const other = [{ id: "ps-b" }];
    expect((await shelves(other, "nope")).results[0]).toMatchObject({ status: Status.NOT_FOUND });
    expect((await shelves(other, "fw-other")).results[0]?.error).toContain("hardware type gb300");
    await it.db.execute("update machines set state = 'READY', customer_id = 'acme' where id = 'g1'");
    expect((await shelves(other)).results[0]).toMatchObject({
      status: Status.INVALID_ARGUMENT,
      error: expect.stringContaining("g1"),
    });
  });

  test.each<[string, Parameters<ForgeUnderTest["forge"]["updateComponentFirmware"]>[0]]>([
    ["no target", {}],
    ["no list", { target: { case: "computeTrays", value: {} } }],
    ["an empty list", { target: { case: "computeTrays", value: trays() } }],
    ["a malformed id", { target: { case: "computeTrays", value: trays("No!") } }],
    ["an unknown component", { target: { case: "computeTrays", value: { ...trays("machine-003"), components: [0] } } }],
  ])("with %s is refused", async (_, request) => {
    expect(await refusal(it.forge.updateComponentFirmware(request))).toMatchObject({ code: Code.InvalidArgument });
  });
});

describe("status and versions", () => {
  test("show a request before there is a run, and nothing where nothing was asked for", async () => {
    const rack = await aRack(["h1", "h2"]);
    const read = async () =>
      (
        await it.forge.getComponentFirmwareStatus({
          target: { case: "machineIds", value: { machineIds: [{ id: "h1" }, { id: "nope" }] } },
        })
      ).statuses;
    expect(await read()).toMatchObject([
      { state: FirmwareUpdateState.FW_STATE_UNKNOWN },
      { result: { status: Status.NOT_FOUND } },
    ]);
    await update(trays("h2"));
    expect((await read())[0], "the request names another tray").toMatchObject({
      state: FirmwareUpdateState.FW_STATE_UNKNOWN,
    });
    await terminateRackMaintenance(it.deps, tester, rack);
    await update(trays("h1"));
    expect((await read())[0]).toMatchObject({ state: FirmwareUpdateState.FW_STATE_QUEUED, targetVersion: "fw-v2.1" });
    const racks = await it.forge.getComponentFirmwareStatus({
      target: { case: "rackIds", value: { rackIds: [{ id: rack }, { id: "nowhere" }] } },
    });
    expect(racks.statuses).toMatchObject([
      { state: FirmwareUpdateState.FW_STATE_QUEUED, targetVersion: "fw-v2.1" },
      { state: FirmwareUpdateState.FW_STATE_UNKNOWN, result: { status: Status.NOT_FOUND } },
    ]);
  });

  test("list what is available for the hardware type", async () => {
    await addFirmware("fw-any", "3", "any");
    await addFirmware("fw-late", "4", "gb200", "downloading");
    const [rack, bare, odd] = [
      await aRack(["i1"]),
      await aRack([], { profile: null }),
      await aRack([], { profile: "gone" }),
    ];
    const rackIds = [rack, bare, odd, "nowhere"].map((id) => ({ id }));
    const { devices } = await it.forge.listComponentFirmwareVersions({
      target: { case: "rackIds", value: { rackIds } },
    });
    expect(devices[0]?.versions.toSorted()).toEqual(["fw-any", "fw-v2.1"]);
    expect(devices.slice(1).map(({ result }) => result?.status)).toEqual([
      Status.INVALID_ARGUMENT,
      Status.NOT_FOUND,
      Status.NOT_FOUND,
    ]);
    const machines = await it.forge.listComponentFirmwareVersions({
      target: { case: "machineIds", value: { machineIds: [{ id: "i1" }] } },
    });
    expect(machines.devices[0]?.computeFwVersions).toMatchObject([
      { component: ComputeTrayComponent.BMC, versions: ["3", "2.1"] },
    ]);
  });

  test("inventory says which devices there are", async () => {
    await aRack(["j1"]);
    const machineIds = [{ id: "j1" }, { id: "nope" }];
    const { entries } = await it.forge.getComponentInventory({ target: { case: "machineIds", value: { machineIds } } });
    expect(entries.map(({ result }) => result?.status)).toEqual([Status.SUCCESS, Status.NOT_FOUND]);
  });
});

describe("the default of a rack's devices", () => {
  const defaultsOf = async (rack: string, tray: string) => [
    (await listRacks(it.db, { ids: [rack] }))[0]?.defaultFirmware?.id,
    (await hostReprovisionStore.load(it.db, [tray])).things[0]?.firmware?.id,
    await findDefaultFor(it.db, "gb500"),
  ];

  test("is the same for the rack, its trays and its shelves: that of its type, else one that suits all", async () => {
    await it.db.execute(
      `insert into rack_profiles (name, hardware_type, class, created_by, compute, switches, power_shelves)
       values ('p500', 'gb500', 'prod', 'test', '{"count":1}', '{"count":0}', '{"count":0}')`,
    );
    const rack = await aRack(["any-1"], { profile: "p500" });
    expect(await defaultsOf(rack, "any-1")).toEqual([undefined, undefined, undefined]);
    await addFirmware("fw-for-all", "1", "any");
    await it.db.execute("update rack_firmware set is_default = true where id = 'fw-for-all'");
    expect(await defaultsOf(rack, "any-1")).toEqual(Array(3).fill("fw-for-all"));
    await addFirmware("fw-of-type", "1", "gb500");
    await it.db.execute("update rack_firmware set is_default = true where id = 'fw-of-type'");
    expect(await defaultsOf(rack, "any-1")).toEqual(Array(3).fill("fw-of-type"));
    await it.db.execute("update rack_firmware set is_default = false where id in ('fw-of-type', 'fw-for-all')");
  });
});

describe("a record of the catalogue that cannot be read", () => {
  test.each([
    ["no list", '{"compute": []}'],
    ["components of another shape", '[{"device": "toaster"}]'],
  ])("(%s) hides no rack and no other record, says so by its name, and can be deleted", async (what, components) => {
    const id = `fw-damaged-${what.length}`;
    const type = `type-${what.length}`;
    await it.db.execute(
      `insert into rack_profiles (name, hardware_type, class, created_by, compute, switches, power_shelves)
       values ($1, $1, 'prod', 'test', '{"count":1}', '{"count":0}', '{"count":0}')`,
      [type],
    );
    await it.db.execute(
      `insert into rack_firmware (id, config, components, hardware_type, state, is_default)
       values ($1, 'no JSON: https://files/a?sig=secret', $2::jsonb, $3, 'available', true)`,
      [id, components, type],
    );
    const rack = await aRack([`dam-${what.length}`], { profile: type });
    const { things, unreadable } = await storeOf(it.deps.stores, "rack").load(it.db, [rack]);
    expect(unreadable).toEqual([]);
    expect(things).toMatchObject([{ defaultFirmware: { id, available: false } }]);
    const { unreadable: trays } = await hostReprovisionStore.load(it.db, [`dam-${what.length}`]);
    expect(trays).toEqual([]);

    const listed = (await it.forge.listRackFirmware({})).configs;
    expect(listed.map((each) => each.id)).toEqual(expect.arrayContaining([id, "fw-v2.1"]));
    expect(listed.find((each) => each.id === id)).toMatchObject({ available: false, configJson: "" });
    expect((await getRackFirmware(it.deps, id)).reason).toContain(`millwright rack-firmware delete ${id}`);
    const { headline, nextCommands } = await explainRackFirmware(it.deps, id);
    expect(headline).toContain(`the record of firmware ${id} cannot be read`);
    expect(nextCommands[0]?.command).toBe(`millwright rack-firmware delete ${id}`);
    expect(
      await refusal(it.forge.applyRackFirmware({ rackId: { id: rack }, firmwareId: id, firmwareType: "prod" })),
    ).toMatchObject({
      code: Code.FailedPrecondition,
      message: expect.stringContaining(id),
    });
    await it.forge.deleteRackFirmware({ id });
    expect(await refusal(it.forge.getRackFirmware({ id }))).toMatchObject({ code: Code.NotFound });
  });
});

describe("ApplyRackFirmware", () => {
  const apply = (rack: string, firmwareId = "fw-v2.1", firmwareType = "prod") =>
    it.forge.applyRackFirmware({ rackId: { id: rack }, firmwareId, firmwareType }, as("ann"));

  test("is one request, with a job a device that can be read, and stands in the history", async () => {
    const rack = await aRack(["k1", "k2"]);
    const answer = await apply(rack);
    const request = await pending(rack);
    expect(answer).toMatchObject({ totalUpdates: 2, successfulUpdates: 2, failedUpdates: 0 });
    expect(answer.deviceResults.map(({ jobId }) => jobId)).toEqual([`${request?.id}.k1`, `${request?.id}.k2`]);
    expect(request).toMatchObject({ activities: [{ kind: "firmware_upgrade", firmware_version: "fw-v2.1" }] });
    const job = await it.forge.getRackFirmwareJobStatus({ jobId: `${request?.id}.k1` });
    expect(job).toMatchObject({ state: "QUEUED", rackId: rack, nodeId: "k1" });
    const { histories } = await it.forge.getRackFirmwareHistory({ rackIds: [rack] });
    expect(histories[rack]?.records).toMatchObject([
      { firmwareId: "fw-v2.1", firmwareType: "prod", firmwareAvailable: true },
    ]);
    expect((await it.forge.getRackFirmwareHistory({ firmwareId: "fw-other" })).histories).toEqual({});
  });

  test("and what became of it stays when the journal has forgotten it, for the newest 250 of a rack", async () => {
    const rack = await aRack(["k3"]);
    await apply(rack);
    const request = await pending(rack);
    await terminateRackMaintenance(it.deps, tester, rack);
    await it.db.execute("delete from journal where kind = 'rack' and id = $1", [rack]);
    const job = await it.forge.getRackFirmwareJobStatus({ jobId: `${request?.id}.k3` });
    expect(job).toMatchObject({ state: "FAILED", rackId: rack, nodeId: "k3" });
    expect((await it.forge.getRackFirmwareHistory({ rackIds: [rack] })).histories[rack]?.records).toHaveLength(1);
    const other = await aRack(["k4"]);
    await it.db.execute(
      `insert into journal (epoch, kind, id, type, actor, at, version, data)
       select 1, 'rack', $1, 'requested', 'test', now() - n * interval '1 minute', 1, jsonb_build_object('request_id', 'bulk-' || n,
              'activities', '[{"kind": "firmware_upgrade", "firmware_version": "fw-v2.1"}]'::jsonb) from generate_series(300, 1, -1) n`,
      [other],
    );
    const kept = await it.db.query<{ request_id: string }>(
      "select request_id from rack_firmware_applied where rack_id = $1 order by requested_at desc",
      [other],
    );
    expect([kept.length, kept[0]?.request_id, kept.at(-1)?.request_id]).toEqual([250, "bulk-1", "bulk-250"]);
  });

  test("is refused where it does not fit", async () => {
    const rack = await aRack(["l1"]);
    expect(await refusal(apply("nowhere"))).toMatchObject({ code: Code.NotFound });
    expect(await refusal(apply(rack, "nope"))).toMatchObject({ code: Code.NotFound });
    for (const [firmware, type] of [
      ["fw-other", "prod"],
      ["fw-late", "prod"],
      ["fw-v2.1", "dev"],
    ] as const)
      expect(await refusal(apply(rack, firmware, type))).toMatchObject({ code: Code.FailedPrecondition });
    expect(await refusal(apply(rack, "fw-v2.1", "beta"))).toMatchObject({ code: Code.InvalidArgument });
    expect(await refusal(it.forge.getRackFirmwareJobStatus({ jobId: "" }))).toMatchObject({
      code: Code.InvalidArgument,
    });
    expect(await refusal(it.forge.getRackFirmwareJobStatus({ jobId: "x.y" }))).toMatchObject({ code: Code.NotFound });
    expect(await pending(rack)).toBeNull();
  });
});

test("a rack that nobody gave a profile is never above its SLA", async () => {
  const waiting = await aRack([], { state: "created", profile: null });
  await it.db.execute("update racks set state_since = now() - interval '3 days' where id = $1", [waiting]);
  const late = async () =>
    (await countStates(it.db, storeOf(it.deps.stores, "rack"))).find(({ state }) => state === "created")?.aboveSla;
  expect(await late()).toBe(0);
  await it.db.execute("update racks set rack_profile_id = 'p' where id = $1", [waiting]);
  expect(await late()).toBe(1);
});

describe("ComponentPowerControl", () => {
  const shelf = (action: SystemPowerControl, id = "ps-c") =>
    it.forge.componentPowerControl({ target: { case: "powerShelfIds", value: { ids: [{ id }] } }, action });

  test("asks a shelf, restarts none, and keeps those on that feed a tray in use", async () => {
    const rack = await aRack(["n1"]);
    await it.addShelf("ps-c");
    await it.db.execute("update power_shelves set rack_id = $1 where id = 'ps-c'", [rack]);
    expect((await shelf(SystemPowerControl.FORCE_OFF)).results).toEqual([ok("ps-c")]);
    const [row] = await it.db.query<{ request: object }>(
      "select power_shelf_maintenance_requested as request from power_shelves where id = 'ps-c'",
    );
    expect(row?.request).toMatchObject({ operation: "power_off" });
    expect((await shelf(SystemPowerControl.AC_POWERCYCLE)).results[0]).toMatchObject({
      status: Status.INVALID_ARGUMENT,
    });
    expect((await shelf(SystemPowerControl.ON, "ps-none")).results[0]).toMatchObject({ status: Status.NOT_FOUND });
    await it.db.execute("update machines set state = 'READY', customer_id = 'acme' where id = 'n1'");
    expect((await shelf(SystemPowerControl.FORCE_OFF)).results[0]?.error).toContain("n1");
  });

  test("switches a switch by a run, and none off that trays in use talk through", async () => {
    const rack = await aRack(["o1"]);
    await it.db.execute(
      `insert into switches (id, name, rack_id, bmc_mac, bmc_address, bmc_port, state) values ('sw-1', 'sw-1', $1, '02:00:00:00:99:01', '192.0.2.1', 443, 'ready')`,
      [rack],
    );
    const control = async (action: SystemPowerControl, id = "sw-1") =>
      (await it.forge.componentPowerControl({ target: { case: "switchIds", value: { ids: [{ id }] } }, action }))
        .results[0];
    expect(await control(SystemPowerControl.FORCE_RESTART)).toEqual(ok("sw-1"));
    const [run] = await it.db.query<{ plan: { steps: { payload: object }[] } }>(
      "select plan from runs where target_id = 'sw-1'",
    );
    expect(run?.plan.steps.map(({ payload }) => payload)).toEqual([{ desired: "off" }, { desired: "on" }]);
    expect(await control(SystemPowerControl.ON)).toMatchObject({ status: Status.ALREADY_EXISTS });
    expect(await control(SystemPowerControl.ON, "sw-none")).toMatchObject({ status: Status.NOT_FOUND });
    await it.db.execute("delete from runs where target_id = 'sw-1'");
    await it.db.execute("update machines set state = 'READY', customer_id = 'acme' where id = 'o1'");
    expect(await control(SystemPowerControl.FORCE_OFF)).toMatchObject({ error: expect.stringContaining("o1") });
  });

  test("leaves the power of machines that are in use, or that nobody checked, alone", async () => {
    await aRack(["pw-free", "pw-used", "pw-open"]);
    await it.db.execute("update machines set state = 'READY', customer_id = 'acme' where id = 'pw-used'");
    await it.db.execute("update machines set state = 'READY' where id = 'pw-open'");
    const control = async (action: SystemPowerControl, ...ids: string[]) =>
      (
        await it.forge.componentPowerControl({
          target: { case: "machineIds", value: { machineIds: ids.map((id) => ({ id })) } },
          action,
        })
      ).results;
    const kept = (componentId: string, why: string) =>
      expect.objectContaining({
        componentId,
        status: Status.INVALID_ARGUMENT,
        error: expect.stringContaining(`machine ${componentId} ${why}`),
      });
    for (const action of [
      SystemPowerControl.FORCE_OFF,
      SystemPowerControl.FORCE_RESTART,
      SystemPowerControl.AC_POWERCYCLE,
    ])
      expect(await control(action, "pw-open", "pw-used")).toEqual([
        kept("pw-open", "may be in use"),
        kept("pw-used", "is in use"),
      ]);
    // Those that nobody uses come as far as the start of their run, which this server has none of.
    for (const [action, id] of [
      [SystemPowerControl.FORCE_OFF, "pw-free"],
      [SystemPowerControl.ON, "pw-used"],
    ] as const)
      expect(await refusal(control(action, id))).toMatchObject({ code: Code.Unimplemented });
  });

  test("says of each device that there is no graceful way, and does nothing", async () => {
    await aRack(["gr-1"]);
    await it.addShelf("ps-g");
    for (const [action, instead] of [
      [SystemPowerControl.GRACEFUL_SHUTDOWN, "force_off"],
      [SystemPowerControl.GRACEFUL_RESTART, "force_restart"],
    ] as const) {
      for (const target of [
        { case: "machineIds" as const, value: create(MachineIdListSchema, { machineIds: [{ id: "gr-1" }] }) },
        { case: "powerShelfIds" as const, value: create(PowerShelfIdListSchema, { ids: [{ id: "ps-g" }] }) },
      ]) {
        const [result] = (await it.forge.componentPowerControl({ target, action })).results;
        expect(result).toMatchObject({ status: Status.INVALID_ARGUMENT, error: expect.stringContaining(instead) });
      }
    }
    expect(await it.db.query("select 1 from runs where target_id = 'gr-1'")).toEqual([]);
  });

  test("without an action, or without devices, is refused", async () => {
    expect(await refusal(shelf(SystemPowerControl.UNKNOWN))).toMatchObject({ code: Code.InvalidArgument });
    expect(await refusal(it.forge.componentPowerControl({ action: SystemPowerControl.ON }))).toMatchObject({
      code: Code.InvalidArgument,
    });
  });
});
