import { isDeepStrictEqual } from "node:util";
import { signInEndpoint } from "../../capabilities/sign-in-ledger.ts";
import { followOrRefuse } from "../../kernel/decide.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import { expectedPowerShelfLifecycle } from "../../lifecycles/expected-power-shelf/lifecycle.ts";
import { liftSignInStop } from "../../store/access/sign-in-ledger.ts";
import { bmcKey, getBmcCredentials, putBmcCredentials } from "../../store/device/bmc-credentials.ts";
import {
  type ExpectedPowerShelfRecord,
  listExpectedPowerShelves,
} from "../../store/expected-power-shelf/expected-power-shelves.ts";
import { type Change, recordChanges } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { createAll } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { nameOf, storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listPowerShelves } from "../../store/power-shelf/power-shelves.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { refuseHeld } from "../device/held.ts";
import { type Checked, type ExpectedColumns, passwordRequired } from "./input.ts";

const KIND = "expected_power_shelf";
const SHELF = "power_shelf";
/** A lock over the set of expected shelves: rows come and go under it, so that two writers never miss each other's rows. */
const WHOLE_SET = { kind: KIND, id: "*" };
const ATTEMPTS = 5;

/** What one call does to the inventory. */
export interface InventoryChange {
  readonly added: readonly Added[];
  readonly updated: readonly Updated[];
  readonly removed: readonly ExpectedPowerShelfRecord[];
}
export interface Added {
  readonly checked: Checked;
  /** A shelf that is on record with this BMC, whose credentials these become. */
  readonly shelfId: string | undefined;
}
export interface Updated {
  readonly checked: Checked;
  readonly row: ExpectedPowerShelfRecord;
}

export const NO_CHANGE: InventoryChange = { added: [], updated: [], removed: [] };

/**
 * Changes the inventory in one transaction. What to do is worked out twice: first to know what to lock, then again under the
 * locks, since the explorer may have made or linked a shelf in between. If that takes more locks, all begins again: they are always
 * taken at once, so that no two transactions wait for each other.
 */
export async function changeInventory(
  deps: ServiceDeps,
  caller: Caller,
  plan: (tx: Transaction) => Promise<InventoryChange>,
): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const isDone = await deps.db.transaction(async (tx) => {
      await lockThings(tx, [WHOLE_SET]);
      const locked = locksOf(await plan(tx));
      await lockThings(tx, locked);
      const change = await plan(tx);
      const held = new Set(locked.map(nameOf));
      if (locksOf(change).some((key) => !held.has(nameOf(key)))) return false;
      await carryOut(tx, deps, caller, change);
      return true;
    });
    if (isDone) return;
  }
  throw new AppError("conflict", "the power shelves of these BMCs keep changing; call again");
}

const locksOf = ({ added, updated, removed }: InventoryChange): ThingKey[] => [
  ...added.flatMap(({ checked, shelfId }) => [
    { kind: KIND, id: checked.newId },
    bmcKey(checked.mac),
    ...(shelfId === undefined ? [] : [{ kind: SHELF, id: shelfId }]),
  ]),
  ...updated.flatMap(({ row }) => [
    { kind: KIND, id: row.id },
    bmcKey(row.bmc.mac),
    ...(row.existingShelf ? [{ kind: SHELF, id: row.existingShelf.id }] : []),
  ]),
  ...removed.flatMap((row) => [{ kind: KIND, id: row.id }, bmcKey(row.bmc.mac)]),
];

async function carryOut(tx: Transaction, deps: ServiceDeps, caller: Caller, asked: InventoryChange): Promise<void> {
  for (const { checked } of asked.added)
    if (checked.password === undefined) throw passwordRequired(checked, "a new row");
  for (const { checked, row } of asked.updated) {
    // A new name with no new password would not fit the old one.
    if (checked.password === undefined && checked.username !== row.bmcUsername)
      throw passwordRequired(checked, "a new bmc_username");
  }
  const change = await retainCredentials(tx, deps, asked);
  const { added, updated, removed } = change;
  await refuseToMoveHeld(tx, deps, updated);
  // First those that go: their ids and MAC addresses may come again.
  await follow(tx, deps, caller, { name: "remove", rows: removed });
  const given = [...added, ...updated].map(({ checked }) => checked).filter(({ password }) => password !== undefined);
  for (const { mac, username, password = "" } of given)
    await putBmcCredentials(tx, deps.secrets, mac, { username, password });
  await liftSignInStop(
    tx,
    given.flatMap(({ row }) => endpointsOf(row)),
  );
  await add(tx, deps, caller, added);
  await update(tx, deps, caller, updated);
  await tellShelves(tx, deps, caller, change);
}

/** Rows that say so leave the credentials of their BMCs as they are, where some are on record. The caller holds the locks of the BMCs. */
async function retainCredentials(
  tx: Transaction,
  deps: ServiceDeps,
  change: InventoryChange,
): Promise<InventoryChange> {
  const macs = [...change.added, ...change.updated]
    .map(({ checked }) => checked)
    .filter(({ row }) => row.bmc_retain_credentials)
    .map(({ mac }) => mac);
  if (macs.length === 0) return change;
  const found = await getBmcCredentials(tx, deps.secrets, macs);
  const known = new Map(
    macs.flatMap((mac, at) => {
      const credentials = found[at];
      // Damaged ones are of no use to anybody.
      return credentials === undefined || credentials instanceof AppError ? [] : [[mac, credentials.username] as const];
    }),
  );
  const retain = <C extends { readonly checked: Checked }>(one: C): C => {
    const username = known.get(one.checked.mac);
    if (username === undefined) return one;
    const { password: _, ...checked } = one.checked;
    return {
      ...one,
      checked: { ...checked, password: undefined, username, row: { ...checked.row, bmc_username: username } },
    };
  };
  return { ...change, added: change.added.map(retain), updated: change.updated.map(retain) };
}

