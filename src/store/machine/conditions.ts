import { z } from "zod";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import {
  CONDITION_TYPES,
  type Condition,
  type Conditions,
  type ConditionType,
  type DatedObservation,
  holds,
  observe,
} from "../../lifecycles/machine/conditions.ts";
import { BANNERS, type Banner } from "../../lifecycles/machine/effective-state.ts";
import { EXCUSES, SHOULD_HOLD } from "../../lifecycles/machine/failing.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { recordChanges } from "../lifecycle/changes.ts";
import type { CommittedLine, Observed, ThingStore } from "../lifecycle/things.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
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

/** The same for many machines, in a few statements. Returns which conditions changed of which machines. */
export async function recordConditionsOf(
  tx: Transaction,
  seen: readonly {
    readonly machine: Pick<Machine, "id" | "conditions">;
    readonly observed: readonly DatedObservation[];
  }[],
  { now, ...by }: Omit<Observation, "observed">,
): Promise<{ readonly id: string; readonly types: readonly ConditionType[] }[]> {
  const changes = seen.flatMap(({ machine, observed }) => {
    const news = newsOf(machine, observed, now);
    return news ? [{ id: machine.id, ...by, ...news }] : [];
  });
  await recordChanges(tx, machineStore as unknown as ThingStore, changes);
  for (const line of grouped(changes.flatMap(({ lines }) => lines))) tx.logWhenCommitted(...line);
  return changes.map(({ id, changed }) => ({ id, types: changed.map(({ type }) => type) }));
}

/** What an observation changes about a machine; undefined when nothing differs. */
function newsOf(
  machine: Pick<Machine, "id" | "conditions">,
  observed: readonly DatedObservation[],
  now: Date,
): (Observed & { readonly changed: Conditions; readonly lines: readonly ConditionLine[] }) | undefined {
  const conditions = observe(machine.conditions, observed, now);
  if (conditions === machine.conditions) return undefined;
  const changed = conditions.filter((condition) => !machine.conditions.includes(condition));
  return {
    changed,
    type: "conditions_changed",
    data: { conditions: conditionsJson(changed) },
    set: { conditions: conditionsJson(conditions) },
    lines: changed.flatMap((condition) => lineOf(machine, condition)),
  };
}

interface ConditionFields {
  readonly kind: string;
  readonly id: string;
  readonly condition: ConditionType;
  readonly reason: string;
  readonly message: string;
  readonly cause?: string;
}
type ConditionLine = [ConditionFields, string, "info" | "warn"];

/** A condition that calls for somebody is told when it begins and when it ends, and not when only its words change. */
function lineOf({ id, conditions }: Pick<Machine, "id" | "conditions">, condition: Condition): ConditionLine[] {
  const { type, status, reason, message } = condition;
  if (type === "InCustomerCluster") return clusterLineOf({ id, conditions }, condition);
  if (SHOULD_HOLD.some((each) => each === type)) return reachLineOf({ id, conditions }, condition);
  if (!BANNERS.some((banner) => banner === type) || holds(conditions, type) === status) return [];
  const fields = { kind: machineStore.lifecycle.kind, id, condition: type, reason, message };
  return [status ? [fields, "a condition began", "warn"] : [fields, "a condition ended", "info"]];
}

/** A machine or a BMC that does not answer any more, unless somebody wants that, and that answers again. */
function reachLineOf({ id, conditions }: Pick<Machine, "id" | "conditions">, condition: Condition): ConditionLine[] {
  const { type, reason, message, cause } = condition;
  const wasAway = conditions.some((each) => each.type === type && isAway(each));
  if (isAway(condition) === wasAway) return [];
  const fields = { kind: machineStore.lifecycle.kind, id, condition: type, reason, message };
  return wasAway
    ? [[fields, "a machine answers again", "info"]]
    : [[{ ...fields, ...(cause && { cause: cause.code }) }, "a machine does not answer", "warn"]];
}

