import { expect, test } from "vitest";
import {
  ANY,
  asked,
  defineLifecycle,
  GONE,
  type JsonObject,
  on,
  type Thing,
  when,
} from "../../../src/kernel/lifecycle.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import type { Caller } from "../../../src/services/call/caller.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { deleteDevice, forceDeleteDevice } from "../../../src/services/device/deletion.ts";
import {
  findHealthReports,
  insertHealthReport,
  removeHealthReport,
} from "../../../src/services/device/health-reports.ts";
import { findStateHistories } from "../../../src/services/device/histories.ts";
import { metadataVersionOf, updateMetadata } from "../../../src/services/device/metadata.ts";
import { deviceTraits, type VersionedMetadata } from "../../../src/store/device/device.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { listHistory } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { recordRequest } from "../../../src/store/lifecycle/requests.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../../../src/store/lifecycle/state-columns.ts";
import { collectThingStores, parseRows, storeOf, type ThingStore } from "../../../src/store/lifecycle/things.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { recordClaim } from "../../support/claims.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** A kind of devices that exists for this test only. All that the services know of it is its store. */
interface Gauge extends Thing, VersionedMetadata {
  readonly deletedAt: Date | null;
  readonly tuneRequest: JsonObject | null;
}

const markedForDeletion = ({ deletedAt }: Gauge) => deletedAt !== null;
const tuneRequested = ({ tuneRequest }: Gauge) => tuneRequest !== null;

const gaugeLifecycle = defineLifecycle<Gauge>()({
  kind: "gauge",
  initial: "idle",
  states: {
    idle: { rest: true, doc: "Rests." },
    tuning: { sla: minutes(5), doc: "Being tuned." },
    leaving: { sla: minutes(5), doc: "Being removed." },
  },
  transitions: [
    ["idle", when(markedForDeletion), "leaving"],
    ["idle", when(tuneRequested), "tuning"],
    ["tuning", on("tuned"), "idle"],
    ["leaving", on("left"), GONE],
    [ANY, asked("force_delete"), GONE, { withdraws: ["tuneRequest"] }],
  ],
});

interface GaugeRow extends StateColumns {
  name: string;
  description: string;
  labels: Record<string, string | null>;
  metadata_version: number;
  metadata_changed_at: Date;
  deleted_at: Date | null;
  tune_requested: JsonObject | null;
}

const COLUMNS = `${STATE_COLUMNS}, t.name, t.description, t.labels, t.metadata_version, t.metadata_changed_at, t.deleted_at, t.tune_requested`;
const gaugeStore: ThingStore<Gauge> = {
  lifecycle: gaugeLifecycle,
  table: "gauges",
  requests: { tuneRequest: { column: "tune_requested", lastColumn: "last_tune_request" } },
  device: deviceTraits<Gauge>({
    noun: "gauge",
    command: "gauge",
    parseId: (text) => text,
    list: async (db, ids) => (await gaugeStore.load(db, ids)).things,
    metadataOf: (gauge) => gauge,
    deletion: {},
  }),
  load: async (db, ids) =>
    parseRows(
      await db.query<GaugeRow>(`select ${COLUMNS} from gauges t where t.id = any($1)`, [ids]),
      (row): Gauge => ({
        ...parseStateColumns(row),
        id: row.id,
        facts: {},
        name: row.name,
        description: row.description,
        labels: row.labels,
        metadataVersion: row.metadata_version,
        metadataChangedAt: row.metadata_changed_at,
        deletedAt: row.deleted_at,
        tuneRequest: row.tune_requested,
      }),
    ),
};

const stores = collectThingStores([...allStores.values(), gaugeStore as unknown as ThingStore]);
const caller: Caller = { name: "ann", roles: ["admin"], address: null };
let database: TestDatabase;
let deps: ServiceDeps;
beforeAll(async () => {
  database = await createTestDatabase();
  deps = { db: database.db, stores, secrets: undefined as never, maxFindByIds: 10 };
  await database.db.query(`create table gauges (
    id text primary key, name text not null default '', description text not null default '', labels jsonb not null default '{}',
    metadata_version bigint not null default 1, metadata_changed_at timestamptz not null default now(), deleted_at timestamptz,
    tune_requested jsonb, last_tune_request jsonb, state text not null, state_data jsonb not null default '{}',
    state_version bigint not null default 1, state_since timestamptz not null default now(), outcome jsonb,
    version bigint not null default 1, basis bigint not null default 1, facts jsonb not null default '{}')`);
});
afterAll(() => database.drop());

const gauge = (id: string) => ({ kind: "gauge", id, field: "id" });
let count = 0;
async function addGauge(): Promise<string> {
  count += 1;
  const id = `g-${count}`;
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "gauge", id }]);
    await create(tx, storeOf(stores, "gauge"), { id, row: {}, actor: "test" });
  });
  return id;
}
const loadGauge = async (id: string) => (await gaugeStore.load(deps.db, [id])).things[0];
const toldOf = async (id: string) =>
  (
    await listHistory(deps.db, { key: { kind: "gauge", id }, after: null, newestFirst: false, types: [], limit: 100 })
  ).map(({ type, actor }) => `${type} by ${actor}`);
