import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { recordChange } from "../lifecycle/changes.ts";
import { create } from "../lifecycle/create.ts";
import { storeOf, type ThingKey, type ThingStores } from "../lifecycle/things.ts";
import { applyVerb } from "../lifecycle/verbs.ts";
import { replaceIdentities } from "../machine/identities.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { NOBODY_S } from "./found-by-boot.ts";
import { type InstallRecord, loadInstalls } from "./installs.ts";

const [MACHINE, INSTALL] = [machineLifecycle.kind, installLifecycle.kind];

/** The name under which a machine that boots from the network is journaled. */
export const bootActorOf = (mac: string): string => `node ${mac}`;

/**
 * The twins of a machine, which has these MAC addresses: machines that only a boot from the network has put on record. Nobody has approved
 * them, or said anything about them. Not those of an address that other BMCs report too: whose twin it is cannot be said.
 */
export async function findTwins(db: Queryable, machineId: string, macs: readonly string[]): Promise<readonly string[]> {
  if (macs.length === 0) return [];
  const rows = await db.query<{ id: string }>(
    `select m.id
       from machine_identities x join machines m on m.id = x.machine_id join installs i on i.id = m.id
      where x.kind = 'mac' and x.value = any($2) and m.id <> $1 and m.macs = array[x.value]
        and ${NOBODY_S}
        and exists (select 1 from journal j where j.kind = '${MACHINE}' and j.id = m.id and j.type = 'created'
                       and j.actor = $3 || x.value)
        and not exists (select 1 from machine_seen_macs s where s.mac = x.value and s.machine_id <> $1)
      order by m.id`,
    [machineId, macs, bootActorOf("")],
  );
  return rows.map(({ id }) => id);
}

/** All that must be locked before a machine absorbs its twins; nothing where it has none. */
export const locksToAbsorb = (machineId: string, twins: readonly string[]): ThingKey[] =>
  twins.length === 0 ? [] : [machineId, ...twins].flatMap((id) => [MACHINE, INSTALL].map((kind) => ({ kind, id })));

/**
 * Makes the install of a twin the machine's own, and retires the twin: both are the same hardware, met once through its BMC and once
 * at its boot. A machine that has an install keeps its own. The caller holds the locks, and has found the twins under them.
 */
export async function absorbTwins(
  tx: Transaction,
  stores: ThingStores,
  { machineId, twins, ...by }: AbsorbingTwins,
): Promise<void> {
  for (const twin of twins) {
    const [known] = (await loadInstalls(tx, [twin])).things;
    const message = `absorbed by machine ${machineId}`;
    for (const kind of [INSTALL, MACHINE])
      await applyVerb(tx, stores, { kind, id: twin, owner: "caller", name: "retire", message, ...by });
    await replaceIdentities(tx, twin, []);
    const isWithout = (await loadInstalls(tx, [machineId])).things.length === 0;
    if (known && isWithout) {
      const reason = `booted as ${twin} before`;
      await create(tx, storeOf(stores, INSTALL), { id: machineId, row: rowOf(known), reason, ...by });
    }
    const data = { machine: twin, ...(known && { mac: known.mac }) };
    await recordChange(tx, storeOf(stores, MACHINE), { id: machineId, type: "twin_absorbed", ...by, data, set: {} });
    tx.logWhenCommitted({ kind: MACHINE, id: machineId, twin }, "a machine absorbed its discovered twin");
  }
}

interface AbsorbingTwins {
  readonly machineId: string;
  readonly twins: readonly string[];
  readonly actor: string;
  readonly address?: string | null;
}

function rowOf({ mac, arch, bootMode, groupId, workflowId, tags, facts }: InstallRecord) {
  const { hostname, ipAddress, vendor, model, serialNumber, systemUuid, lastSeenAt } = facts;
  const told = { hostname, ipAddress, vendor, model, serialNumber, systemUuid };
  return {
    mac,
    arch,
    boot_mode: bootMode,
    group_id: groupId,
    workflow_id: workflowId,
    tags: [...tags],
    facts: { ...told, ...(lastSeenAt && { lastSeenAt: lastSeenAt.toISOString() }) },
  };
}
