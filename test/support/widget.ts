import {
  ANY,
  asked,
  caused,
  defineLifecycle,
  GONE,
  type Happening,
  type JsonObject,
  on,
  onFailure,
  reported,
  STAY,
  type Thing,
  when,
} from "../../src/kernel/lifecycle.ts";
import { minutes } from "../../src/kernel/time/duration.ts";
import { create } from "../../src/store/lifecycle/create.ts";
import { lockThings } from "../../src/store/lifecycle/locks.ts";
import { recordRequest } from "../../src/store/lifecycle/requests.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../../src/store/lifecycle/state-columns.ts";
import { collectThingStores, parseRows, type ThingStore } from "../../src/store/lifecycle/things.ts";
import type { Database, Queryable } from "../../src/store/postgres/database.ts";

/** A thing that exists for tests only, with every kind of row that a lifecycle can have. */
export interface Widget extends Thing {
  readonly facts: WidgetFacts;
  readonly workRequest: JsonObject | null;
  readonly leaveAt: Date | null;
}

export interface WidgetFacts {
  readonly size?: number;
  readonly touches?: number;
  readonly turns?: number;
  /** Quiet: changes of it are told to nobody. */
  readonly heartbeat?: number;
  readonly [name: string]: unknown;
}

const seen = () => true;
const workRequested = (widget: Widget) => widget.workRequest !== null;
const toBeRemoved = (widget: Widget) => widget.leaveAt !== null;
const hasTurnsLeft = (widget: Widget) => (widget.facts.turns ?? 0) > 0;
const hasNoTurnsLeft = (widget: Widget) => !hasTurnsLeft(widget);
const isUntouched = (widget: Widget) => (widget.facts.touches ?? 0) === 0;

const itsWork = { field: "workRequest", carried: (widget: Widget) => widget.state.request } as const;
const work = ({ workRequest }: Widget): JsonObject => ({ request: workRequest ?? {} });
const cause = (_: Widget, { message }: Happening): JsonObject => ({ cause: message ?? "unknown" });
const touched = ({ facts }: Widget): JsonObject => ({ touches: (facts.touches ?? 0) + 1 });
const turned = ({ facts }: Widget): JsonObject => ({ turns: (facts.turns ?? 0) - 1 });

export const widgetLifecycle = defineLifecycle<Widget>()({
  kind: "widget",
  initial: "fresh",
  quietFacts: ["heartbeat"],
  // biome-ignore format: a table is read by its columns
  states: {
    fresh:   { sla: minutes(5), doc: "Just made." },
    idle:    { rest: true,      doc: "Rests." },
    busy:    { sla: minutes(5), deadline: minutes(4), claims: true, doc: "Works on what was asked." },
    broken:  { rest: true,      doc: "Its work failed." },
    kicked:  { sla: minutes(5), doc: "Another thing kicked it." },
    ring_a:  { sla: minutes(5), doc: "Turns in a ring." },
    ring_b:  { sla: minutes(5), doc: "Turns in a ring." },
    leaving: { sla: minutes(5), doc: "On its way out." },
  },
  // biome-ignore format: a table is read by its columns
  transitions: [
    ["fresh",   when(seen),          "idle"],
    ["idle",    when(toBeRemoved),   "leaving", { withdraws: ["workRequest"] }],
    ["idle",    when(workRequested), "busy",    { carries: work }],
    ["idle",    on("settled"),       "idle"],
    ["idle",    asked("spin"),       "ring_a"],
    ["idle",    asked("touch"),      STAY,      { sets: touched, provided: isUntouched }],
    ["idle",    reported("pinged"),  STAY,      { sets: touched }],
    ["idle",    caused("kicked"),    "kicked",  { carries: cause }],
    ["idle",    caused("employed"),  "busy",    { carries: cause }],
    ["idle",    on("dismissed"),     "leaving"],
    ["kicked",  on("settled"),       "idle"],
    ["kicked",  caused("calmed"),    "idle",    { sets: touched }],
    ["kicked",  caused("shaken"),    STAY,      { carries: cause }],
    ["kicked",  caused("pinched"),   STAY,      { sets: touched }],
    ["kicked",  caused("employed"),  "busy",    { carries: cause }],
    ["kicked",  caused("scrapped"),  GONE,      { withdraws: ["workRequest"] }],
    ["ring_a",  when(hasNoTurnsLeft), "idle"],
    ["ring_a",  when(hasTurnsLeft),  "ring_b",  { sets: turned }],
    ["ring_b",  when(hasTurnsLeft),  "ring_a",  { sets: turned }],
    ["ring_b",  when(hasNoTurnsLeft), "idle"],
    ["busy",    on("finished"),      "idle",    { clears: [itsWork] }],
    ["busy",    onFailure("failed"), "broken",  { clears: [itsWork], carries: cause }],
    ["broken",  when(workRequested), "busy",    { carries: work }],
    ["leaving", on("left"),          GONE],
    [ANY,       asked("scrap"),      GONE,      { withdraws: ["workRequest"] }],
  ],
});

