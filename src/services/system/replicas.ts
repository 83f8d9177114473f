import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { namedList } from "../../kernel/named-list.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listReplicas, lockOrders, type Replica, setDraining, setLogLevel } from "../../store/replica/replicas.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { audit } from "../catalog/audit.ts";

export { listReplicas, type Replica } from "../../store/replica/replicas.ts";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const USUAL_SECONDS = 15 * 60;
const MOST_SECONDS = 24 * 3_600;
/** A shorter beginning of an id may be that of a host just as well. */
const SHORTEST_ID = 4;

export const drainReplicas = (
  deps: ServiceDeps,
  caller: Caller,
  { names, force }: { readonly names: readonly string[]; readonly force: boolean },
): Promise<Replica[]> =>
  change(deps, caller, { names, data: { draining: true } }, async (tx, chosen, all) => {
    const drained = new Set(chosen.map(({ id }) => id));
    const left = all.filter(
      ({ id, isLiving, stopping, draining }) => isLiving && !stopping && !draining && !drained.has(id),
    );
    if (left.length === 0 && !force)
      throw new AppError("failed_precondition", "replicas: no replica would be left to work", {
        field: "replicas",
        next: "start another one first, or drain it all the same (--force)",
      });
    await setDraining(tx, [...drained], true);
  });

export const resumeReplicas = (deps: ServiceDeps, caller: Caller, names: readonly string[]): Promise<Replica[]> =>
  change(deps, caller, { names, data: { draining: false } }, (tx, chosen) =>
    setDraining(
      tx,
      chosen.map(({ id }) => id),
      false,
    ),
  );

export async function setReplicaLogLevel(
  deps: ServiceDeps,
  caller: Caller,
  { names, level, seconds }: { readonly names: readonly string[]; readonly level: string; readonly seconds: number },
): Promise<Replica[]> {
  if (level !== "" && !LOG_LEVELS.some((known) => known === level))
    throw new AppError("invalid_argument", `level: must be one of ${LOG_LEVELS.join(", ")}, or empty`, {
      field: "level",
    });
  if (seconds < 0 || seconds > MOST_SECONDS)
    throw new AppError("invalid_argument", `for_seconds: must be from 0 to ${MOST_SECONDS}`, { field: "for_seconds" });
  const order = { level: level === "" ? null : level, seconds: seconds || USUAL_SECONDS };
  const data = { log_level: order.level, ...(order.level !== null && { seconds: order.seconds }) };
  return change(deps, caller, { names, data, mayBeAll: true }, (tx, chosen) =>
    setLogLevel(
      tx,
      chosen.map(({ id }) => id),
      order,
    ),
  );
}

interface Change {
  readonly names: readonly string[];
  /** What the journal keeps of it. */
  readonly data: JsonObject;
  /** Without names it is for all that are living. */
  readonly mayBeAll?: boolean;
}

/** All of them or none. Returns them as they are afterwards. */
async function change(
  { db, maxFindByIds }: ServiceDeps,
  caller: Caller,
  { names, data, mayBeAll = false }: Change,
  write: (tx: Transaction, chosen: readonly Replica[], all: readonly Replica[]) => Promise<void>,
): Promise<Replica[]> {
  if ((names.length === 0 && !mayBeAll) || names.length > maxFindByIds)
    throw new AppError("invalid_argument", `replicas: between 1 and ${maxFindByIds} are required`, {
      field: "replicas",
    });
  return db.transaction(async (tx) => {
    await lockOrders(tx);
    const all = await listReplicas(tx);
    const named = names.map((name, at) => choose(all, name, `replicas[${at}]`));
    const chosen = names.length === 0 ? all.filter(({ isLiving }) => isLiving) : [...new Set(named)];
    await lockThings(
      tx,
      chosen.map(({ id }) => ({ kind: "replica", id })),
    );
    await write(tx, chosen, all);
    for (const { id, host } of chosen)
      await audit(tx, caller, { kind: "replica", id, type: "changed", data: { host, ...data } });
    const ids = new Set(chosen.map(({ id }) => id));
    return (await listReplicas(tx)).filter(({ id }) => ids.has(id));
  });
}

function choose(all: readonly Replica[], name: string, field: string): Replica {
  const living = all.filter(({ isLiving }) => isLiving);
  const isNamed = ({ id, host }: Replica) =>
    id === name || host === name || (name.length >= SHORTEST_ID && id.startsWith(name));
  const [found, ...others] = living.filter(isNamed);
  if (found && others.length === 0) return found;
  const next = "millwright replica list";
  const shown = JSON.stringify(name.slice(0, 80));
  if (found)
    throw new AppError(
      "invalid_argument",
      `${field}: ${shown} is ${namedList(
        [found, ...others].map(({ id }) => id),
        5,
      )}: name one by its id`,
      { field, next },
    );
  const isLost = all.some(isNamed);
  throw new AppError(
    isLost ? "failed_precondition" : "not_found",
    isLost ? `${field}: replica ${shown} is lost` : `${field}: there is no replica ${shown}`,
    { field, next },
  );
}
