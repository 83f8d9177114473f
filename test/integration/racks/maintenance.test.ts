import { describe, expect, test } from "vitest";
import { readFirmwareStatus } from "../../../src/services/component/firmware-status.ts";
import { controlComponentPower } from "../../../src/services/component/power-control.ts";
import { updateComponentFirmware } from "../../../src/services/component/update-firmware.ts";
import { explainRack } from "../../../src/services/explain/rack/rack.ts";
import { reprovisionMachine } from "../../../src/services/host-reprovision/host-reprovisions.ts";
import { deleteRack, forceDeleteRack } from "../../../src/services/rack/deletion.ts";
import { viewRackDevices } from "../../../src/services/rack/devices.ts";
import {
  clearRackError,
  reprovisionRack,
  type StartRackMaintenance,
  startRackMaintenance,
  terminateRackMaintenance,
} from "../../../src/services/rack/maintenance.ts";
import { previewRackMaintenance } from "../../../src/services/rack/preview.ts";
import { listRuns } from "../../../src/store/run/runs.ts";
import { eventually } from "../../support/eventually.ts";
import { CHECKED, IN_USE, rackBench } from "../../support/racks/rack-bench.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Racks of fake machines: what leads them from state to state, and what is refused. */
let surface: RunSurface;
let racks: ReturnType<typeof rackBench>;
beforeAll(async () => {
  surface = await startRunSurface({ controller: true, fake: { speed: "instant" } });
  racks = rackBench(surface);
});
afterAll(() => surface.close());

const WHOLE = { machine_ids: [], switch_ids: [], power_shelf_ids: [] };
const start = (rackId: string, change: Partial<StartRackMaintenance> = {}) =>
  startRackMaintenance(surface.deps, tester, { rackId, scope: WHOLE, activities: [], ...change });
const runOf = async (rackId: string, workflow: string) => {
  const all = await listRuns(surface.db, { target: { kind: "rack", id: rackId } });
  const run = all.find(({ plan }) => plan.workflow === workflow);
  if (!run) throw new Error(`rack ${rackId} has no run of ${workflow}`);
  return run;
};

describe("a rack whose devices are on record", () => {
  test("is discovered, maintained, validated and ready by itself; what there is nothing to do about is skipped, and says why", async () => {
    await racks.addRack("r-new", 2);
    await racks.until("r-new", "ready");
    expect(await racks.history("r-new")).toEqual([
      "created",
      "discovering",
      "maintenance firmware_upgrade start",
      "maintenance power_sequence powering_on",
      "maintenance completed completed",
      "validating",
      "validating",
      "ready",
    ]);
    const { steps } = await runOf("r-new", "rack_maintenance");
    expect(steps.map(({ name, state, message }) => [name, state, state === "SKIPPED" ? message : ""])).toEqual([
      ["firmware_upgrade", "SKIPPED", "there is no default firmware for hardware type gb200"],
      ["configure_nmx_cluster", "SKIPPED", "no switch is in scope"],
      ["power_off_compute", "SKIPPED", "nothing is switched off"],
      ["power_off_switches", "SKIPPED", "nothing is switched off"],
      ["power_on_shelves", "SKIPPED", "no power shelf is in scope"],
      ["power_on_switches", "SKIPPED", "no switch is in scope"],
      ["power_on_compute", "SUCCEEDED", ""],
    ]);
    const machines = await surface.db.query<{ state: string }>("select state from machines where rack = 'r-new'");
    expect(new Set(machines.map(({ state }) => state)), "no phase was changed").toEqual(new Set(["FACTORY_READY"]));
    expect(await surface.db.query("select * from claims where holder_id = 'r-new'")).toEqual([]);
  });

  test("waits for a profile, for devices and for the check of each tray, and says for which", async () => {
    const [tray = ""] = await racks.addRack("r-wait", 1, []);
    await racks.until("r-wait", "discovering");
    const { outcome } = await eventually(
      async () => {
        const rack = await racks.rack("r-wait");
        return rack.outcome !== null && rack;
      },
      { what: "it says what it waits for" },
    );
    expect(outcome?.reason).toContain(`0 of 1 compute trays are ready: ${tray} (its BMC has not answered)`);
    expect(outcome?.reason).toContain(`it is not known whether somebody uses compute tray ${tray}`);
    const { nextCommands } = await explainRack(surface.deps, "r-wait");
    expect(nextCommands[0]?.command).toBe(`millwright explain machine ${tray}`);
    await surface.db.execute("update host_reprovisions set state = 'failed_firmware_upgrade' where id = $1", [tray]);
    const [first, second] = (await explainRack(surface.deps, "r-wait")).nextCommands;
    expect(first?.command).toBe(`millwright machine reprovision ${tray}`);
    expect(second?.command).toBe(`millwright explain host_reprovision ${tray}`);
    await surface.db.execute("update host_reprovisions set state = 'ready' where id = $1", [tray]);
    await racks.setConditions(tray, CHECKED);
    await racks.until("r-wait", "ready");
  });
});