interface WidgetRow extends StateColumns {
  facts: WidgetFacts;
  work_requested: JsonObject | null;
  leave_at: Date | null;
}

export const widgetStore: ThingStore<Widget> = {
  lifecycle: widgetLifecycle,
  table: "widgets",
  requests: { workRequest: { column: "work_requested", lastColumn: "last_work_request" } },
  async load(db, ids) {
    const rows = await db.query<WidgetRow>(
      `select ${STATE_COLUMNS}, t.work_requested, t.leave_at from widgets t where t.id = any($1)`,
      [ids],
    );
    return parseRows(rows, (row): Widget => {
      const { size } = row.facts;
      if (size !== undefined && typeof size !== "number")
        throw new Error(`facts.size: ${JSON.stringify(size)} is no number`);
      return {
        ...parseStateColumns(row),
        id: row.id,
        facts: row.facts,
        workRequest: row.work_requested,
        leaveAt: row.leave_at,
      };
    });
  },
};

export const widgetStores = collectThingStores([widgetStore]);
export const widgetKey = (id: string) => ({ kind: "widget", id });

/** A fact `size` of 13 is refused by the table itself: such an outcome can never be written. */
export async function createWidgetTable(db: Queryable): Promise<void> {
  await db.query(`create table widgets (
    id text primary key,
    facts jsonb not null default '{}' check (facts ->> 'size' is distinct from '13'),
    work_requested jsonb,
    last_work_request jsonb,
    leave_at timestamptz,
    state text not null,
    state_data jsonb not null default '{}',
    state_version bigint not null default 1,
    state_since timestamptz not null default now(),
    outcome jsonb,
    version bigint not null default 1,
    basis bigint not null default 1)`);
}

export async function addWidgets(db: Database, ids: readonly string[], row: JsonObject = {}): Promise<void> {
  await db.transaction(async (tx) => {
    await lockThings(tx, ids.map(widgetKey));
    for (const id of ids) await create(tx, widgetStore as unknown as ThingStore, { id, row, actor: "test" });
  });
}

/** Puts widgets straight into a state, as if they had got there by themselves. */
export async function placeWidgets(db: Database, ids: readonly string[], state: keyof typeof widgetLifecycle.states) {
  await addWidgets(db, ids);
  await db.query("update widgets set state = $2 where id = any($1)", [ids, state]);
}

export async function getWidget(db: Queryable, id: string): Promise<Widget> {
  const { things, unreadable } = await widgetStore.load(db, [id]);
  const [widget] = things;
  if (!widget) throw new Error(`widget ${id}: ${unreadable[0]?.error ?? "does not exist"}`);
  return widget;
}

export async function requestWork(db: Database, ids: readonly string[], wish: JsonObject = { job: "polish" }) {
  return db.transaction(async (tx) => {
    await lockThings(tx, ids.map(widgetKey));
    return recordRequest(tx, widgetStore as unknown as ThingStore, {
      field: "workRequest",
      ids,
      initiator: "tester",
      wish,
    });
  });
}
