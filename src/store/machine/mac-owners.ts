import type { Queryable } from "../postgres/database.ts";

/**
 * The machines that these MAC addresses belong to, by address: the one whose owner gave the address, else the one whose BMC reports
 * it. Of several BMCs that report it, the one whose machine has its install under it: a claim that comes later takes nothing away.
 * Otherwise it belongs to none of them. An address that nobody names any more, as where a BMC was replaced, is still that of the install
 * under it.
 */
export async function findMachinesByMac(db: Queryable, macs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const rows = await db.query<{ mac: string; machine_id: string }>({
    name: "machines.by_mac",
    text: `select m.mac, coalesce(i.machine_id, s.machine_id, n.machine_id, k.id) as machine_id
             from unnest($1::text[]) as m(mac)
                  left join machine_identities i on i.kind = 'mac' and i.value = m.mac
                  left join lateral (select min(machine_id) as machine_id from machine_seen_macs where mac = m.mac
                                     having count(*) = 1) as s on true
                  left join lateral (select min(r.machine_id) as machine_id
                                       from machine_seen_macs r join installs on installs.id = r.machine_id
                                      where r.mac = m.mac and installs.mac = m.mac and installs.state <> 'retired'
                                     having count(*) = 1) as n on true
                  left join lateral (select min(id) as id from installs
                                      where installs.mac = m.mac and installs.state <> 'retired'
                                        and not exists (select 1 from machine_seen_macs where mac = m.mac)
                                     having count(*) = 1) as k on true
            where coalesce(i.machine_id, s.machine_id, n.machine_id, k.id) is not null`,
    values: [macs],
  });
  return new Map(rows.map(({ mac, machine_id }) => [mac, machine_id]));
}

/** An address with the hash of the token that somebody shows. */
export interface ShownToken {
  readonly mac: string;
  readonly tokenHash: string;
}

/**
 * The machines whose BMCs report the address, and whose installs have handed out the token: whoever else claims the address, by the
 * token it is known whose it is. In the order of what was shown.
 */
export async function findMachinesByToken(
  db: Queryable,
  shown: readonly ShownToken[],
): Promise<readonly (string | undefined)[]> {
  if (shown.length === 0) return [];
  const rows = await db.query<{ nth: string; id: string }>({
    name: "machines.by_token",
    text: `select t.nth::text, installs.id
             from unnest($1::text[], $2::text[]) with ordinality as t(mac, token_hash, nth)
                  join machine_seen_macs s on s.mac = t.mac
                  join installs on installs.id = s.machine_id and installs.report_token_hash = t.token_hash`,
    values: [shown.map(({ mac }) => mac), shown.map(({ tokenHash }) => tokenHash)],
  });
  const found = new Map(rows.map(({ nth, id }) => [Number(nth) - 1, id]));
  return shown.map((_, index) => found.get(index));
}

/** The machines whose BMCs report the address. */
export async function listMacReporters(db: Queryable, mac: string): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>({
    name: "machines.mac_reporters",
    text: "select machine_id as id from machine_seen_macs where mac = $1 order by machine_id",
    values: [mac],
  });
  return rows.map(({ id }) => id);
}

interface SharedMac {
  readonly id: string;
  readonly mac: string;
  readonly other: string;
  /** Who says that the other one has it: the other one's BMC, or its owner. */
  readonly by: "bmc" | "owner";
}

/**
 * MAC addresses of these machines that another machine claims too, each as an alert in a few words. One of the two records is wrong, or
 * a card was moved; until somebody says which, a boot from that address cannot be told from the other machine's.
 */
export async function listSharedMacs(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await db.query<SharedMac>({
    name: "machines.shared_macs",
    text: `select s.machine_id as id, s.mac, o.machine_id as other, 'bmc' as by
             from machine_seen_macs s join machine_seen_macs o on o.mac = s.mac and o.machine_id <> s.machine_id
            where s.machine_id = any($1)
            union all
           select s.machine_id, s.mac, i.machine_id, 'owner'
             from machine_seen_macs s join machine_identities i on i.kind = 'mac' and i.value = s.mac and i.machine_id <> s.machine_id
            where s.machine_id = any($1)
            union all
           select i.machine_id, i.value, s.machine_id, 'bmc'
             from machine_identities i join machine_seen_macs s on s.mac = i.value and s.machine_id <> i.machine_id
            where i.kind = 'mac' and i.machine_id = any($1)
            order by 1, 2, 3`,
    values: [ids],
  });
  return new Map([...Map.groupBy(rows, ({ id }) => id)].map(([id, shared]) => [id, alertsOf(shared)]));
}

const MOST_NAMED = 3;

function alertsOf(shared: readonly SharedMac[]): string[] {
  // One that both the owner and the BMC of the other claim is told once.
  const told = [...new Map(shared.map((one) => [`${one.mac} ${one.other}`, one])).values()];
  const named = told.slice(0, MOST_NAMED).map(({ mac, other, by }) => {
    const claim =
      by === "bmc" ? `is also reported by the BMC of machine ${other}` : `is on record for machine ${other}`;
    return `identity: MAC ${mac} ${claim}`;
  });
  const more = told.length - named.length;
  return more > 0 ? [...named, `and ${more} more MAC addresses that other machines claim`] : named;
}