describe("a requested maintenance", () => {
  test("of 20 calls at the same moment one is accepted, and the others learn whose it is", async () => {
    await racks.addRack("r-race", 1);
    await racks.until("r-race", "ready");
    const calls = await Promise.allSettled(Array.from({ length: 20 }, () => start("r-race")));
    const refused = calls.flatMap((call) => (call.status === "rejected" ? [call.reason as Error] : []));
    expect(refused).toHaveLength(19);
    for (const error of refused)
      expect(error.message).toMatch(/has a maintenance request already: by tester at |is (maintenance|validating): /);
    const { lastMaintenanceRequest } = await eventually(
      async () => {
        const rack = await racks.rack("r-race");
        return rack.state.name === "ready" && rack.lastMaintenanceRequest && rack;
      },
      { what: "it was carried out" },
    );
    expect(lastMaintenanceRequest).toMatchObject({ outcome: "completed", initiator: "tester", scope: WHOLE });
  });

  test("that fails leads to error once: the request ends as failed with it, and only a new one is another try", async () => {
    await racks.addRack("r-loop", 1);
    await racks.until("r-loop", "ready");
    await start("r-loop", { activities: [{ kind: "firmware_upgrade", firmware_version: "fw-none" }] });
    const failed = await racks.until("r-loop", "error");
    expect(failed).toMatchObject({
      maintenanceRequest: null,
      lastMaintenanceRequest: { outcome: "failed", activities: [{ firmware_version: "fw-none" }] },
      state: { origin: "activity", failure: { code: "firmware_unknown" } },
    });
    expect(failed.state.cause).toContain("there is no firmware fw-none");
    const status = async () => readFirmwareStatus(surface.deps, { kind: "rack", ids: ["r-loop"] });
    expect(await status()).toMatchObject([{ state: "failed", targetVersion: "fw-none", message: failed.state.cause }]);
    await racks.wake("r-loop");
    const count = () => listRuns(surface.db, { target: { kind: "rack", id: "r-loop" } }).then((runs) => runs.length);
    const before = await count();
    await racks.wake("r-loop");
    expect((await racks.rack("r-loop")).state.name).toBe("error");
    expect(await count()).toBe(before);
    await start("r-loop", { activities: [{ kind: "power_sequence" }] });
    await racks.until("r-loop", "ready");
  });

  test("whose firmware is not available skips it, and the outcome says so", async () => {
    await surface.db.query(
      "insert into rack_firmware (id, config, components, hardware_type, state) values ('fw-late', '{}', '[]', 'gb200', 'downloading')",
    );
    await racks.addRack("r-late", 1);
    await racks.until("r-late", "ready");
    await start("r-late", { activities: [{ kind: "firmware_upgrade", firmware_version: "fw-late" }] });
    const { lastMaintenanceRequest } = await eventually(
      async () => {
        const rack = await racks.rack("r-late");
        return rack.state.name === "ready" && rack.lastMaintenanceRequest && rack;
      },
      { what: "it was carried out" },
    );
    expect(lastMaintenanceRequest).toMatchObject({
      outcome: "completed",
      message: "firmware_upgrade skipped: firmware fw-late is not available",
    });
    const status = await readFirmwareStatus(surface.deps, { kind: "rack", ids: ["r-late"] });
    expect(status).toMatchObject([{ state: "completed", targetVersion: "fw-late" }]);
  });

  test("really switches trays off and on, tier by tier", async () => {
    const [tray = ""] = await racks.addRack("r-power", 1);
    await racks.until("r-power", "ready");
    const { requestId } = await start("r-power", { activities: [{ kind: "power_sequence", operation: "off" }] });
    await eventually(
      async () => {
        const rack = await racks.rack("r-power");
        return rack.lastMaintenanceRequest?.id === requestId && rack.state.name === "ready";
      },
      { what: "it was carried out" },
    );
    const power = async () =>
      (
        await surface.db.query<{ power: string }>(
          "select facts ->> 'powerState' as power from machines where id = $1",
          [tray],
        )
      )[0]?.power;
    await eventually(async () => (await power()) === "off", { what: "the tray is off" });
    await start("r-power", { activities: [{ kind: "power_sequence" }] });
    await eventually(async () => (await power()) === "on", { what: "the tray is on again" });
    expect(await racks.history("r-power")).toContain("maintenance power_sequence powering_off");
  });

  test.each<readonly [string, Partial<StartRackMaintenance>, object]>([
    ["a malformed id", { scope: { ...WHOLE, machine_ids: ["No Such"] } }, { kind: "invalid_argument" }],
    [
      "a device of another rack",
      { scope: { ...WHOLE, machine_ids: ["r-new-m1"] } },
      { kind: "invalid_argument", message: expect.stringContaining("r-new-m1") },
    ],
    [
      "an activity twice",
      { activities: [{ kind: "power_sequence" }, { kind: "power_sequence" }] },
      { kind: "invalid_argument", message: expect.stringContaining("power_sequence") },
    ],
    ["an override without a reason", { includeAssigned: { reason: " " } }, { kind: "invalid_argument" }],
  ])("with %s is refused, and changes nothing", async (_, change, refusal) => {
    await racks.until("r-race", "ready");
    await expect(start("r-race", change)).rejects.toMatchObject(refusal);
    expect((await racks.rack("r-race")).maintenanceRequest).toBeNull();
  });

  test("of no rack, or in another state, is refused", async () => {
    await expect(start("nowhere")).rejects.toMatchObject({ kind: "not_found" });
    await expect(start("")).rejects.toMatchObject({ kind: "invalid_argument" });
    await racks.addRack("r-created", 1, []);
    await expect(start("r-created")).rejects.toMatchObject({ kind: "failed_precondition" });
    await expect(terminateRackMaintenance(surface.deps, tester, "r-new")).rejects.toMatchObject({
      kind: "failed_precondition",
    });
  });
});

