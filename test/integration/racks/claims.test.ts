import { describe, expect, test } from "vitest";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { type AnyStep, defineStep } from "../../../src/runs/model/step.ts";
import { serverSteps } from "../../../src/runs/steps/index.ts";
import { setDevicePower } from "../../../src/runs/steps/rack/set-device-power.ts";
import { updateFirmware } from "../../../src/runs/steps/rack/update-firmware.ts";
import { startsRun } from "../../../src/runs/targets/new-run.ts";
import type { RunTarget } from "../../../src/runs/targets/run-target.ts";
import { explainRack } from "../../../src/services/explain/rack/rack.ts";
import { forceDeleteRack } from "../../../src/services/rack/deletion.ts";
import {
  reprovisionRack,
  startRackMaintenance,
  terminateRackMaintenance,
} from "../../../src/services/rack/maintenance.ts";
import { createAll } from "../../../src/store/lifecycle/create.ts";
import { announce } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { listRuns } from "../../../src/store/run/runs.ts";
import { eventually } from "../../support/eventually.ts";
import { DRAINED, IN_USE, rackBench } from "../../support/racks/rack-bench.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Who works on the devices of a rack, and who waits for whom. */
let surface: RunSurface;
let racks: ReturnType<typeof rackBench>;
/** Trays whose steps may end; all others are still at it. */
const released = new Set<string>();
/** Trays that the rack's own runs switch: nothing else tells that a tray was touched. */
const switched: string[] = [];

const hold = defineStep({
  kind: "hold",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  parse: (payload) => payload,
  before: async () => ({}),
  act: async () => undefined,
  probe: async ({ machine }) => (released.has(machine.id) ? "done" : "in_progress"),
});
/** As the real one, but that it ends only when the test lets it. */
const power = {
  ...setDevicePower,
  before: async () => ({}),
  async act({ device: { id } }: { readonly device: { readonly id: string } }) {
    switched.push(id);
  },
  probe: async ({ device: { id } }: { readonly device: { readonly id: string } }) =>
    !switched.includes(id) ? "not_done" : released.has(id) ? "done" : "in_progress",
};

beforeAll(async () => {
  const steps = new Map([
    ...serverSteps,
    ["hold", hold as unknown as AnyStep],
    ["set_device_power", power as unknown as AnyStep],
  ]);
  surface = await startRunSurface({ controller: true, fake: { speed: "instant" }, steps });
  racks = rackBench(surface);
});
afterAll(() => surface.close());

const WHOLE = { machine_ids: [], switch_ids: [], power_shelf_ids: [] };
const start = (rackId: string) =>
  startRackMaintenance(surface.deps, tester, { rackId, scope: WHOLE, activities: [{ kind: "power_sequence" }] });

/** A run of its own on each tray, as an operator starts it. */
async function occupy(trays: readonly string[], name: string, holder?: RunTarget): Promise<string[]> {
  const store = storeOf(surface.deps.stores, "run");
  const effects = trays.map((id) =>
    startsRun(
      {
        target: { kind: "machine", id },
        plan: {
          planId: "test/hold",
          displayName: "",
          steps: [{ name: "hold", kind: "hold", timeoutSeconds: 300, maxRetries: 0, payload: {} }],
        },
        initiator: "tester",
        ...(holder && { holder }),
      },
      [name, id],
    ),
  );
  await surface.db.transaction(async (tx) => {
    await lockThings(
      tx,
      effects.map(({ id }) => ({ kind: "run", id })),
    );
    await createAll(
      tx,
      store,
      effects.map(({ id, row }) => ({ id, row })),
      { actor: "tester" },
    );
  });
  return effects.map(({ id }) => id);
}
const phaseOf = async (id: string) => (await listRuns(surface.db, { ids: [id] }))[0]?.phase;
const until = (id: string, phase: string) =>
  eventually(async () => (await phaseOf(id)) === phase, {
    what: `run ${id} is ${phase}`,
    seen: async () => JSON.stringify(await listRuns(surface.db, { ids: [id] })),
  });
const claimsOf = (rackId: string) =>
  surface.db.query<{ thing_id: string }>(
    "select thing_id from claims where holder_id = $1 and granted_at is not null order by thing_id",
    [rackId],
  );
