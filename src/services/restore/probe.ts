import { AppError, messageOf, StepFailure } from "../../kernel/errors.ts";
import type { RestoreReview } from "../../lifecycles/restore-review/restore-review.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import { listMachines } from "../../store/machine/machines.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { targetOfRun } from "../../store/restore/parts.ts";
import type { RunDeps } from "../run/deps.ts";

/** What a device says now of what the backup believes. */
export interface Probe {
  /** For people. */
  readonly seen: string;
  /** Why it is not safe to go on without looking; null: nothing speaks against it. */
  readonly objection: string | null;
}

/** The machine that a thing would touch first; undefined where it is none, or no machine. */
async function machineBehind(db: Queryable, { kind, id }: ThingKey): Promise<string | undefined> {
  if (kind === "machine" || kind === "install" || kind === "host_reprovision") return id;
  if (kind !== "run") return undefined;
  const target = await targetOfRun(db, id);
  return target?.kind === "machine" ? target.id : undefined;
}

/**
 * Asks the machine that a parked thing works on, and changes nothing. One that was reset after the last entry of the backup has been worked
 * on since, by a run that the backup believes to be at an earlier step. Null: there is no machine to ask.
 */
export async function probeParked(
  deps: RunDeps,
  { facts: { asOf } }: RestoreReview,
  thing: ThingKey,
  signal: AbortSignal,
): Promise<Probe | null> {
  const machineId = await machineBehind(deps.db, thing);
  const [machine] = machineId === undefined ? [] : await listMachines(deps.db, { ids: [machineId] });
  if (!machine || !deps.readPower) return null;
  try {
    const power = await deps.readPower(machine, signal);
    const boot = (await deps.readBoot?.(machine, signal)) ?? null;
    const seen = `machine ${machine.id} is ${power}`;
    const resetAt = Date.parse(boot?.lastReset ?? "");
    if (asOf === null || Number.isNaN(resetAt) || resetAt <= Date.parse(asOf)) return { seen, objection: null };
    const objection = `machine ${machine.id} was restarted at ${new Date(resetAt).toISOString()}, after the last entry of the backup (${asOf})`;
    return { seen: `${seen}; ${objection}`, objection };
  } catch (error) {
    if (!(error instanceof StepFailure || error instanceof AppError)) throw error;
    const objection = `machine ${machine.id} could not be asked: ${messageOf(error)}`;
    return { seen: objection, objection };
  }
}