describe("a tray that somebody uses", () => {
  test("is left alone by ingestion, and a request that covers it is refused unless it says why", async () => {
    const [tray = "", other = ""] = await racks.addRack("r-used", 2);
    await racks.setConditions(tray, IN_USE);
    const { facts } = await racks.until("r-used", "ready");
    const assigned = {
      kind: "failed_precondition",
      detail: { forgeCode: "failed_precondition" },
      message: expect.stringContaining(tray),
    };
    await expect(start("r-used")).rejects.toMatchObject(assigned);
    await expect(start("r-used", { scope: { ...WHOLE, machine_ids: [tray] } })).rejects.toMatchObject(assigned);
    if (facts.workSet?.machines.includes(tray)) throw new Error("it was checked before the rack was discovered");
    expect(facts.workSet).toMatchObject({ machines: [other], leftOut: [{ id: tray, why: "somebody uses it" }] });
    await start("r-used", { scope: { ...WHOLE, machine_ids: [other] } });
    await eventually(async () => (await racks.rack("r-used")).lastMaintenanceRequest, {
      what: "the other was maintained",
    });
    await racks.until("r-used", "ready");
    await start("r-used", { includeAssigned: { reason: "coolant leak" } });
    const [asked] = await surface.db.query<{ data: object }>(
      "select data from journal where kind = 'rack' and id = 'r-used' and type = 'requested' order by epoch desc, xid desc, seq desc limit 1",
    );
    expect(asked?.data).toMatchObject({ include_assigned: { reason: "coolant leak" } });
    await racks.until("r-used", "ready");
  });
});

describe("a tray that is in MAAS", () => {
  test("is waited for by nobody and left alone, and every answer that concerns it says so", async () => {
    const { deps } = surface;
    const [tray = "", inMaas = ""] = await racks.addRack("r-maas", 2, []);
    await surface.db.execute("update machines set provider = 'maas', basis = basis + 1 where id = $1", [inMaas]);
    await racks.setConditions(tray, CHECKED);
    const { facts } = await racks.until("r-maas", "ready");
    const leftOut = [{ id: inMaas, why: "only MAAS touches its BMC" }];
    expect(facts.workSet).toMatchObject({ machines: [tray], leftOut });

    const refusal = { kind: "failed_precondition", message: expect.stringContaining("only MAAS touches its BMC") };
    await expect(start("r-maas", { scope: { ...WHOLE, machine_ids: [tray, inMaas] } })).rejects.toMatchObject(refusal);
    await expect(reprovisionMachine(deps, tester, { machineId: inMaas, reset: false })).rejects.toMatchObject(refusal);
    const firmware = { kind: "machine", ids: [inMaas], targetVersion: "", components: [] } as const;
    await expect(updateComponentFirmware(deps, tester, firmware)).rejects.toMatchObject(refusal);
    for (const action of ["on", "force_off"] as const) {
      const power = { kind: "machine", ids: [inMaas], action } as const;
      expect((await controlComponentPower(deps, tester, power))[0]).toMatchObject({
        ...{ id: inMaas, error: refusal.message },
      });
    }
    const [, device] = await viewRackDevices(deps, await racks.rack("r-maas"));
    expect(device).toMatchObject({ id: inMaas, state: "ready", why: expect.stringContaining("only MAAS") });
    const whole = { rackId: "r-maas", scope: WHOLE, activities: [] };
    expect(await previewRackMaintenance(surface.runDeps, tester, whole)).toMatchObject({
      devices: [{ id: tray }],
      leftOut,
    });

    const { requestId } = await start("r-maas", { activities: [{ kind: "power_sequence", operation: "cycle" }] });
    await eventually(
      async () => {
        const rack = await racks.rack("r-maas");
        return rack.lastMaintenanceRequest?.id === requestId && rack.state.name === "ready";
      },
      { what: "the rack was maintained" },
    );
    expect(await listRuns(surface.db, { target: { kind: "machine", id: inMaas } })).toEqual([]);
    const cycled = await listRuns(surface.db, { target: { kind: "machine", id: tray } });
    expect(cycled.map(({ phase }) => phase)).toContain("SUCCEEDED");
  });
});

