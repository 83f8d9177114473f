import { z } from "zod";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import { CONDITION_TYPES, type DatedObservation, observe } from "../../lifecycles/machine/conditions.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { recordChanges } from "../lifecycle/changes.ts";
import type { Observed, ThingStore } from "../lifecycle/things.ts";
import type { Transaction } from "../postgres/database.ts";
import { conditionsJson, machineStore } from "./machines.ts";

export interface Observation {
  readonly observed: readonly DatedObservation[];
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
  await recordConditionsOf(tx, [{ machine, observed }], { now, ...by });
}

/** The same for many machines, in a few statements. */
export async function recordConditionsOf(
  tx: Transaction,
  seen: readonly {
    readonly machine: Pick<Machine, "id" | "conditions">;
    readonly observed: readonly DatedObservation[];
  }[],
  { now, ...by }: Omit<Observation, "observed">,
): Promise<void> {
  const changes = seen.flatMap(({ machine, observed }) => {
    const change = newIn(machine, observed, now);
    return change ? [{ id: machine.id, ...by, ...change }] : [];
  });
  await recordChanges(tx, machineStore as unknown as ThingStore, changes);
}

/** Undefined when nothing differs. */
function newIn(
  machine: Pick<Machine, "conditions">,
  observed: readonly DatedObservation[],
  now: Date,
): Observed | undefined {
  const conditions = observe(machine.conditions, observed, now);
  if (conditions === machine.conditions) return undefined;
  const changed = conditionsJson(conditions.filter((condition) => !machine.conditions.includes(condition)));
  return {
    type: "conditions_changed",
    data: { conditions: changed },
    set: { conditions: conditionsJson(conditions) },
  };
}

const observedSchema = z.array(
  z
    .object({
      type: z.enum(CONDITION_TYPES),
      status: z.boolean(),
      reason: z.string(),
      message: z.string(),
      cause: z.unknown().optional(),
      at: z.coerce.date().optional(),
    })
    .transform(({ cause: stored, ...observed }): DatedObservation => {
      const cause = parseCause(stored);
      return { ...observed, ...(cause && { cause }) };
    }),
);

/** What runs or other things saw of a machine; as it is under its lock. */
export const observeMachine = (machine: Machine, observed: readonly JsonObject[]): Observed | undefined =>
  newIn(machine, observedSchema.parse(observed), new Date()); // runs tell when they saw it, by the clock that all replicas share