const isAway = ({ status, reason }: Condition): boolean => !status && !EXCUSES.some((excuse) => excuse === reason);

/** More lines of one sort than this are one line, such as those of a rack that lost its switch. */
const MOST_ALONE = 5;
const MOST_NAMED = 50;

/** Lines that differ in their machines alone, as one line that counts and names them. */
export function grouped(lines: readonly ConditionLine[]): CommittedLine[] {
  const sorts = Map.groupBy(lines, ([{ condition, reason }, text]) => JSON.stringify([text, condition, reason]));
  return [...sorts.values()].flatMap((same): CommittedLine[] => {
    const [first] = same;
    if (first === undefined || same.length <= MOST_ALONE) return same;
    const [{ kind, condition, reason, message }, text, level] = first;
    const ids = same.slice(0, MOST_NAMED).map(([{ id }]) => id);
    return [[{ kind, condition, reason, message, machines: same.length, ids }, text, level]];
  });
}

/** A cluster that keeps us out, as by a kubeconfig that cannot be used, is told when that begins and when it ends. */
function clusterLineOf({ id, conditions }: Pick<Machine, "id" | "conditions">, condition: Condition): ConditionLine[] {
  const { type, reason, message, cause } = condition;
  const before = conditions.find((each) => each.type === type)?.cause;
  if (before?.code === cause?.code) return [];
  const fields = { kind: machineStore.lifecycle.kind, id, condition: type, reason, message };
  return [
    cause
      ? [{ ...fields, cause: cause.code }, "a machine's cluster cannot be asked about it", "warn"]
      : [fields, "a machine's cluster answers again", "info"],
  ];
}

/** How many machines each condition that calls for somebody holds for. Those that are failing are few, and an index knows them. */
export async function countBanners(
  db: Queryable,
): Promise<{ readonly condition: Banner; readonly machines: number }[]> {
  return db.query<{ condition: Banner; machines: number }>(
    `select b.condition, count(m.id) as machines from unnest($1::text[]) as b(condition)
       left join machines m on m.failing = 'true'
            and m.conditions @> jsonb_build_array(jsonb_build_object('type', b.condition, 'status', true))
      group by b.condition`,
    [BANNERS],
  );
}

export interface MachineTrouble {
  readonly trouble: "needs_person" | "degraded" | "unreachable" | "bmc_unreachable";
  readonly rack: string;
  readonly cause: string;
  readonly things: number;
}

/** What is wrong with machines, by rack and why. A machine with several troubles counts in each. */
export const countMachineTroubles = (db: Queryable): Promise<MachineTrouble[]> =>
  db.query<MachineTrouble>(
    `select trouble, rack, cause, count(*)::int as things from (
       select coalesce(m.rack, '') as rack, coalesce(c -> 'cause' ->> 'code', c ->> 'reason') as cause,
              case when (c ->> 'status')::boolean then case c ->> 'type' when 'NeedsIntervention' then 'needs_person' when 'Degraded' then 'degraded' end
                   when m.state <> 'RMA' and c ->> 'reason' <> all($1) then
                     case c ->> 'type' when 'Reachable' then 'unreachable' when 'BMCReachable' then 'bmc_unreachable' end
              end as trouble
         from machines m cross join lateral jsonb_array_elements(m.conditions) as c
        where m.failing = 'true') as seen
      where trouble is not null group by trouble, rack, cause`,
    [EXCUSES],
  );

/** Which of these machines need a person now, in the order of their ids. */
export async function listCallingMachines(db: Queryable, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const text = `select id from machines where id = any($1) and state <> 'RETIRED'
    and conditions @> '[{"type": "NeedsIntervention", "status": true}]' order by id`;
  return (await db.query<{ id: string }>(text, [ids])).map(({ id }) => id);
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
  newsOf(machine, observedSchema.parse(observed), new Date()); // runs tell when they saw it, by the clock that all replicas share
