import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

const IDENTITY_KINDS = ["mac", "serial", "bmc"] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** Something that no two machines share. */
export interface Identity {
  readonly kind: IdentityKind;
  readonly value: string;
}

export interface TakenIdentity extends Identity {
  readonly owner: string;
}

/**
 * Makes these the identities of the machine, in the place of those it had; the caller holds its lock. Returns those that belong
 * to others: nothing must then be committed. Somebody who races for the same one waits here for us to end.
 */
export async function replaceIdentities(
  tx: Transaction,
  machineId: string,
  identities: readonly Identity[],
): Promise<TakenIdentity[]> {
  const kinds = identities.map(({ kind }) => kind);
  const values = identities.map(({ value }) => value);
  await tx.execute(
    `delete from machine_identities m
      where m.machine_id = $1
        and not exists (select from unnest($2::text[], $3::text[]) as i(kind, value) where i.kind = m.kind and i.value = m.value)`,
    [machineId, kinds, values],
  );
  // In one order, so that two who want the same two do not wait for each other.
  await tx.execute(
    `insert into machine_identities (kind, value, machine_id)
     select i.kind, i.value, $1 from unnest($2::text[], $3::text[]) as i(kind, value) order by i.kind, i.value
     on conflict do nothing`,
    [machineId, kinds, values],
  );
  failPoint("machine-identities:written");
  return tx.query<TakenIdentity>(
    `select m.kind, m.value, m.machine_id as owner
       from machine_identities m join unnest($2::text[], $3::text[]) as i(kind, value) on i.kind = m.kind and i.value = m.value
      where m.machine_id <> $1 order by m.kind desc, m.value`,
    [machineId, kinds, values],
  );
}

/** The machines that have one of these, by what they have. */
export async function findOwners(db: Queryable, identities: readonly Identity[]): Promise<readonly TakenIdentity[]> {
  return db.query<TakenIdentity>(
    `select m.kind, m.value, m.machine_id as owner
       from machine_identities m join unnest($1::text[], $2::text[]) as i(kind, value) on i.kind = m.kind and i.value = m.value
      order by m.machine_id, m.kind, m.value`,
    [identities.map(({ kind }) => kind), identities.map(({ value }) => value)],
  );
}