const report = (source: string, alerts: readonly string[] = []) => ({
  source,
  observedAt: null,
  triggeredBy: null,
  successes: [],
  alerts: alerts.map((id) => ({
    id,
    target: null,
    inAlertSince: null,
    message: "m",
    tenantMessage: null,
    classifications: [],
  })),
});

test("a device has metadata that only who saw the latest version replaces", async () => {
  const id = await addGauge();
  const seen = await loadGauge(id);
  const ifVersionMatch = seen && metadataVersionOf(seen);
  const metadata = { name: "inlet", description: "left", labels: { floor: "2" } };
  await updateMetadata(deps, caller, { device: gauge(id), ifVersionMatch, metadata });
  expect(await loadGauge(id)).toMatchObject({ ...metadata, metadataVersion: 2, basis: seen?.basis });
  await expect(updateMetadata(deps, caller, { device: gauge(id), ifVersionMatch, metadata })).rejects.toMatchObject({
    kind: "conflict",
    detail: { field: "if_version_match" },
  });
  expect(await toldOf(id)).toEqual(["created by test", "metadata_changed by ann"]);
});

test("a device has health reports, one a source", async () => {
  const id = await addGauge();
  await insertHealthReport(deps, caller, { device: gauge(id), report: report("probe", ["Drift"]), mode: "merge" });
  await insertHealthReport(deps, caller, { device: gauge(id), report: report("probe"), mode: "replace" });
  expect(await findHealthReports(deps, gauge(id))).toMatchObject([{ mode: "replace", report: { alerts: [] } }]);
  await removeHealthReport(deps, caller, { device: gauge(id), source: "probe" });
  expect(await findHealthReports(deps, gauge(id))).toEqual([]);
  await expect(removeHealthReport(deps, caller, { device: gauge(id), source: "probe" })).rejects.toThrow(
    `gauge ${id} has no health report of probe`,
  );
});

test("a device that another works on is not deleted, and the refusal names the holder; its own work is no reason", async () => {
  const [id, own] = [await addGauge(), await addGauge()];
  await recordClaim(deps.db, { kind: "gauge", id }, { kind: "rack", id: "rack-7" }, "maintenance");
  await recordClaim(deps.db, { kind: "gauge", id: own }, { kind: "gauge", id: own }, "tuning");
  await expect(deleteDevice(deps, caller, gauge(id))).rejects.toMatchObject({
    kind: "failed_precondition",
    message: `gauge ${id} cannot be deleted: rack rack-7 (maintenance) works on it; wait until that has ended, or cancel it`,
    detail: { field: "id" },
  });
  expect((await loadGauge(id))?.deletedAt).toBeNull();
  await deleteDevice(deps, caller, gauge(own));
  expect((await loadGauge(own))?.deletedAt).not.toBeNull();
});

test("a device that another works on is removed by force, and with it all claims on it", async () => {
  const id = await addGauge();
  await recordClaim(deps.db, { kind: "gauge", id }, { kind: "rack", id: "rack-7" }, "maintenance");
  await forceDeleteDevice(deps, caller, gauge(id));
  expect(await deps.db.query("select * from claims where thing_id = $1", [id])).toEqual([]);
  expect(await deps.db.query("select 1 from work where kind = 'rack' and wake_at <= now()")).toHaveLength(1);
});

test("a device that is marked for deletion withdraws what was requested of it", async () => {
  const id = await addGauge();
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "gauge", id }]);
    const wish = { field: "tuneRequest", ids: [id], initiator: "bob", wish: { to: "440" } };
    await recordRequest(tx, storeOf(stores, "gauge"), wish);
  });
  await deleteDevice(deps, caller, gauge(id));
  expect(await loadGauge(id)).toMatchObject({ deletedAt: expect.any(Date), tuneRequest: null });
  expect((await toldOf(id)).slice(1)).toEqual([
    "requested by bob",
    "deletion_requested by ann",
    "request_ended by ann",
  ]);
});

test("a device that is deleted by force is gone at once, also out of a state that nobody knows; its history stays", async () => {
  const [known, damaged] = [await addGauge(), await addGauge()];
  await deps.db.execute("update gauges set state = 'odd' where id = $1", [damaged]);
  for (const id of [known, damaged]) {
    await forceDeleteDevice(deps, caller, gauge(id));
    expect(await loadGauge(id)).toBeUndefined();
  }
  const histories = await findStateHistories(deps, "gauge", { ids: [known, "g-none"], field: "ids" });
  expect([...histories.keys()]).toEqual([known]);
});

test("what is no device, and what a kind of devices does not have, is refused by its name", async () => {
  const run = { kind: "run", id: "r-1", field: "id" };
  await expect(findHealthReports(deps, run)).rejects.toThrow(
    'kind: "run" is not a kind of devices; known: gauge, machine, power_shelf',
  );
  await expect(findHealthReports(deps, gauge("g-none"))).rejects.toThrow("gauge g-none does not exist");
  const machine = { kind: "machine", id: "m-1", field: "id" };
  for (const refused of [deleteDevice, forceDeleteDevice])
    await expect(refused(deps, caller, machine)).rejects.toMatchObject({ kind: "unsupported" });
  const metadata = { name: "ab", description: "", labels: {} };
  const update = { device: machine, ifVersionMatch: undefined, metadata };
  await expect(updateMetadata(deps, caller, update)).rejects.toMatchObject({ kind: "unsupported" });
});
