import {
  ANY,
  asked,
  defineLifecycle,
  GONE,
  type JsonObject,
  on,
  onFailure,
  STAY,
  type Thing,
  when,
} from "../../src/kernel/lifecycle.ts";
import { type Duration, milliseconds, minutes } from "../../src/kernel/time/duration.ts";
import { create } from "../../src/store/lifecycle/create.ts";
import { lockThings } from "../../src/store/lifecycle/locks.ts";
import { recordRequest } from "../../src/store/lifecycle/requests.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../../src/store/lifecycle/state-columns.ts";
import { collectThingStores, parseRows, type ThingKey, type ThingStore } from "../../src/store/lifecycle/things.ts";
import type { Database, Queryable } from "../../src/store/postgres/database.ts";
import { widgetKey, widgetStore } from "./widget.ts";

/** A thing for tests that works on several widgets at once, as a rack does on its devices. */
export interface Crate extends Thing {
  readonly facts: { readonly [name: string]: unknown };
  readonly workRequest: JsonObject | null;
  readonly parts: readonly string[];
  readonly barsFor: Duration | null;
}

const claimWaitExpired = ({ outcome }: Crate) => outcome?.barExpired === true;
const workRequested = ({ workRequest }: Crate) => workRequest !== null;
const itsWork = { field: "workRequest", carried: ({ state }: Crate) => state.request } as const;
const work = ({ workRequest, parts }: Crate): JsonObject => ({ request: workRequest ?? {}, parts });
const same = ({ state: { name: _, ...carried } }: Crate) => carried as JsonObject;

export const crateLifecycle = defineLifecycle<Crate>()({
  kind: "crate",
  initial: "ready",
  // biome-ignore format: a table is read by its columns
  states: {
    ready:    { rest: true,                    doc: "Rests, or waits for its widgets." },
    working:  { sla: minutes(5), claims: true, doc: "Works on its widgets." },
    checking: { sla: minutes(5), claims: true, doc: "Still has them." },
    broken:   { rest: true,                    doc: "Its work failed." },
  },
  // biome-ignore format: a table is read by its columns
  transitions: [
    ["ready",    when(claimWaitExpired), STAY,       { expires: ["workRequest"] }],
    ["ready",    when(workRequested),    "working",  { carries: work }],
    ["working",  on("worked"),           "checking", { carries: same }],
    ["working",  onFailure("failed"),    "broken",   { clears: [itsWork] }],
    ["checking", on("checked"),          "ready",    { clears: [itsWork] }],
    ["broken",   when(workRequested),    "working",  { carries: work }],
    [ANY,        asked("scrap"),         GONE,       { withdraws: ["workRequest"] }],
  ],
});

interface CrateRow extends StateColumns {
  facts: Crate["facts"];
  work_requested: JsonObject | null;
  parts: string[];
  bars_for: number | null;
}

export const crateKey = (id: string): ThingKey => ({ kind: "crate", id });

export const crateStore: ThingStore<Crate> = {
  lifecycle: crateLifecycle,
  table: "crates",
  requests: { workRequest: { column: "work_requested", lastColumn: "last_work_request" } },
  claims: ({ id, state, barsFor }) => ({
    targets: (state.parts as readonly string[]).map(widgetKey),
    holder: crateKey(id),
    ...(barsFor !== null && { barsFor }),
  }),
  async load(db, ids) {
    const rows = await db.query<CrateRow>(
      `select ${STATE_COLUMNS}, t.work_requested, t.parts, t.bars_for from crates t where t.id = any($1)`,
      [ids],
    );
    return parseRows(
      rows,
      (row): Crate => ({
        ...parseStateColumns(row),
        id: row.id,
        facts: row.facts,
        workRequest: row.work_requested,
        parts: row.parts,
        barsFor: row.bars_for === null ? null : milliseconds(row.bars_for),
      }),
    );
  },
};

/** Something that works on one widget, on behalf of a crate or on its own. */
export interface Chore extends Thing {
  readonly facts: object;
  readonly part: string;
  readonly crate: string | null;
}

export const choreLifecycle = defineLifecycle<Chore>()({
  kind: "chore",
  initial: "pending",
  // biome-ignore format: a table is read by its columns
  states: {
    pending: { sla: minutes(5),               doc: "Waits for its widget." },
    doing:   { sla: minutes(5), claims: true, doc: "Works on its widget." },
    done:    { terminal: true,                doc: "Has done so." },
  },
  // biome-ignore format: a table is read by its columns
  transitions: [
    ["pending", on("begun"), "doing"],
    ["doing",   on("ended"), "done"],
  ],
});

export const choreStore: ThingStore<Chore> = {
  lifecycle: choreLifecycle,
  table: "chores",
  requests: {},
  claims: ({ id, part, crate }) => ({
    targets: [widgetKey(part)],
    holder: crate === null ? { kind: "chore", id } : crateKey(crate),
  }),
  async load(db, ids) {
    const rows = await db.query<StateColumns & { facts: object; part: string; crate: string | null }>(
      `select ${STATE_COLUMNS}, t.part, t.crate from chores t where t.id = any($1)`,
      [ids],
    );
    return parseRows(
      rows,
      (row): Chore => ({ ...parseStateColumns(row), id: row.id, facts: row.facts, part: row.part, crate: row.crate }),
    );
  },
};

export const crateStores = collectThingStores([widgetStore, crateStore, choreStore]);

const LIFECYCLE_COLUMNS = `facts jsonb not null default '{}', state text not null, state_data jsonb not null default '{}',
  state_version bigint not null default 1, state_since timestamptz not null default now(), outcome jsonb,
  version bigint not null default 1, basis bigint not null default 1`;

/** The tables of crates and chores; that of widgets must be there. */
export async function createCrateTables(db: Queryable): Promise<void> {
  await db.query(`create table crates (id text primary key, parts text[] not null, bars_for float8, work_requested jsonb,
    last_work_request jsonb, ${LIFECYCLE_COLUMNS})`);
  await db.query(`create table chores (id text primary key, part text not null, crate text, ${LIFECYCLE_COLUMNS})`);
}

export async function addCrate(
  db: Database,
  id: string,
  parts: readonly string[],
  { barsFor = null }: { readonly barsFor?: Duration | null } = {},
): Promise<void> {
  await db.transaction(async (tx) => {
    await lockThings(tx, [crateKey(id)]);
    const row = { parts, bars_for: barsFor };
    await create(tx, crateStore as unknown as ThingStore, { id, row, actor: "test" });
  });
}

export async function addChore(db: Database, id: string, part: string, crate: string | null = null): Promise<void> {
  await db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "chore", id }]);
    await create(tx, choreStore as unknown as ThingStore, { id, row: { part, crate }, actor: "test" });
  });
}

export async function requestCrateWork(db: Database, ...ids: readonly string[]): Promise<void> {
  await db.transaction(async (tx) => {
    await lockThings(tx, ids.map(crateKey));
    await recordRequest(tx, crateStore as unknown as ThingStore, {
      field: "workRequest",
      ids,
      initiator: "tester",
      wish: { job: "polish" },
    });
  });
}
