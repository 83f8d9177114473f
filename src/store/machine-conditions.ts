import { z } from "zod";
import { CONDITION_TYPES, type ObservedCondition, observe } from "../lifecycles/machine/conditions.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import { type Change, recordChanges } from "./changes.ts";
import type { Transaction } from "./database.ts";
import { conditionsJson, machineStore } from "./machines.ts";
import type { ThingObservation, ThingStore } from "./things.ts";

export interface Observation {
  readonly observed: readonly ObservedCondition[];
  readonly actor: string;
  readonly address?: string | null;
  readonly reason?: string | null;
  readonly now: Date;
}

/**
 * Keeps what was observed of a machine, with an event for what is new; the caller holds its lock, and `machine` is how it was
 * under that lock. Writes nothing when nothing differs. Guards read conditions, so that who moves the machine in the same
 * transaction loads it again.
 */
export async function recordConditions(
  tx: Transaction,
  machine: Pick<Machine, "id" | "conditions">,
  observation: Observation,
): Promise<void> {
  await recordChanges(tx, machineStore as unknown as ThingStore, changesOf(machine, observation));
}

/** None when nothing differs. */
function changesOf(
  machine: Pick<Machine, "id" | "conditions">,
  { observed, now, ...by }: Observation,
): readonly Change[] {
  const conditions = observe(machine.conditions, observed, now);
  if (conditions === machine.conditions) return [];
  const changed = conditionsJson(conditions.filter((condition) => !machine.conditions.includes(condition)));
  const set = { conditions: conditionsJson(conditions) };
  return [{ id: machine.id, type: "conditions_changed", ...by, data: { conditions: changed }, set }];
}

const observedSchema = z.array(
  z.object({ type: z.enum(CONDITION_TYPES), status: z.boolean(), reason: z.string(), message: z.string() }),
);

/** What runs or other things saw of machines, each of them once; the caller holds their locks. */
export async function observeMachines(tx: Transaction, observations: readonly ThingObservation[]): Promise<void> {
  const ids = observations.map(({ id }) => id);
  const machines = new Map((await machineStore.load(tx, ids)).things.map((machine) => [machine.id as string, machine]));
  const now = new Date();
  const changes = observations.flatMap(({ id, observed, actor }) => {
    const machine = machines.get(id);
    return machine ? changesOf(machine, { observed: observedSchema.parse(observed), actor, now }) : [];
  });
  await recordChanges(tx, machineStore as unknown as ThingStore, changes);
}
