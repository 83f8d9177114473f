import type { Database } from "../src/store/postgres/database.ts";
import { FACTORY_NEW, type MachineMemory, type MachineState } from "./instant-machines.ts";

/** Machines whose state outlives the server that works on them, as that of real ones does; every effect on them is a row. */
export async function createMachineTables(db: Database): Promise<void> {
  await db.query("create unlogged table bench_machines (id text primary key, state jsonb not null)");
  await db.query("create unlogged table bench_effects (id text not null, effect text not null)");
  await db.query("create index on bench_effects (id, effect)");
}

export function machinesInDatabase(db: Database): MachineMemory {
  return {
    async read(id) {
      const [row] = await db.query<{ state: MachineState }>({
        hot: true,
        text: "select state from bench_machines where id = $1",
        values: [id],
      });
      return row?.state ?? FACTORY_NEW;
    },
    async change(id, effect, patch) {
      await db.query({
        hot: true,
        text: `with counted as (insert into bench_effects (id, effect) select $1, $2::text where $2 is not null)
               insert into bench_machines as m (id, state) values ($1, $3::jsonb || $4::jsonb)
               on conflict (id) do update set state = m.state || $4::jsonb`,
        values: [id, effect, JSON.stringify(FACTORY_NEW), JSON.stringify(patch)],
      });
    },
  };
}
