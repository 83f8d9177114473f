import type { ProfilePart, RackProfile } from "../../lifecycles/rack/profile.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** A part as it is kept. */
interface StoredPart {
  readonly name?: string | null;
  readonly count?: number;
  readonly vendor?: string | null;
  readonly slot_ids?: readonly number[];
  readonly watts?: number | null;
}

interface ProfileRow {
  readonly name: string;
  readonly hardware_type: string | null;
  readonly topology: string | null;
  readonly class: RackProfile["class"] | null;
  readonly compute: StoredPart;
  readonly switches: StoredPart;
  readonly power_shelves: StoredPart;
}

const COLUMNS = "name, hardware_type, topology, class, compute, switches, power_shelves";

/** Those that are named, or all, in the order of their names. */
export async function listRackProfiles(db: Queryable, names?: readonly string[]): Promise<RackProfile[]> {
  const rows = await db.query<ProfileRow>(
    `select ${COLUMNS} from rack_profiles where ($1::text[] is null or name = any($1)) order by name`,
    [names ?? null],
  );
  return rows.map((row) => ({
    name: row.name,
    hardwareType: row.hardware_type,
    topology: row.topology,
    class: row.class ?? "prod",
    compute: partOf(row.compute),
    switches: partOf(row.switches),
    powerShelves: partOf(row.power_shelves),
  }));
}

const partOf = ({ name, count, vendor, slot_ids, watts }: StoredPart): ProfilePart => ({
  name: name ?? null,
  count: count ?? 0,
  vendor: vendor ?? null,
  slotIds: slot_ids ?? [],
  watts: watts ?? null,
});

const storedOf = ({ name, count, vendor, slotIds, watts }: ProfilePart): string =>
  JSON.stringify({ name, count, vendor, slot_ids: slotIds, watts } satisfies StoredPart);

/** Makes the profile, or replaces the one of that name; the caller holds its lock. */
export async function putRackProfile(tx: Transaction, profile: RackProfile, by: string): Promise<void> {
  await tx.execute(
    `insert into rack_profiles (${COLUMNS}, created_by) values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (name) do update set hardware_type = excluded.hardware_type, topology = excluded.topology, class = excluded.class,
       compute = excluded.compute, switches = excluded.switches, power_shelves = excluded.power_shelves, updated_at = now()`,
    [
      profile.name,
      profile.hardwareType,
      profile.topology,
      profile.class,
      storedOf(profile.compute),
      storedOf(profile.switches),
      storedOf(profile.powerShelves),
      by,
    ],
  );
  failPoint("rack-profiles:written");
}

/** The caller holds its lock, and knows that no rack names it. */
export async function removeRackProfile(tx: Transaction, name: string): Promise<boolean> {
  const removed = await tx.execute("delete from rack_profiles where name = $1", [name]);
  failPoint("rack-profiles:removed");
  return removed > 0;
}

/** The racks, expected or on record, that name the profile. */
export async function listRacksOfProfile(db: Queryable, name: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from racks where rack_profile_id = $1 union select id from expected_racks where rack_profile_id = $1 order by id`,
    [name],
  );
  return rows.map(({ id }) => id);
}
