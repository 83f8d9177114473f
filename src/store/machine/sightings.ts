import { follow } from "../../kernel/decide.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { ConditionType, ObservedCondition } from "../../lifecycles/machine/conditions.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { absorbTwins, findTwins, locksToAbsorb } from "../install/twins.ts";
import { commitUnits } from "../lifecycle/commit/commit-units.ts";
import type { Unit } from "../lifecycle/commit/unit.ts";
import { lockThings } from "../lifecycle/locks.ts";
import type { ThingStores } from "../lifecycle/things.ts";
import * as work from "../lifecycle/work.ts";
import type { Transaction } from "../postgres/database.ts";
import { listMachineAlerts } from "./alerts.ts";
import { type ClaimedCheck, heldChecks } from "./condition-checks.ts";
import { recordConditionsOf } from "./conditions.ts";
import { machineStore } from "./machines.ts";

const KIND = machineLifecycle.kind;

/** What one check of a machine is to change about it. */
export interface MachineSighting {
  readonly check: Pick<ClaimedCheck, "machineId" | "epoch">;
  /** As it was when it was checked. */
  readonly machine: Machine;
  readonly observed: readonly ObservedCondition[];
  /** The open alerts that `observed` goes by. */
  readonly alerts: readonly string[];
  readonly facts: JsonObject;
  /** It was read whole and is the right one: FACTORY_READY → READY. */
  readonly inspected: boolean;
}

/** Handlers wait for these, so that who changes one wakes the machine. */
const WAITED_FOR: ReadonlySet<ConditionType> = new Set(["Drained"]);

/**
 * Writes what many checks saw, in a few statements. A machine that changed since it was checked is left as it is, and so is one
 * that another replica has checked since: what was seen says nothing about what is now, and a run's own proof stands. Returns the
 * ids of those that were written.
 */
export async function recordSightings(
  tx: Transaction,
  stores: ThingStores,
  sightings: readonly MachineSighting[],
  { actor, now }: { readonly actor: string; readonly now: Date },
): Promise<ReadonlySet<string>> {
  const twins = await twinsOf(tx, sightings);
  await lockThings(tx, [
    ...sightings.map(({ machine }) => ({ kind: KIND, id: machine.id })),
    ...[...twins].flatMap(([id, found]) => locksToAbsorb(id, found)),
  ]);
  const held = await heldChecks(
    tx,
    sightings.map(({ check }) => check),
  );
  const ids = sightings.map(({ machine }) => machine.id);
  const present = new Map((await machineStore.load(tx, ids)).things.map((machine) => [machine.id as string, machine]));
  const fresh = sightings.filter(
    ({ machine }) => held.has(machine.id) && present.get(machine.id)?.basis === machine.basis,
  );
  const current = await withMacsOfInstalls(tx, await withoutStaleAlerts(tx, fresh));
  await commitUnits(
    tx,
    stores,
    current.flatMap((sighting) => unitOf(sighting, actor)),
  );
  // Under the locks, and with all that BMCs report written: somebody may have approved one, or another BMC claims its address too.
  for (const [machineId, found] of await twinsOf(tx, current)) {
    const present = found.filter((id) => twins.get(machineId)?.includes(id));
    await absorbTwins(tx, stores, { machineId, twins: present, actor });
  }
  const changed = await recordConditionsOf(tx, current, { actor, now });
  const woken = [
    ...current.filter(({ inspected }) => inspected).map(({ machine }) => machine.id),
    ...changed.filter(({ types }) => types.some((type) => WAITED_FOR.has(type))).map(({ id }) => id),
  ];
  await work.wake(
    tx,
    woken.map((id) => ({ kind: KIND, id })),
  );
  return new Set(current.map(({ machine }) => machine.id));
}

/** The twins of machines of which the check read MAC addresses, which is when they are inspected. */
async function twinsOf(
  tx: Transaction,
  sightings: readonly MachineSighting[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  for (const { machine, facts } of sightings) {
    const macs = Array.isArray(facts.macs) ? facts.macs.map(String) : [];
    const twins = await findTwins(tx, machine.id, macs);
    if (twins.length > 0) found.set(machine.id, twins);
  }
  return found;
}

/** A BMC may name a part of its ports only, as while its host is off: the one that the machine's install goes by stays the machine's. */
async function withMacsOfInstalls(
  tx: Transaction,
  sightings: readonly MachineSighting[],
): Promise<readonly MachineSighting[]> {
  const ids = sightings.filter(({ facts }) => Array.isArray(facts.macs)).map(({ machine }) => machine.id);
  if (ids.length === 0) return sightings;
  const rows = await tx.query<{ id: string; mac: string }>(
    "select id, mac from installs where id = any($1) and state <> 'retired'",
    [ids],
  );
  const macOf = new Map(rows.map(({ id, mac }) => [id, mac]));
  return sightings.map((sighting) => {
    const { machine, facts } = sighting;
    const mac = macOf.get(machine.id);
    if (!Array.isArray(facts.macs) || mac === undefined || facts.macs.includes(mac)) return sighting;
    return machine.facts.macs?.includes(mac)
      ? { ...sighting, facts: { ...facts, macs: [...facts.macs, mac] } }
      : sighting;
  });
}

/**
 * A report that came or ended during the check need not have changed the machine: where a part is not well, an alert changes no
 * condition. What the check says about health then goes by alerts that are no longer those, so that it is left to the next check.
 */
async function withoutStaleAlerts(tx: Transaction, sightings: readonly MachineSighting[]): Promise<MachineSighting[]> {
  const alertsOf = await listMachineAlerts(
    tx,
    sightings.map(({ machine }) => machine.id),
  );
  return sightings.map((sighting) => {
    const { machine, alerts, observed } = sighting;
    if (alertsOf(machine.id).join("\n") === alerts.join("\n")) return sighting;
    return { ...sighting, observed: observed.filter(({ type }) => type !== "Degraded") };
  });
}

function unitOf({ machine, facts, inspected }: MachineSighting, actor: string): Unit[] {
  const move = inspected ? follow(machineLifecycle, machine, { owner: "other", name: "inspected" }) : undefined;
  if (!move && Object.keys(facts).length === 0) return [];
  return [{ kind: KIND, thing: machine, facts, actor, ...(move && { move }) }];
}
