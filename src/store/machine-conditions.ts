import { z } from "zod";
import type { JsonObject } from "../kernel/lifecycle.ts";
import { CONDITION_TYPES, type ObservedCondition, observe } from "../lifecycles/machine/conditions.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import { recordChange } from "./changes.ts";
import type { Transaction } from "./database.ts";
import { conditionsJson, machineStore } from "./machines.ts";
import type { ThingStore } from "./things.ts";

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
  { observed, now, ...by }: Observation,
): Promise<void> {
  const conditions = observe(machine.conditions, observed, now);
  if (conditions === machine.conditions) return;
  const changed = conditionsJson(conditions.filter((condition) => !machine.conditions.includes(condition)));
  await recordChange(tx, machineStore as unknown as ThingStore, {
    id: machine.id,
    type: "conditions_changed",
    ...by,
    data: { conditions: changed },
    set: { conditions: conditionsJson(conditions) },
  });
}

const observedSchema = z.array(
  z.object({ type: z.enum(CONDITION_TYPES), status: z.boolean(), reason: z.string(), message: z.string() }),
);

/** What a run or another thing saw of a machine; the caller holds its lock. */
export async function observeMachine(
  tx: Transaction,
  id: string,
  observed: readonly JsonObject[],
  actor: string,
): Promise<void> {
  const [machine] = (await machineStore.load(tx, [id])).things;
  if (machine)
    await recordConditions(tx, machine, { observed: observedSchema.parse(observed), actor, now: new Date() });
}