const allow = async (...trays: readonly string[]) => {
  for (const tray of trays) released.add(tray);
};
async function readyRack(id: string, count: number): Promise<string[]> {
  const trays = await racks.addRack(id, count);
  await allow(...trays);
  await racks.until(id, "ready");
  for (const tray of trays) released.delete(tray);
  switched.length = 0;
  return trays;
}

describe("a rack whose trays others work on", () => {
  test("holds nothing and names every holder; explain does too, and gives the command that helps", async () => {
    const trays = await readyRack("c-wait", 4);
    const runs = await occupy(trays.slice(0, 3), "wait");
    for (const run of runs) await until(run, "RUNNING");
    await start("c-wait");
    const { outcome } = await eventually(
      async () => {
        const rack = await racks.rack("c-wait");
        return rack.outcome !== null && rack;
      },
      { what: "it waits" },
    );
    for (const run of runs) expect(outcome?.reason).toContain(run);
    expect(await claimsOf("c-wait"), "not even the tray that is free").toEqual([]);
    const { headline, nextCommands } = await explainRack(surface.deps, "c-wait");
    for (const run of runs) expect(headline).toContain(run);
    expect(nextCommands[0]?.command).toBe(`millwright explain run ${runs[0]}`);
    await allow(...trays);
    await racks.until("c-wait", "ready");
    await eventually(async () => (await racks.rack("c-wait")).lastMaintenanceRequest?.outcome === "completed", {
      what: "it was maintained",
    });
    for (const run of runs) expect(await phaseOf(run)).toBe("SUCCEEDED");
  });

  test("withdraws what waits when it is terminated", async () => {
    const trays = await readyRack("c-withdraw", 1);
    const [run = ""] = await occupy(trays, "withdraw");
    await until(run, "RUNNING");
    await start("c-withdraw");
    await terminateRackMaintenance(surface.deps, tester, "c-withdraw");
    expect(await racks.rack("c-withdraw")).toMatchObject({
      maintenanceRequest: null,
      lastMaintenanceRequest: { outcome: "withdrawn" },
      state: { name: "ready" },
    });
    await reprovisionRack(surface.deps, tester, { rackId: "c-withdraw" });
    await terminateRackMaintenance(surface.deps, tester, "c-withdraw");
    expect(await racks.rack("c-withdraw")).toMatchObject({
      reprovisionRequest: null,
      lastReprovisionRequest: { outcome: "withdrawn" },
      state: { name: "ready" },
    });
    await allow(...trays);
    await until(run, "SUCCEEDED");
    expect(switched).toEqual([]);
  });

  test("has its request expire when it has waited for too long, names the holders, and goes on after a new one", async () => {
    const trays = await readyRack("c-expire", 2);
    const [run = ""] = await occupy(trays.slice(0, 1), "expire");
    await until(run, "RUNNING");
    await start("c-expire");
    await eventually(async () => (await racks.rack("c-expire")).outcome !== null, { what: "it waits" });
    // Its half an hour is over.
    await surface.db.execute(
      `update claims set requested_at = requested_at - interval '31 minutes', bars_until = bars_until - interval '31 minutes'
        where holder_id = 'c-expire'`,
    );
    await racks.wake("c-expire");
    const { lastMaintenanceRequest, state, maintenanceRequest } = await eventually(
      async () => {
        const rack = await racks.rack("c-expire");
        return rack.lastMaintenanceRequest !== null && rack;
      },
      { what: "it expires" },
    );
    expect(lastMaintenanceRequest).toMatchObject({ outcome: "expired", message: expect.stringContaining(run) });
    expect([state.name, maintenanceRequest]).toEqual(["ready", null]);
    expect(
      await surface.db.query("select * from claims where holder_id = 'c-expire'"),
      "nothing waits any more",
    ).toEqual([]);
    await allow(...trays);
    await until(run, "SUCCEEDED");
    await start("c-expire");
    await eventually(async () => (await racks.rack("c-expire")).lastMaintenanceRequest?.outcome === "completed", {
      what: "a new request is carried out",
    });
  });

  test("carries out a reprovision in place of the request that waits, and says by whom that was superseded", async () => {
    const trays = await readyRack("c-super", 1);
    const [run = ""] = await occupy(trays, "super");
    await until(run, "RUNNING");
    await start("c-super");
    await reprovisionRack(surface.deps, { ...tester, name: "pat" }, { rackId: "c-super" });
    await allow(...trays);
    const rack = await eventually(
      async () => {
        const found = await racks.rack("c-super");
        return found.lastReprovisionRequest?.outcome === "completed" && found.state.name === "ready" && found;
      },
      { what: "it was reprovisioned" },
    );
    expect(rack.lastMaintenanceRequest).toMatchObject({
      outcome: "superseded",
      message: "superseded by a request of pat",
    });
  });
});

