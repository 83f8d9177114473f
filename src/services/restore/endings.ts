import { AppError } from "../../kernel/errors.ts";
import { runningRequestOf } from "../../lifecycles/power-shelf/running-request.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { loadInstalls } from "../../store/install/installs.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { withdrawPending } from "../../store/lifecycle/commit/end-requests.ts";
import { storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import { listPowerShelves } from "../../store/power-shelf/power-shelves.ts";
import { activeRunsBelow, activeRunsOf, installsOrderedBy } from "../../store/restore/parts.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";

/** What works for a thing, and goes its way: the runs that its steps have started, and the installs that they have ordered. */
export async function partsOf(db: Queryable, { kind, id }: ThingKey): Promise<readonly ThingKey[]> {
  if (kind !== "run") return [];
  const runs = await activeRunsBelow(db, id);
  const installs = await installsOrderedBy(db, [id, ...runs]);
  return [
    ...runs.map((run) => ({ kind: "run", id: run })),
    ...installs.map((install) => ({ kind: "install", id: install })),
  ];
}

const refuse = ({ kind, id }: ThingKey, why: string, next: string): AppError =>
  new AppError("failed_precondition", `${kind} ${id} cannot be ${why}`, { field: "things", next });

const resumeInstead = (thing: ThingKey): string => `millwright restore resume ${thing.kind}/${thing.id}`;

/** Ends the thing, the first, with its parts. The caller holds their locks. */
export async function abandonThing(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  [thing, ...parts]: readonly ThingKey[],
): Promise<void> {
  if (!thing) return;
  const runs = [thing, ...parts].filter(({ kind }) => kind === "run").map(({ id }) => id);
  if (runs.length > 0) return abandonRuns(tx, deps, caller, runs);
  if (thing.kind === "install") return abandonInstall(tx, deps, caller, thing);
  if (await withdrawRequests(tx, deps, caller, thing)) return;
  throw refuse(thing, "abandoned: it has no request that could end", resumeInstead(thing));
}

async function abandonRuns(tx: Transaction, deps: ServiceDeps, caller: Caller, ids: readonly string[]): Promise<void> {
  const at = nowOf(deps);
  const { actor, address } = doneBy(caller);
  for (const id of await activeRunsOf(tx, ids))
    await recordChange(tx, storeOf(deps.stores, "run"), {
      ...{ id, actor, address, type: "cancel_requested" },
      reason: "abandoned: the database was restored from a backup",
      set: { cancel_requested_at: at, abandoned_at: at, abandoned_by: actor },
    });
}

async function abandonInstall(tx: Transaction, deps: ServiceDeps, caller: Caller, thing: ThingKey): Promise<void> {
  const [install] = (await loadInstalls(tx, [thing.id])).things;
  const orderedBy = install?.facts.orderedBy ?? null;
  if (orderedBy !== null)
    throw refuse(thing, `abandoned: run ${orderedBy} has ordered it`, `millwright restore abandon run/${orderedBy}`);
  const by = { ...thing, ...doneBy(caller) };
  switch (install?.state.name) {
    case "pending":
      return applyVerb(tx, deps.stores, { ...by, owner: "other", name: "called_off" });
    case "installing":
      return applyVerb(tx, deps.stores, { ...by, owner: "caller", name: "give_up" });
    default:
      throw refuse(thing, `abandoned while it is ${install?.state.name}`, resumeInstead(thing));
  }
}

/** Whether there was one. */
async function withdrawRequests(tx: Transaction, deps: ServiceDeps, caller: Caller, thing: ThingKey): Promise<boolean> {
  const store = storeOf(deps.stores, thing.kind);
  let wasRunning = false;
  if (thing.kind === "power_shelf") {
    const [shelf] = await listPowerShelves(tx, { ids: [thing.id] });
    const requestId = shelf && runningRequestOf(shelf);
    if (shelf && requestId !== undefined) {
      const cancelRequest = { requestId, by: doneBy(caller).actor, at: nowOf(deps).toISOString() };
      await commitOrRefuse(tx, deps.stores, [
        { kind: thing.kind, thing: shelf, facts: { cancelRequest }, ...doneBy(caller) },
      ]);
      wasRunning = true;
    }
  }
  const fields = Object.entries(store.requests);
  let withdrawn = 0;
  for (const [field, { column }] of fields) {
    const [row] = await tx.query<{ has: boolean }>(
      `select ${column} is not null as has from ${store.table} where id = $1`,
      [thing.id],
    );
    if (!row?.has) continue;
    await withdrawPending(tx, store, { field, id: thing.id, ...doneBy(caller) });
    withdrawn += 1;
  }
  return wasRunning || withdrawn > 0;
}

/** Has the thing, the first, look only, and end by what it sees. The caller holds the locks. */
export async function adoptThing(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  found: readonly ThingKey[],
): Promise<void> {
  const [thing] = found;
  if (!thing) return;
  if (thing.kind === "run") {
    const [run] = await listRuns(tx, { ids: [thing.id] });
    return run && isActive(run.phase) ? adoptRun(tx, deps, caller, run) : undefined;
  }
  if (thing.kind !== "install" && (await withdrawRequests(tx, deps, caller, thing))) return; // its state is read all the time
  throw refuse(thing, "adopted: no device can be read that shows how far it got", resumeInstead(thing));
}

async function adoptRun(tx: Transaction, deps: ServiceDeps, caller: Caller, run: Run): Promise<void> {
  const thing = { kind: "run", id: run.id };
  if (run.machineId === null || run.plan.workflow !== undefined)
    throw refuse(
      thing,
      "adopted: only a run of a plan on a machine can be probed without acting",
      `millwright restore abandon run/${run.id}`,
    );
  const { actor, address } = doneBy(caller);
  await recordChange(tx, storeOf(deps.stores, "run"), {
    ...{ id: run.id, actor, address, type: "adopting" },
    reason: "looks only: the database was restored from a backup",
    set: { action: "adopt" },
  });
}