describe("other ways", () => {
  test("reprovision is carried out as soon as the rack is ready", async () => {
    const { deps } = surface;
    await racks.addRack("r-repro", 1);
    await racks.until("r-repro", "ready");
    const { requestId } = await reprovisionRack(deps, tester, { rackId: "r-repro" });
    const done = await eventually(
      async () => {
        const rack = await racks.rack("r-repro");
        return rack.lastReprovisionRequest?.id === requestId && rack.state.name === "ready" && rack;
      },
      { what: "it was reprovisioned" },
    );
    expect(done.lastReprovisionRequest).toMatchObject({ outcome: "completed" });
  });

  test("a rack that is made again under its id is discovered by a run of its own", async () => {
    await racks.addRack("r-again", 1);
    await racks.until("r-again", "ready");
    await forceDeleteRack(surface.deps, tester, "r-again");
    await racks.putOnRecord("r-again");
    await racks.until("r-again", "ready");
    const runs = await listRuns(surface.db, { target: { kind: "rack", id: "r-again" } });
    expect(runs.map(({ plan, phase }) => `${plan.workflow} ${phase}`).toSorted()).toEqual([
      "rack_maintenance SUCCEEDED",
      "rack_maintenance SUCCEEDED",
      "rack_validation SUCCEEDED",
      "rack_validation SUCCEEDED",
    ]);
  });

  test("an error that a request left is cleared by an operator", async () => {
    await racks.addRack("r-clear", 1);
    await racks.until("r-clear", "ready");
    await expect(clearRackError(surface.deps, tester, "r-clear")).rejects.toMatchObject({
      kind: "failed_precondition",
      message: "rack r-clear is ready: it has no error to clear",
      detail: { field: "rack_id", next: "millwright explain rack r-clear" },
    });
    await start("r-clear", { activities: [{ kind: "firmware_upgrade", firmware_version: "fw-none" }] });
    await racks.until("r-clear", "error");
    await clearRackError(surface.deps, tester, "r-clear");
    await racks.until("r-clear", "ready");
  });

  test("a deletion waits for the devices that name the rack, unless they are detached", async () => {
    const [tray = ""] = await racks.addRack("r-gone", 1);
    await racks.until("r-gone", "ready");
    await surface.db.query(
      "insert into expected_racks (id, rack_profile_id, state) values ('r-gone', 'r-gone', 'linked')",
    );
    await deleteRack(surface.deps, tester, { id: "r-gone" });
    const { outcome } = await eventually(
      async () => {
        const rack = await racks.until("r-gone", "deleting");
        return rack.outcome !== null && rack;
      },
      { what: "it says what it waits for" },
    );
    expect(outcome?.reason).toBe(`1 devices still name the rack: ${tray}`);
    await deleteRack(surface.deps, tester, { id: "r-gone", detach: true });
    await eventually(async () => (await surface.db.query("select 1 from racks where id = 'r-gone'")).length === 0, {
      what: "it is gone",
    });
    const [expected] = await surface.db.query<{ state: string }>(
      "select state from expected_racks where id = 'r-gone'",
    );
    expect(expected?.state, "the site still expects it").toBe("expected");
    const [machine] = await surface.db.query<{ rack: string | null }>("select rack from machines where id = $1", [
      tray,
    ]);
    expect(machine?.rack).toBeNull();
  });
});