async function refuseToMoveHeld(tx: Transaction, deps: ServiceDeps, updated: readonly Updated[]): Promise<void> {
  const racks = new Map(
    updated.flatMap(({ checked, row }) => placeChange(checked.row, row)).map(({ id, set }) => [id, set.rack_id]),
  );
  if (racks.size === 0) return;
  const shelves = await listPowerShelves(tx, { ids: [...racks.keys()] });
  const moved = shelves.filter(({ id, rackId }) => racks.get(id) !== rackId).map(({ id }) => ({ kind: SHELF, id }));
  await refuseHeld(tx, deps, moved, { action: "moved to another rack", field: "rack_id" });
}

const endpointsOf = ({ bmc_address: address, bmc_port: port }: ExpectedColumns): string[] =>
  address === null ? [] : [signInEndpoint({ address, port: port ?? 443 })];

async function follow(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  { name, rows }: { readonly name: "remove" | "update"; readonly rows: readonly ExpectedPowerShelfRecord[] },
): Promise<void> {
  if (rows.length === 0) return;
  const happened = { owner: "caller", name } as const;
  await commitOrRefuse(
    tx,
    deps.stores,
    rows.map((thing) => ({
      kind: KIND,
      thing,
      move: followOrRefuse(expectedPowerShelfLifecycle, thing, happened),
      ...doneBy(caller),
    })),
  );
}

async function add(tx: Transaction, deps: ServiceDeps, caller: Caller, added: readonly Added[]): Promise<void> {
  const things = added.map(({ checked }) => ({ id: checked.newId, row: checked.row as JsonObject }));
  const made = await createAll(tx, storeOf(deps.stores, KIND), things, { ...doneBy(caller), ifMissing: true });
  const taken = things.find(({ id }) => !made.has(id));
  if (taken === undefined) return;
  throw new AppError("already_exists", `an expected power shelf ${taken.id} exists already`, {
    field: "expected_power_shelf_id",
  });
}

async function update(tx: Transaction, deps: ServiceDeps, caller: Caller, updated: readonly Updated[]): Promise<void> {
  if (updated.length === 0) return;
  const ids = updated.map(({ row }) => row.id);
  await recordChanges(
    tx,
    storeOf(deps.stores, KIND),
    updated.map(({ checked, row }) => ({
      id: row.id,
      type: "updated",
      ...doneBy(caller),
      data: {
        changed: differences(row, checked.row),
        ...(checked.password !== undefined && { credentials_changed: true }),
      },
      set: checked.row as JsonObject,
    })),
  );
  await follow(tx, deps, caller, { name: "update", rows: await listExpectedPowerShelves(tx, { ids }) });
  await work.wake(
    tx,
    ids.map((id) => ({ kind: KIND, id })),
  );
}

/** From what to what, field by field; there is no secret among them. */
function differences(row: ExpectedPowerShelfRecord, wanted: ExpectedColumns): JsonObject {
  const known: ExpectedColumns = {
    name: row.name,
    description: row.description,
    labels: row.labels,
    rack_id: row.rackId,
    bmc_mac: row.bmc.mac,
    bmc_username: row.bmcUsername,
    bmc_address: row.bmc.address,
    bmc_port: row.bmc.port,
    shelf_serial_number: row.serial,
    bmc_retain_credentials: row.retainCredentials,
  };
  return Object.fromEntries(
    Object.entries(wanted)
      .filter(([column, to]) => !isDeepStrictEqual({ ...asObject(known[column]) }, { ...asObject(to) }))
      .map(([column, to]): [string, Json] => [column, { from: known[column] ?? null, to }]),
  );
}

/** Labels come without a prototype of their own from some parsers; only what is in them counts. */
const asObject = (value: unknown): object => (typeof value === "object" && value !== null ? value : { value });

/** A shelf that is elsewhere now is looked for there; one with new credentials is tried with them at once. */
async function tellShelves(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  { added, updated }: InventoryChange,
): Promise<void> {
  const shelves = storeOf(deps.stores, SHELF);
  const told = { ...doneBy(caller), reason: "the expected inventory was updated" };
  const moved = updated
    .flatMap(({ checked, row }) => placeChange(checked.row, row))
    .map((one) => ({ ...told, ...one }));
  const signedInAnew = [
    ...added.flatMap(({ checked, shelfId }) => (checked.password === undefined ? [] : (shelfId ?? []))),
    ...updated.flatMap(({ checked, row }) => (checked.password === undefined ? [] : (row.existingShelf?.id ?? []))),
  ].map((id): Change => ({ ...told, id, type: "credentials_changed", set: {} }));
  await recordChanges(tx, shelves, moved);
  await recordChanges(tx, shelves, signedInAnew);
  await work.wake(
    tx,
    [...moved, ...signedInAnew].map(({ id }) => ({ kind: SHELF, id })),
  );
}

function placeChange(
  { bmc_address, bmc_port, rack_id }: ExpectedColumns,
  { existingShelf, bmc, rackId }: ExpectedPowerShelfRecord,
): Pick<Change, "id" | "type" | "data" | "set">[] {
  if (!existingShelf || bmc_address === null) return [];
  if (bmc_address === bmc.address && bmc_port === bmc.port && rack_id === rackId) return [];
  const place = { bmc_address, bmc_port, rack_id };
  return [{ id: existingShelf.id, type: "place_changed", data: place, set: place }];
}