describe("a rack that is being maintained", () => {
  test("has a run that is started on a tray wait, by its name, and then succeed", async () => {
    const trays = await readyRack("c-busy", 2);
    await start("c-busy");
    await eventually(async () => switched.length === 2, { what: "its trays are being switched" });
    expect((await claimsOf("c-busy")).map(({ thing_id }) => thing_id)).toEqual(["c-busy", ...trays]);
    const [run = ""] = await occupy(trays.slice(0, 1), "busy");
    const waiting = await eventually(
      async () => {
        const [found] = await listRuns(surface.db, { ids: [run] });
        return found?.waitingFor !== "" && found;
      },
      { what: "the run waits" },
    );
    expect(waiting.phase).toBe("PENDING");
    expect(waiting.waitingFor).toContain("rack c-busy");
    await allow(...trays);
    await until(run, "SUCCEEDED");
    await racks.until("c-busy", "ready");
    expect(await claimsOf("c-busy")).toEqual([]);
  });

  test("keeps a tray from coming into use: it stays in maintenance", async () => {
    const [tray = ""] = await readyRack("c-keep", 1);
    await surface.db.query(
      "update machines set state = 'MAINTENANCE', customer_id = 'acme', conditions = conditions || $2::jsonb, basis = basis + 1 where id = $1",
      [tray, JSON.stringify([DRAINED])],
    );
    await start("c-keep");
    await eventually(async () => switched.length === 1, { what: "its tray is being switched" });
    await expect(surface.lifecycle.exitMaintenance({ machineId: tray, comment: "" })).rejects.toThrow(
      "cannot be taken out of maintenance: rack c-keep",
    );
    expect((await racks.rack("c-keep")).trays).toMatchObject([{ assigned: "no" }]);
    await allow(tray);
    await racks.until("c-keep", "ready");
    await surface.lifecycle.exitMaintenance({ machineId: tray, comment: "" });
  });

  test("ends in error when it is terminated, only after the runs on its devices, and tells how each was left", async () => {
    const trays = await readyRack("c-stop", 2);
    await start("c-stop");
    await eventually(async () => switched.length === 2, { what: "its trays are being switched" });
    await terminateRackMaintenance(surface.deps, tester, "c-stop");
    const rack = await racks.until("c-stop", "error");
    expect(rack).toMatchObject({
      lastMaintenanceRequest: { outcome: "failed" },
      state: { origin: "activity", failure: { code: "terminated" } },
    });
    expect(rack.state.cause).toContain(`terminated; ${trays.join(", ")}: power_on_compute canceled`);
    const children = await surface.db.query<{ state: string }>(
      "select c.state from runs c join runs p on p.id = c.parent_run_id where p.target_id = 'c-stop' and p.state = 'CANCELED'",
    );
    expect(children.map(({ state }) => state)).toEqual(["CANCELED", "CANCELED"]);
    expect(await claimsOf("c-stop")).toEqual([]);
  });
});

