import { move } from "../../../src/kernel/effects.ts";
import {
  ANY,
  asked,
  caused,
  defineLifecycle,
  GONE,
  type Happening,
  type JsonObject,
  type Lifecycle,
  type Thing,
} from "../../../src/kernel/lifecycle.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import type { EndedRunPhase } from "../../../src/runs/model/run.ts";
import type { TargetKind } from "../../../src/runs/targets/target-kind.ts";
import { createAll } from "../../../src/store/lifecycle/create.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../../../src/store/lifecycle/state-columns.ts";
import { parseRows, storeOf, type ThingStore, type ThingStores } from "../../../src/store/lifecycle/things.ts";
import type { Database, Queryable } from "../../../src/store/postgres/database.ts";

/** Shaped as racks and their devices are, and there for tests only: a rig has gadgets, and a run on it starts runs on them. */
export interface Rig extends Thing {
  readonly facts: { readonly gadgets: readonly string[] };
}
export interface Gadget extends Thing {
  readonly facts: { readonly runs?: number };
}

const its = (_: Thing, { data = {}, message }: Happening): JsonObject => ({ ...data, ...(message && { message }) });

export const rigLifecycle = defineLifecycle<Rig>()({
  kind: "rig",
  initial: "idle",
  // biome-ignore format: a table is read by its columns
  states: {
    idle:    { rest: true,    doc: "Rests." },
    working: { sla: hours(1), doc: "A run works on it." },
    broken:  { rest: true,    doc: "A run has failed." },
  },
  // biome-ignore format: a table is read by its columns
  transitions: [
    ["idle",    caused("run_started"),   "working", { carries: its }],
    ["broken",  caused("run_started"),   "working", { carries: its }],
    ["working", caused("run_succeeded"), "idle"],
    ["working", caused("run_canceled"),  "idle",    { carries: its }],
    ["working", caused("run_failed"),    "broken",  { carries: its }],
    [ANY,       asked("scrap"),          GONE],
  ],
});

export const gadgetLifecycle = defineLifecycle<Gadget>()({
  kind: "gadget",
  initial: "fitted",
  states: { fitted: { rest: true, doc: "In its rig." } },
  transitions: [[ANY, asked("scrap"), GONE]],
});

const CAUSES = { SUCCEEDED: "run_succeeded", FAILED: "run_failed", CANCELED: "run_canceled" } as const satisfies Record<
  EndedRunPhase,
  string
>;

export const rigTarget: TargetKind<Rig> = {
  kind: "rig",
  whenStarted: ({ id, target }) => [move(rigLifecycle, target.id, "run_started", { data: { run: id } })],
  whenEnded: ({ target }, { phase, message }) => [move(rigLifecycle, target.id, CAUSES[phase], { message })],
};
/** Work on one device of a rig changes nothing of the device's own state. */
export const gadgetTarget: TargetKind<Gadget> = { kind: "gadget", whenStarted: () => [], whenEnded: () => [] };

const storeFor = <T extends Thing>(lifecycle: Lifecycle<T>, table: string): ThingStore<T> => ({
  lifecycle,
  table,
  requests: {},
  async load(db, ids) {
    const rows = await db.query<StateColumns & { facts: T["facts"] }>(
      `select ${STATE_COLUMNS} from ${table} t where t.id = any($1)`,
      [ids],
    );
    return parseRows(rows, (row) => ({ ...parseStateColumns(row), id: row.id, facts: row.facts }) as T);
  },
});
export const rigStore = storeFor<Rig>(rigLifecycle as unknown as Lifecycle<Rig>, "rigs");
export const gadgetStore = storeFor<Gadget>(gadgetLifecycle as unknown as Lifecycle<Gadget>, "gadgets");

/** `gadget_world` is where the devices are: what is done to them is not part of any transaction of ours. */
export async function createRigTables(db: Queryable): Promise<void> {
  for (const table of ["rigs", "gadgets"])
    await db.query(`create table ${table} (
      id text primary key,
      facts jsonb not null default '{}',
      state text not null,
      state_data jsonb not null default '{}',
      state_version bigint not null default 1,
      state_since timestamptz not null default now(),
      outcome jsonb,
      version bigint not null default 1,
      basis bigint not null default 1)`);
  await db.query(`create table gadget_world (
    id text primary key, pokes int not null default 0, undone int not null default 0,
    refuses boolean not null default false, held boolean not null default false)`);
}

/** A rig with so many gadgets, all on record. Returns their ids. */
export async function addRig(db: Database, stores: ThingStores, id: string, count: number): Promise<string[]> {
  const gadgets = Array.from({ length: count }, (_, at) => `${id}-g${at + 1}`);
  const things = [{ kind: "rig", id }, ...gadgets.map((each) => ({ kind: "gadget", id: each }))];
  await db.transaction(async (tx) => {
    await lockThings(tx, things);
    const actor = { actor: "test" };
    await createAll(tx, storeOf(stores, "rig"), [{ id, row: { facts: { gadgets } } }], actor);
    await createAll(
      tx,
      storeOf(stores, "gadget"),
      gadgets.map((each) => ({ id: each, row: {} })),
      actor,
    );
  });
  await db.query("insert into gadget_world (id) select unnest($1::text[])", [gadgets]);
  return gadgets;
}
