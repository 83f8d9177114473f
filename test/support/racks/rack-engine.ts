import { Controller, type ControllerOptions } from "../../../src/engine/controller.ts";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import type { RackLimits } from "../../../src/lifecycles/rack/plan-work.ts";
import { USUAL_LIMITS } from "../../../src/lifecycles/rack/usual-limits.ts";
import { type RunContext, runHandlers } from "../../../src/runs/executor/executor.ts";
import { BegunActions } from "../../../src/runs/executor/step/begun-actions.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { collectSteps, defineStepOn } from "../../../src/runs/model/step.ts";
import { configureFabric, validateFabric } from "../../../src/runs/steps/rack/configure-fabric.ts";
import { rackFirmware, rackPower, validateDevices } from "../../../src/runs/steps/rack/rack-fan-outs.ts";
import { machineTarget } from "../../../src/runs/targets/machine.ts";
import { rackTarget } from "../../../src/runs/targets/rack.ts";
import type { RunOn } from "../../../src/runs/targets/target-kind.ts";
import { rackMaintenance } from "../../../src/runs/workflows/rack/rack-maintenance.ts";
import { rackValidation } from "../../../src/runs/workflows/rack/rack-validation.ts";
import { collectWorkflows } from "../../../src/runs/workflows/workflow.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { collectThingStores, storeOf } from "../../../src/store/lifecycle/things.ts";
import type { Database, Queryable } from "../../../src/store/postgres/database.ts";
import { collectRunTargets, type WiredTarget } from "../../../src/wiring/run-targets.ts";
import { rack } from "../../../src/wiring/things/rack.ts";
import type { HandlerTools } from "../../../src/wiring/things/thing.ts";
import { withContext } from "../../../src/wiring/things/with-context.ts";
import { bareStores } from "../processes/bare-stores.ts";
import { CHECKED } from "./rack-bench.ts";

/**
 * Real racks, with their real table, handlers and workflows, on trays whose firmware and power are rows of the test's own tables: they
 * outlive every process, as devices do.
 */
export const rackStores = collectThingStores(bareStores);

interface OnTray {
  readonly target: { readonly id: string };
  readonly world: Queryable;
}
const flashesOf = async (world: Queryable, tray: string): Promise<number> => {
  const [row] = await world.query<{ count: number }>("select count(*)::int as count from flashes where tray = $1", [
    tray,
  ]);
  return row?.count ?? 0;
};

/** A flash that cannot be repeated: each is a row. */
const updateFirmware = defineStepOn<OnTray>()({
  kind: "update_firmware",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  finishesOnceBegun: true,
  staysUntilProven: true,
  parse: (payload) => payload,
  before: async ({ target, world }) => ({ flashes: await flashesOf(world, target.id) }),
  act: async ({ target, world }) => {
    const [row] = await world.query<{ id: number }>("insert into flashes (tray) values ($1) returning id", [target.id]);
    return { receipt: { task: row?.id ?? 0 } };
  },
  probe: async ({ target, world, evidence }) =>
    (await flashesOf(world, target.id)) > evidence.flashes ? "done" : "not_done",
});
const inAnInstant = (kind: string) =>
  defineStepOn<OnTray>()({
    kind,
    needs: [],
    defaults: { timeout: minutes(5), maxRetries: 0 },
    parse: (payload) => payload,
    before: async () => ({}),
    act: async ({ target, world, payload }) => {
      await world.query("insert into switched (tray, what) values ($1, $2)", [target.id, JSON.stringify(payload)]);
      return undefined;
    },
    probe: async ({ actingAt }) => (actingAt === null || actingAt === undefined ? "not_done" : "done"),
  });

const steps = collectSteps([
  ...[rackFirmware, rackPower, validateDevices, configureFabric, validateFabric],
  ...[updateFirmware, inAnInstant("set_device_power"), inAnInstant("validate_device")],
]);
const workflows = collectWorkflows([rackMaintenance, rackValidation], steps);

export async function createTrayTables(db: Queryable): Promise<void> {
  await db.query("create table flashes (id serial primary key, tray text not null)");
  await db.query("create table switched (id serial primary key, tray text not null, what text not null)");
  const component = {
    ...{ device: "compute", component: "bmc", class: "prod", version: "2.0", digest: `sha256:${"0".repeat(64)}` },
    ...{ targets: [], activation: "none", order: 0, file: { name: "f", url: "http://x/f", bytes: 1, sign: "bearer" } },
  };
  await db.query(
    `insert into rack_firmware (id, config, components, hardware_type, is_default, state)
     values ('fw-1', '{}', $1::jsonb, 'any', true, 'available')`,
    [JSON.stringify([component])],
  );
}

/** A rack with so many trays, complete and checked: it begins as soon as an engine comes. Returns the trays. */
export async function addWholeRack(db: Database, id: string, count: number): Promise<string[]> {
  const part = (n: number) => JSON.stringify({ count: n, slot_ids: [] });
  await db.query(
    `insert into rack_profiles (name, hardware_type, topology, class, compute, switches, power_shelves, created_by)
     values ($1, 'gb200', null, 'prod', $2::jsonb, $3::jsonb, $3::jsonb, 'test')`,
    [id, part(count), part(0)],
  );
  const trays = Array.from({ length: count }, (_, at) => `${id}-m${at + 1}`);
  for (const tray of trays)
    await db.query(
      "insert into machines (id, provider, rack, state, conditions) values ($1, 'fake', $2, 'READY', $3::jsonb)",
      [tray, id, JSON.stringify(CHECKED)],
    );
  await db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "rack", id }]);
    await create(tx, storeOf(rackStores, "rack"), { id, row: { name: id, rack_profile_id: id }, actor: "test" });
  });
  return trays;
}

function runHandlersOn(db: Database, { clock, instance }: { clock: Clock; instance: string }): HandlerOf {
  const wire = (kind: object) => ({
    kind,
    providerOf: () => ({ name: "test", can: {} }),
    partsOf: ({ target }: RunOn<never>) => ({ target: target.thing, world: db }),
  });
  const targets = collectRunTargets([wire(rackTarget), wire(machineTarget)] as unknown as readonly WiredTarget[]);
  const begun = new BegunActions();
  const contextOf = (run: RunThing): Omit<RunContext, "call"> => ({
    ...{ clock, steps, workflows, instance, begun },
    ...targets.contextOf(run),
  });
  return withContext(runHandlers, contextOf, targets.asSeen);
}

export async function startRackEngine(
  db: Database,
  {
    instance = "one",
    around = (same: HandlerOf) => same,
    clock = systemClock,
    rackLimits = {},
    ...options
  }: Partial<ControllerOptions> & {
    instance?: string;
    around?: (handlers: HandlerOf) => HandlerOf;
    rackLimits?: Partial<RackLimits>;
  } = {},
): Promise<{ stop(): Promise<void> }> {
  const stop = new AbortController();
  const limits = { ...USUAL_LIMITS, ...rackLimits };
  const ofRacks = rack.handlers?.({ runs: { steps }, rackLimits: limits } as unknown as HandlerTools);
  if (!ofRacks) throw new Error("racks have handlers");
  const controller = new Controller({
    db,
    stores: rackStores,
    log: silentLog,
    owner: instance,
    handlers: new Map([
      ["rack", around(ofRacks)],
      ["run", around(runHandlersOn(db, { clock, instance }))],
    ]),
    ...options,
  });
  await db.listen("millwright", () => controller.nudge(), stop.signal);
  const running = controller.run(stop.signal);
  return {
    async stop() {
      stop.abort();
      await running;
    },
  };
}