test("a tray on which a run of a maintenance before still works is left out", async () => {
  const [first = "", second = ""] = await readyRack("c-orphan", 2);
  const [run = ""] = await occupy([first], "orphan", { kind: "rack", id: "c-orphan" });
  await until(run, "RUNNING");
  expect((await racks.rack("c-orphan")).trays).toMatchObject([{ unprovenRun: run }, { unprovenRun: null }]);
  await allow(second);
  await start("c-orphan");
  await eventually(async () => (await racks.rack("c-orphan")).lastMaintenanceRequest?.outcome, {
    what: "it has ended",
  });
  expect(switched).toEqual([second]);
  expect((await racks.rack("c-orphan")).facts.workSet?.leftOut).toMatchObject([{ id: first }]);
  await allow(first);
  await until(run, "SUCCEEDED");
});

test("a rack that is deleted by force leaves no device waiting for it", async () => {
  const [tray = ""] = await readyRack("c-force", 1);
  await start("c-force");
  await eventually(async () => switched.length === 1, { what: "its tray is being switched" });
  const waiting = "waiting_for_rack_firmware_upgrade";
  await surface.db.query("update host_reprovisions set state = $2, basis = basis + 1 where id = $1", [tray, waiting]);
  await forceDeleteRack(surface.deps, tester, "c-force");
  expect(await surface.db.query("select state from host_reprovisions where id = $1", [tray])).toEqual([
    { state: "ready" },
  ]);
  await allow(tray);
});

test("a rack that is deleted by force cancels what its run has not begun: no switch waits for a rack that is gone", async () => {
  const [tray = ""] = await readyRack("c-unbegun", 1);
  const id = "sw-unbegun";
  await surface.db.query(
    `insert into switches (id, name, rack_id, bmc_mac, bmc_address, bmc_port, state)
     values ($1, $1, null, '02:00:00:00:98:01', '192.0.2.1', 443, 'ready')`,
    [id],
  );
  await start("c-unbegun");
  await eventually(async () => switched.length === 1, { what: "its tray is being switched" });
  const { run: runId = "" } = (await racks.rack("c-unbegun")).state;
  const flash = { name: "firmware", kind: updateFirmware.kind, timeoutSeconds: 60, maxRetries: 0, payload: {} };
  const child = startsRun(
    {
      target: { kind: "switch", id },
      plan: { planId: "switch-firmware", displayName: "", steps: [flash] },
      initiator: "rack",
      holder: { kind: "rack", id: "c-unbegun" },
    },
    ["unbegun"],
    { parent_run_id: runId, parent_step: "firmware_upgrade", parent_round: 1 },
  );
  // Nothing wakes it before the rack is gone: it is PENDING as one that no replica has come to yet.
  const asleep = { kind: "run", id: child.id };
  await surface.db.transaction(async (tx) => {
    await lockThings(tx, [asleep]);
    await createAll(tx, storeOf(surface.deps.stores, "run"), [{ id: child.id, row: child.row }], { actor: "tester" });
    await tx.query("update work set wake_at = 'infinity' where kind = 'run' and id = $1", [child.id]);
  });
  expect(await phaseOf(child.id)).toBe("PENDING");

  await forceDeleteRack(surface.deps, tester, "c-unbegun");
  expect((await listRuns(surface.db, { ids: [child.id] }))[0]?.cancelRequestedAt).not.toBeNull();
  await surface.db.transaction(async (tx) => {
    await work.wake(tx, [asleep]);
    await announce(tx);
  });
  await allow(tray);
  await until(child.id, "CANCELED");
  await until(runId, "CANCELED");
  const journal = await surface.db.query("select to_state from journal where kind = 'switch' and id = $1", [id]);
  expect(journal.map(({ to_state }) => to_state)).not.toContain("reprovisioning");
});

test("a tray that comes into use while the rack waits is not touched, and the request ends with its name", async () => {
  const trays = await readyRack("c-late", 2);
  const [first = "", second = ""] = trays;
  const [run = ""] = await occupy([first], "late");
  await until(run, "RUNNING");
  await start("c-late");
  await racks.setConditions(second, IN_USE);
  await allow(first);
  const rack = await eventually(
    async () => {
      const found = await racks.rack("c-late");
      return found.lastMaintenanceRequest && found;
    },
    { what: "the request has ended" },
  );
  expect(rack.state.name).toBe("ready");
  expect(rack.lastMaintenanceRequest).toMatchObject({ outcome: "failed", message: `assigned trays: ${second}` });
  expect(switched).toEqual([]);
});
