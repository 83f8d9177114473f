import { followOrRefuse } from "../../kernel/decide.ts";
import { AppError } from "../../kernel/errors.ts";
import { parseRackId } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { ExpectedRack } from "../../lifecycles/expected-rack/expected-rack.ts";
import { expectedRackLifecycle } from "../../lifecycles/expected-rack/lifecycle.ts";
import { listExpectedRacks } from "../../store/expected-rack/expected-racks.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { checkMetadata, type Metadata } from "../device/metadata.ts";

export type { ExpectedRack } from "../../lifecycles/expected-rack/expected-rack.ts";

const KIND = "expected_rack";
const RACK = "rack";
/** As for other expected rows: each takes two locks, of which a PostgreSQL has room for 6,400. */
const MOST_ROWS = 2_000;
/** A lock over the set of expected racks: rows come and go under it. */
const WHOLE_SET = { kind: KIND, id: "*" };

export interface ExpectedRackInput {
  readonly rackId: string;
  readonly profileId: string;
  readonly metadata: Metadata;
}

interface Checked {
  readonly id: string;
  readonly row: {
    readonly name: string;
    readonly description: string;
    readonly labels: Readonly<Record<string, string | null>>;
    readonly rack_profile_id: string;
  };
}

/** Puts a rack on record that the site says it has; its rack exists from then on, and waits for its devices. */
export const addExpectedRack = (deps: ServiceDeps, caller: Caller, input: ExpectedRackInput): Promise<void> =>
  change(deps, caller, [check(input)], async (tx, [one]) => {
    const [taken] = await listExpectedRacks(tx, [one?.id ?? ""]);
    if (!taken) return { removed: [] };
    throw new AppError("already_exists", `expected rack ${taken.id} exists already`, {
      field: "rack_id",
      next: `millwright expected-rack show ${taken.id}`,
    });
  });

/** Replaces what is on record. A rack that was deleted comes back. */
export const updateExpectedRack = (deps: ServiceDeps, caller: Caller, input: ExpectedRackInput): Promise<void> =>
  change(deps, caller, [check(input)], async (tx, [one]) => {
    await find(tx, one?.id ?? "");
    return { removed: [] };
  });

/** The rack stays, and keeps its profile. */
export const deleteExpectedRack = (deps: ServiceDeps, caller: Caller, rackId: string): Promise<void> =>
  change(deps, caller, [], async (tx) => ({ removed: [await find(tx, parseRackId(rackId, "rack_id"))] }));

export const deleteAllExpectedRacks = (deps: ServiceDeps, caller: Caller): Promise<void> =>
  change(deps, caller, [], async (tx) => ({ removed: await listExpectedRacks(tx) }));

/** The list takes the place of all rows, in one transaction. */
export const replaceAllExpectedRacks = async (
  deps: ServiceDeps,
  caller: Caller,
  inputs: readonly ExpectedRackInput[],
): Promise<void> => {
  const field = "expected_racks";
  if (inputs.length > MOST_ROWS)
    throw new AppError("invalid_argument", `${field}: at most ${MOST_ROWS} rows in one call`, { field });
  const wanted = inputs.map((input, index) => check(input, `${field}[${index}].`));
  const ids = new Set(wanted.map(({ id }) => id));
  if (ids.size < wanted.length) throw new AppError("invalid_argument", `${field}: a rack is listed twice`, { field });
  await change(deps, caller, wanted, async (tx) => ({
    removed: (await listExpectedRacks(tx)).filter(({ id }) => !ids.has(id)),
  }));
};

export const getExpectedRack = (deps: ServiceDeps, rackId: string): Promise<ExpectedRack> =>
  find(deps.db, parseRackId(rackId, "rack_id"));

export const listAllExpectedRacks = (deps: ServiceDeps): Promise<ExpectedRack[]> => listExpectedRacks(deps.db);

function check({ rackId, profileId, metadata }: ExpectedRackInput, prefix = ""): Checked {
  const id = parseRackId(rackId, `${prefix}rack_id`);
  if (profileId === "" || profileId.length > 64) {
    const field = `${prefix}rack_profile_id`;
    throw new AppError("invalid_argument", `${field}: is required, at most 64 characters`, { field });
  }
  const { name, description, labels } = checkMetadata(metadata, { field: `${prefix}metadata`, nameMayBeEmpty: true });
  return { id, row: { name, description, labels, rack_profile_id: profileId } };
}

async function find(db: Queryable, id: string): Promise<ExpectedRack> {
  const [row] = await listExpectedRacks(db, [id]);
  if (row) return row;
  throw new AppError("not_found", `expected rack ${id} does not exist`, {
    field: "rack_id",
    next: "millwright expected-rack list",
  });
}

/** Rows and their racks are written in one transaction, all locks taken at once. */
async function change(
  deps: ServiceDeps,
  caller: Caller,
  wanted: readonly Checked[],
  plan: (tx: Transaction, wanted: readonly Checked[]) => Promise<{ readonly removed: readonly ExpectedRack[] }>,
): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [WHOLE_SET]);
    const { removed } = await plan(tx, wanted);
    const ids = wanted.map(({ id }) => id);
    await lockThings(tx, [
      ...[...ids, ...removed.map(({ id }) => id)].map((id) => ({ kind: KIND, id })),
      ...ids.map((id) => ({ kind: RACK, id })),
    ]);
    await follow(tx, deps, caller, { rows: removed, owner: "caller", name: "remove" });
    for (const one of wanted) await put(tx, deps, caller, one);
  });
}

async function put(tx: Transaction, deps: ServiceDeps, caller: Caller, { id, row }: Checked): Promise<void> {
  const by = doneBy(caller);
  const [store, racks] = [storeOf(deps.stores, KIND), storeOf(deps.stores, RACK)];
  const isNew = await create(tx, store, { id, row: row as JsonObject, ...by, ifMissing: true });
  if (!isNew) {
    await recordChange(tx, store, { id, type: "updated", ...by, data: row as JsonObject, set: row as JsonObject });
    await follow(tx, deps, caller, { rows: await listExpectedRacks(tx, [id]), owner: "caller", name: "update" });
  }
  const rackRow = { ...row, name: row.name === "" ? id : row.name };
  const isNewRack = await create(tx, racks, { id, row: rackRow as JsonObject, ...by, ifMissing: true });
  const set = { rack_profile_id: row.rack_profile_id };
  if (!isNewRack) await recordChange(tx, racks, { id, type: "profile_set", ...by, data: set, set });
  const rows = (await listExpectedRacks(tx, [id])).filter(({ state }) => state.name === "expected");
  await follow(tx, deps, caller, { rows, owner: "other", name: "rack_created" });
  await work.wake(tx, [{ kind: RACK, id }]);
}

async function follow(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  {
    rows,
    ...happened
  }: { readonly rows: readonly ExpectedRack[]; readonly owner: "caller" | "other"; readonly name: string },
): Promise<void> {
  if (rows.length === 0) return;
  await commitOrRefuse(
    tx,
    deps.stores,
    rows.map((thing) => ({
      kind: KIND,
      thing,
      move: followOrRefuse(expectedRackLifecycle, thing, happened),
      ...doneBy(caller),
    })),
  );
}
