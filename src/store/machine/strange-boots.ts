import { type Duration, hours, minutes, seconds } from "../../kernel/time/duration.ts";
import { describeIdentity, isContradicted } from "../../lifecycles/machine/boot-identity.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { recordChange } from "../lifecycle/changes.ts";
import { lockThings } from "../lifecycle/locks.ts";
import { storeOf, type ThingStores } from "../lifecycle/things.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

const KIND = machineLifecycle.kind;

/** A boot from an address of the machine, with hardware that is not the machine's. */
export interface StrangeBoot {
  readonly mac: string;
  readonly serial: string;
  readonly systemUuid: string;
  readonly address: string | null;
}

/** Anybody on the boot network can repeat it as often as they like: so often it is told, and so often it is written. */
const TOLD_EVERY: Duration = minutes(10);
const WRITTEN_EVERY: Duration = seconds(10);
/** So long the alert stays after the last of them. */
const OPEN_FOR: Duration = hours(24);

/** Keeps the boot for the alert, and tells of it by an event that names both sides. */
export async function noteStrangeBoot(
  tx: Transaction,
  stores: ThingStores,
  machine: Machine,
  boot: StrangeBoot & { readonly actor: string },
): Promise<void> {
  if (await isWithin(tx, machine.id, "last_at", WRITTEN_EVERY)) return;
  await lockThings(tx, [{ kind: KIND, id: machine.id }]);
  const { mac, serial, systemUuid, address, actor } = boot;
  if (await isWithin(tx, machine.id, "told_at", TOLD_EVERY)) {
    await tx.execute("update strange_boots set last_at = now() where machine_id = $1", [machine.id]);
    return;
  }
  await tx.execute(
    `insert into strange_boots (machine_id, mac, serial, system_uuid, address, told_at, last_at)
     values ($1, $2, $3, $4, $5, now(), now())
     on conflict (machine_id) do update
        set mac = excluded.mac, serial = excluded.serial, system_uuid = excluded.system_uuid, address = excluded.address,
            told_at = excluded.told_at, last_at = excluded.last_at`,
    [machine.id, mac, serial, systemUuid, address],
  );
  failPoint("strange-boots:written", [{ kind: KIND }]);
  const told = describeIdentity(serial, systemUuid);
  const known = describeIdentity(machine.spec.serial ?? machine.facts.serial, machine.facts.systemUuid);
  await recordChange(tx, storeOf(stores, KIND), {
    id: machine.id,
    type: "boot_contradicted",
    actor,
    address,
    reason: `a boot from ${mac} says ${told}, but the machine has ${known}`,
    data: { mac, told, known },
    set: {},
    touchesBasis: false,
  });
  tx.logWhenCommitted({ kind: KIND, id: machine.id, mac, told, known }, "a boot contradicts its machine", "warn");
}

async function isWithin(
  tx: Transaction,
  machineId: string,
  column: "told_at" | "last_at",
  duration: Duration,
): Promise<boolean> {
  const text = `select 1 from strange_boots where machine_id = $1 and ${column} > now() - $2 * interval '1 ms'`;
  return (await tx.query(text, [machineId, duration])).length > 0;
}

/**
 * Strange boots of the last day, each as an alert in a few words. It ends before that once what is on record of the machine does not
 * contradict the boot any more, or the address is no longer the machine's.
 */
export async function listStrangeBoots(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await db.query<{
    id: string;
    mac: string;
    told_serial: string;
    told_uuid: string;
    given_serial: string | null;
    read_serial: string | null;
    known_uuid: string | null;
  }>({
    name: "machines.strange_boots",
    text: `select b.machine_id as id, b.mac, b.serial as told_serial, b.system_uuid as told_uuid, m.serial as given_serial,
                  m.facts ->> 'serial' as read_serial, m.facts ->> 'systemUuid' as known_uuid
             from strange_boots b join machines m on m.id = b.machine_id
            where b.machine_id = any($1) and b.last_at > now() - $2 * interval '1 ms'
              and (exists (select 1 from machine_identities i where i.kind = 'mac' and i.value = b.mac and i.machine_id = m.id)
                   or exists (select 1 from machine_seen_macs s where s.mac = b.mac and s.machine_id = m.id)
                   or exists (select 1 from installs n where n.id = m.id and n.mac = b.mac and n.state <> 'retired'))`,
    values: [ids, OPEN_FOR],
  });
  const alerts = rows.flatMap(({ id, mac, told_serial, told_uuid, given_serial, read_serial, known_uuid }) => {
    const told = { serial: told_serial, systemUuid: told_uuid };
    if (!isContradicted(told, { serials: [given_serial, read_serial], systemUuid: known_uuid })) return [];
    const known = describeIdentity(given_serial ?? read_serial, known_uuid);
    const words = `identity: a boot from MAC ${mac} says ${describeIdentity(told_serial, told_uuid)}, but the machine has ${known}`;
    return [[id, [words]] as const];
  });
  return new Map(alerts);
}
