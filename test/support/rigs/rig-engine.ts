import { Controller, type ControllerOptions } from "../../../src/engine/controller.ts";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { type RunContext, runHandlers } from "../../../src/runs/executor/executor.ts";
import { BegunActions } from "../../../src/runs/executor/step/begun-actions.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import type { Step } from "../../../src/runs/model/plan/plan.ts";
import type { AnyStep } from "../../../src/runs/model/step.ts";
import { startsRun } from "../../../src/runs/targets/new-run.ts";
import type { Workflows } from "../../../src/runs/workflows/workflow.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { collectThingStores, storeOf } from "../../../src/store/lifecycle/things.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { collectRunTargets, type WiredTarget } from "../../../src/wiring/run-targets.ts";
import { withContext } from "../../../src/wiring/things/with-context.ts";
import { bareStores } from "../processes/bare-stores.ts";
import { gadgetStore, gadgetTarget, rigStore, rigTarget } from "./rig.ts";
import { openGadgetWorld, rigSteps } from "./steps.ts";

/** The stores of all things that there are, and of rigs and gadgets. */
export const rigStores = collectThingStores([...bareStores, rigStore, gadgetStore]);

const NO_PROVIDER = { name: "test", can: {} };

/** What runs on rigs may consist of. */
export interface RigKinds {
  readonly steps: ReadonlyMap<string, AnyStep>;
  readonly workflows: Workflows;
}
const RIG_KINDS: RigKinds = { steps: rigSteps, workflows: new Map() };

function rigRunHandlers(
  db: Database,
  { clock, instance, kinds }: { clock: Clock; instance: string; kinds: RigKinds },
): HandlerOf {
  const world = openGadgetWorld(db);
  const wired = [
    { kind: rigTarget, providerOf: () => NO_PROVIDER, partsOf: () => ({ replica: instance }) },
    { kind: gadgetTarget, providerOf: () => NO_PROVIDER, partsOf: () => ({ world }) },
  ] as unknown as readonly WiredTarget[];
  const targets = collectRunTargets(wired);
  const begun = new BegunActions();
  const contextOf = (run: RunThing): Omit<RunContext, "call"> => ({
    clock,
    ...kinds,
    instance,
    begun,
    ...targets.contextOf(run),
  });
  return withContext(runHandlers, contextOf, targets.asSeen);
}

export interface RigEngine {
  stop(): Promise<void>;
}

/** Carries out the runs of a database, woken by NOTIFY as in the real process. */
export async function startRigEngine(
  db: Database,
  {
    instance = "one",
    around = (same: HandlerOf) => same,
    clock = systemClock,
    kinds = RIG_KINDS,
    ...options
  }: Partial<ControllerOptions> & {
    instance?: string;
    around?: (handlers: HandlerOf) => HandlerOf;
    kinds?: RigKinds;
  } = {},
): Promise<RigEngine> {
  const stop = new AbortController();
  const controller = new Controller({
    db,
    stores: rigStores,
    log: silentLog,
    owner: instance,
    handlers: new Map([["run", around(rigRunHandlers(db, { clock, instance, kinds }))]]),
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

/** Starts a run of these steps on a rig, as the rig itself would in a commit of its own. Returns its id. */
export async function startRigRun(
  db: Database,
  rigId: string,
  kinds: readonly string[],
  {
    request = "once",
    timeoutSeconds,
    payload = {},
  }: { readonly request?: string; readonly timeoutSeconds?: number; readonly payload?: JsonObject } = {},
): Promise<string> {
  const steps = kinds.map((kind): Step => {
    const { defaults } = rigSteps.get(kind) ?? {};
    if (!defaults) throw new Error(`there is no step ${kind}`);
    const { timeout, maxRetries } = defaults;
    return { name: kind, kind, timeoutSeconds: timeoutSeconds ?? timeout / 1_000, maxRetries, payload };
  });
  const { id, row } = startsRun(
    {
      target: { kind: "rig", id: rigId },
      plan: { planId: "rig-work", displayName: "Work on a rig", steps },
      initiator: "tester",
    },
    [rigId, request],
  );
  await db.transaction(async (tx) => {
    await lockThings(tx, [
      { kind: "rig", id: rigId },
      { kind: "run", id },
    ]);
    await create(tx, storeOf(rigStores, "run"), { id, row, actor: "tester", ifMissing: true });
  });
  return id;
}
