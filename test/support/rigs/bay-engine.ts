import { Controller, type ControllerOptions } from "../../../src/engine/controller.ts";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { type RunContext, runHandlers } from "../../../src/runs/executor/executor.ts";
import { BegunActions } from "../../../src/runs/executor/step/begun-actions.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { createAll } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { recordRequest } from "../../../src/store/lifecycle/requests.ts";
import { collectThingStores, storeOf } from "../../../src/store/lifecycle/things.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { collectRunTargets, type WiredTarget } from "../../../src/wiring/run-targets.ts";
import { withContext } from "../../../src/wiring/things/with-context.ts";
import { bareStores } from "../processes/bare-stores.ts";
import { bayHandlers, bayKey, baySteps, bayStore, bayTarget, bayWorkflows, openFlashWorld } from "./bay.ts";
import { gadgetStore, gadgetTarget } from "./rig.ts";

export const bayStores = collectThingStores([...bareStores, bayStore, gadgetStore]);

const NO_PROVIDER = { name: "test", can: {} };

function bayRunHandlers(db: Database, { clock, instance }: { clock: Clock; instance: string }): HandlerOf {
  const flashes = openFlashWorld(db);
  const wired = [
    { kind: bayTarget, providerOf: () => NO_PROVIDER, partsOf: () => ({ flashes }) },
    { kind: gadgetTarget, providerOf: () => NO_PROVIDER, partsOf: () => ({ flashes }) },
  ] as unknown as readonly WiredTarget[];
  const targets = collectRunTargets(wired);
  const begun = new BegunActions();
  const contextOf = (run: RunThing): Omit<RunContext, "call"> => ({
    clock,
    steps: baySteps,
    workflows: bayWorkflows,
    instance,
    begun,
    ...targets.contextOf(run),
  });
  return withContext(runHandlers, contextOf, targets.asSeen);
}

/** Carries out what bays are asked for, woken by NOTIFY as in the real process. */
export async function startBayEngine(
  db: Database,
  {
    instance = "one",
    around = (same: HandlerOf) => same,
    clock = systemClock,
    ...options
  }: Partial<ControllerOptions> & { instance?: string; around?: (handlers: HandlerOf) => HandlerOf } = {},
): Promise<{ stop(): Promise<void> }> {
  const stop = new AbortController();
  const controller = new Controller({
    db,
    stores: bayStores,
    log: silentLog,
    owner: instance,
    handlers: new Map([
      ["bay", around(withContext(bayHandlers, () => ({})))],
      ["run", around(bayRunHandlers(db, { clock, instance }))],
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

/** A bay with so many gadgets, all on record. Returns the gadgets. */
export async function addBay(db: Database, id: string, count: number): Promise<string[]> {
  const gadgets = Array.from({ length: count }, (_, at) => `${id}-g${at + 1}`);
  const actor = { actor: "test" };
  await db.transaction(async (tx) => {
    await lockThings(tx, [bayKey(id), ...gadgets.map((each) => ({ kind: "gadget", id: each }))]);
    await createAll(tx, storeOf(bayStores, "bay"), [{ id, row: { gadgets } }], actor);
    await createAll(
      tx,
      storeOf(bayStores, "gadget"),
      gadgets.map((each) => ({ id: each, row: {} })),
      actor,
    );
  });
  return gadgets;
}

export async function requestMaintenance(db: Database, id: string): Promise<void> {
  await db.transaction(async (tx) => {
    await lockThings(tx, [bayKey(id)]);
    await recordRequest(tx, storeOf(bayStores, "bay"), {
      field: "maintenanceRequest",
      ids: [id],
      initiator: "tester",
      wish: { activity: "flash" },
    });
  });
}
