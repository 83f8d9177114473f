import { type Duration, hours } from "../../kernel/time/duration.ts";
import type { Queryable } from "../postgres/database.ts";

/** Where the boot led to an end, the alert stays so long; where people have to settle it, until they have. */
const OPEN_FOR: Duration = hours(24);
/** Compared as text: all of them are written alike. */
const OPEN = `t.boot ->> 'contestedAt' is not null
  and (t.state in ('pending', 'installing', 'deprovisioning')
       or t.boot ->> 'contestedAt' > to_char((now() - $1 * interval '1 ms') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'))`;

/** Boots of these machines whose script two addresses asked for, each as an alert in a few words. */
export async function listContestedBoots(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await db.query<{ id: string; address: string | null; others: string[] }>({
    name: "installs.contested",
    text: `select t.id, t.boot ->> 'address' as address, array(select jsonb_array_elements_text(t.boot -> 'others')) as others
             from installs t where t.id = any($2) and ${OPEN}`,
    values: [OPEN_FOR, ids],
  });
  return new Map(
    rows.map(({ id, address, others }) => [
      id,
      [`boot: ${[address ?? "", ...others].join(" and ")} asked for the script of one boot; neither proves anything`],
    ]),
  );
}

/** Of all machines, for the metric. */
export async function countContestedBoots(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>({
    name: "installs.count_contested",
    text: `select count(*)::int as count from installs t where ${OPEN}`,
    values: [OPEN_FOR],
  });
  return row?.count ?? 0;
}
