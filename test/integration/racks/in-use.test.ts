import { expect, test } from "vitest";
import type { AnyStep } from "../../../src/runs/model/step.ts";
import { serverSteps } from "../../../src/runs/steps/index.ts";
import { setDevicePower } from "../../../src/runs/steps/rack/set-device-power.ts";
import { controlComponentPower } from "../../../src/services/component/power-control.ts";
import { requestAllocation } from "../../../src/services/fleet/allocations.ts";
import { announce } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { listPowerShelves } from "../../../src/store/power-shelf/power-shelves.ts";
import { listRuns } from "../../../src/store/run/runs.ts";
import { recordClaim } from "../../support/claims.ts";
import { eventually } from "../../support/eventually.ts";
import { insertNode } from "../../support/fleet/fleet-node.ts";
import { CHECKED } from "../../support/racks/rack-bench.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Trays that come into use between the request of what would disturb them and the commit that takes its claim. */
let surface: RunSurface;
const released = new Set<string>();
const switched: string[] = [];
const power = {
  ...setDevicePower,
  needs: [],
  before: async () => ({}),
  async act({ device: { id } }: { readonly device: { readonly id: string } }) {
    switched.push(id);
  },
  probe: async ({ device: { id } }: { readonly device: { readonly id: string } }) =>
    !switched.includes(id) ? "not_done" : released.has(id) ? "done" : "in_progress",
};

beforeAll(async () => {
  const steps = new Map([...serverSteps, ["set_device_power", power as unknown as AnyStep]]);
  surface = await startRunSurface({ controller: true, fake: { speed: "instant" }, steps });
});
afterAll(() => surface.close());

/** A tray that nobody uses, in a rack that is only a name: nothing else works on it. */
async function tray(id: string, rack: string): Promise<void> {
  await surface.addMachine(id, "fake");
  await surface.db.query("update machines set rack = $2, conditions = $3::jsonb, basis = basis + 1 where id = $1", [
    id,
    rack,
    JSON.stringify(CHECKED),
  ]);
}
let macs = 0;
async function device(table: "switches" | "power_shelves", id: string, rack: string): Promise<void> {
  macs += 1;
  await surface.db.query(
    `insert into ${table} (id, name, rack_id, bmc_mac, bmc_address, bmc_port, state) values ($1, $1, $2, $3, '192.0.2.1', 443, 'ready')`,
    [id, rack, `02:00:00:00:97:0${macs}`],
  );
}
const off = (kind: "machine" | "switch" | "power_shelf", id: string) =>
  controlComponentPower(surface.runDeps, tester, { kind, ids: [id], action: "force_off" });
const runOn = async (id: string) => {
  const [row] = await surface.db.query<{ id: string }>("select id from runs where target_id = $1", [id]);
  return (await listRuns(surface.db, { ids: [row?.id ?? ""] }))[0];
};
const until = (id: string, phase: string) =>
  eventually(async () => ((await runOn(id))?.phase === phase ? runOn(id) : undefined), {
    what: `the run on ${id} is ${phase}`,
    seen: async () => JSON.stringify(await runOn(id)),
  });
const assign = (id: string) => "update machines set customer_id = 'acme', basis = basis + 1 where id = '" + id + "'";
const untilBlocked = () =>
  eventually(
    async () =>
      (
        await surface.db.query(
          "select 1 from pg_locks l join pg_stat_activity a using (pid) where l.locktype = 'advisory' and not l.granted and a.datname = current_database()",
        )
      ).length > 0,
    { what: "the commit that takes the claim waits for the rack", seen: () => "nobody waits" },
  );

test("a switch is not switched off when a tray came into use before the claim was taken", async () => {
  await tray("u-m1", "u-rack1");
  await device("switches", "u-sw1", "u-rack1");
  await surface.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "rack", id: "u-rack1" }]);
    expect(await off("switch", "u-sw1")).toMatchObject([{ id: "u-sw1", error: "" }]);
    await untilBlocked();
    expect((await runOn("u-sw1"))?.phase).toBe("PENDING");
    await tx.query(assign("u-m1"));
  });
  const run = await until("u-sw1", "FAILED");
  expect(run?.error).toMatchObject({ message: expect.stringContaining("in use: u-m1"), details: { cause: "in_use" } });
  expect(switched).toEqual([]);
  expect(await surface.db.query("select 1 from claims where thing_id = 'u-sw1'")).toEqual([]);
});

test("a shelf is not switched off when a tray came into use before the claim was taken, and its request ends with the name", async () => {
  await tray("u-m2", "u-rack2");
  await device("power_shelves", "u-ps2", "u-rack2");
  await surface.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "rack", id: "u-rack2" }]);
    await off("power_shelf", "u-ps2");
    await untilBlocked();
    await tx.query(assign("u-m2"));
  });
  const shelf = async () => (await listPowerShelves(surface.db, { ids: ["u-ps2"] }))[0];
  const ended = await eventually(async () => (await shelf())?.lastMaintenanceRequest ?? undefined, {
    what: "the request has ended",
    seen: async () => JSON.stringify(await shelf()),
  });
  expect(ended).toMatchObject({ outcome: "failed", message: expect.stringContaining("in use: u-m2") });
  expect(await shelf()).toMatchObject({ state: { name: "ready" }, maintenanceRequest: null });
});

test("a machine is not switched off by component power when it came into use while others worked on it", async () => {
  await tray("u-m3", "u-rack3");
  const machine = { kind: "machine", id: "u-m3" };
  await recordClaim(surface.db, machine, { kind: "rack", id: "u-other" }, "maintenance");
  expect(await off("machine", "u-m3")).toMatchObject([{ error: "" }]);
  await eventually(async () => (await runOn("u-m3"))?.waitingFor !== "", { what: "the run waits" });
  await surface.db.query(assign("u-m3"));
  await surface.db.transaction(async (tx) => {
    await tx.query("delete from claims where thing_id = 'u-m3' and holder_id = 'u-other'");
    await work.wake(tx, [{ kind: "run", id: (await runOn("u-m3"))?.id ?? "" }]);
    await announce(tx);
  });
  expect((await until("u-m3", "FAILED"))?.error?.message).toContain("in use: u-m3");
  expect(await surface.db.query("select 1 from claims where thing_id = 'u-m3'")).toEqual([]);
});

test("while a switch is being switched, no tray of its rack comes into use; afterwards it may", async () => {
  await tray("u-m4", "u-rack4");
  await device("switches", "u-sw4", "u-rack4");
  await off("switch", "u-sw4");
  await eventually(async () => switched.includes("u-sw4"), {
    what: "the switch is being switched",
    seen: async () => JSON.stringify(await runOn("u-sw4")),
    within: 5000,
  });
  const change = () => surface.changeSpec("u-m4", { customerId: "acme" });
  const refused =
    /machine u-m4 cannot be assigned: run run-\S+ \(RUNNING\) works on switch u-sw4; wait until that has ended/;
  await expect(change()).rejects.toThrow(refused);
  // Nor is it given away as a fleet node.
  const { id: node } = await insertNode(surface.db, "u-m4");
  const allocate = () => requestAllocation(surface.deps, tester, { node, tenant: "acme", requestId: "once" });
  await expect(allocate()).rejects.toThrow(refused);
  expect(await surface.db.query("select 1 from fleet_allocations")).toEqual([]);
  released.add("u-sw4");
  await until("u-sw4", "SUCCEEDED");
  await change();
  expect(await allocate()).toMatchObject({ node, tenant: "acme" });
});
