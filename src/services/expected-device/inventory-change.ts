import { isDeepStrictEqual } from "node:util";
import { signInEndpoint } from "../../capabilities/sign-in-ledger.ts";
import { followOrRefuse } from "../../kernel/decide.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import { liftSignInStop } from "../../store/access/sign-in-ledger.ts";
import { bmcKey, getBmcUsernames } from "../../store/device/bmc-credentials.ts";
import type { ExpectedDeviceRecord } from "../../store/expected-device/expected-devices.ts";
import { type Change, recordChanges } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { createAll } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { nameOf, storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { mentionRacks, rackKeys } from "../device/racks.ts";
import type { ExpectedKind } from "./expected-kind.ts";
import { putGivenCredentials } from "./given-credentials.ts";
import { type Checked, type ExpectedColumns, type ExpectedInput, passwordRequired } from "./input.ts";
import { placeChange, refuseToMoveHeld, type Updated } from "./place-change.ts";

const ATTEMPTS = 5;

/** What one call does to the inventory. */
export interface InventoryChange<R extends ExpectedDeviceRecord, I extends ExpectedInput> {
  readonly added: readonly Added<I>[];
  readonly updated: readonly Updated<R, I>[];
  readonly removed: readonly R[];
}
export interface Added<I extends ExpectedInput = ExpectedInput> {
  readonly checked: Checked<I>;
  /** A device that is on record with this BMC, whose credentials these become. */
  readonly deviceId: string | undefined;
}

export const NO_CHANGE: InventoryChange<never, never> = { added: [], updated: [], removed: [] };

/**
 * Changes the inventory in one transaction. What to do is worked out twice: first to know what to lock, then again under the
 * locks, since the explorer may have made or linked a shelf in between. If that takes more locks, all begins again: they are always
 * taken at once, so that no two transactions wait for each other.
 */
export async function changeInventory<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  deps: ServiceDeps,
  caller: Caller,
  plan: (tx: Transaction) => Promise<InventoryChange<R, I>>,
): Promise<void> {
  // Rows come and go under a lock over the whole set, so that two writers never miss each other's rows.
  const wholeSet = { kind: kind.kind, id: "*" };
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const isDone = await deps.db.transaction(async (tx) => {
      await lockThings(tx, [wholeSet]);
      const locked = locksOf(kind, await plan(tx));
      await lockThings(tx, locked);
      const change = await plan(tx);
      const held = new Set(locked.map(nameOf));
      if (locksOf(kind, change).some((key) => !held.has(nameOf(key)))) return false;
      await carryOut({ kind, tx, deps, caller }, change);
      return true;
    });
    if (isDone) return;
  }
  throw new AppError("conflict", `the ${kind.nouns.devices} of these BMCs keep changing; call again`);
}

const locksOf = <R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { kind, device }: ExpectedKind<R, I>,
  { added, updated, removed }: InventoryChange<R, I>,
): ThingKey[] => [
  ...added.flatMap(({ checked, deviceId }) => [
    { kind, id: checked.newId },
    bmcKey(checked.mac),
    ...(deviceId === undefined ? [] : [{ kind: device, id: deviceId }]),
  ]),
  ...updated.flatMap(({ row }) => [
    { kind, id: row.id },
    bmcKey(row.bmc.mac),
    ...(row.existing ? [{ kind: device, id: row.existing.id }] : []),
  ]),
  ...removed.flatMap((row) => [{ kind, id: row.id }, bmcKey(row.bmc.mac)]),
  ...rackKeys([...added, ...updated].map(({ checked }) => checked.row.rack_id)),
];

/** A change that is being written. */
interface Writing<R extends ExpectedDeviceRecord, I extends ExpectedInput> {
  readonly kind: ExpectedKind<R, I>;
  readonly tx: Transaction;
  readonly deps: ServiceDeps;
  readonly caller: Caller;
}

async function carryOut<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  writing: Writing<R, I>,
  asked: InventoryChange<R, I>,
): Promise<void> {
  const { kind, tx, deps } = writing;
  for (const { checked } of asked.added)
    if (checked.password === undefined) throw passwordRequired(checked, "a new row");
  for (const { checked, row } of asked.updated) {
    // A new name with no new password would not fit the old one.
    if (checked.password === undefined && checked.username !== row.bmcUsername)
      throw passwordRequired(checked, "a new bmc_username");
  }
  const change = await retainCredentials(writing, asked);
  const { added, updated, removed } = change;
  await refuseToMoveHeld(tx, deps, kind, updated);
  // First those that go: their ids and MAC addresses may come again.
  await follow(writing, { name: "remove", rows: removed });
  const given = [...added, ...updated].map(({ checked }) => checked).filter(({ password }) => password !== undefined);
  await putGivenCredentials(kind, tx, deps, [
    ...added,
    ...updated.map(({ checked, row }) => ({ checked, deviceId: row.existing?.id })),
  ]);
  await liftSignInStop(
    tx,
    given.flatMap(({ row }) => endpointsOf(row)),
  );
  for (const { checked } of added) await kind.putOwnSecrets?.(tx, deps, checked, undefined);
  for (const { checked, row } of updated) await kind.putOwnSecrets?.(tx, deps, checked, row);
  await add(writing, added);
  await update(writing, updated);
  await tellDevices(writing, change);
  await mentionRacks(tx, deps, writing.caller, {
    named: [...added, ...updated].map(({ checked }) => checked.row.rack_id),
    left: [...updated.map(({ row }) => row), ...removed].map(({ rackId }) => rackId),
  });
}

/** Rows that say so leave the credentials of their BMCs as they are, where some are on record. The caller holds the locks of the BMCs. */
async function retainCredentials<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { tx, deps }: Writing<R, I>,
  change: InventoryChange<R, I>,
): Promise<InventoryChange<R, I>> {
  const macs = [...change.added, ...change.updated]
    .map(({ checked }) => checked)
    .filter(({ row }) => row.bmc_retain_credentials)
    .map(({ mac }) => mac);
  if (macs.length === 0) return change;
  const known = await getBmcUsernames(tx, deps.secrets, macs);
  const retain = <C extends { readonly checked: Checked<I> }>(one: C): C => {
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

const endpointsOf = ({ bmc_address: address, bmc_port: port }: ExpectedColumns): string[] =>
  address === null ? [] : [signInEndpoint({ address, port: port ?? 443 })];

async function follow<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { kind, tx, deps, caller }: Writing<R, I>,
  { name, rows }: { readonly name: "remove" | "update"; readonly rows: readonly R[] },
): Promise<void> {
  if (rows.length === 0) return;
  const happened = { owner: "caller", name } as const;
  await commitOrRefuse(
    tx,
    deps.stores,
    rows.map((thing) => ({
      kind: kind.kind,
      thing,
      move: followOrRefuse(storeOf(deps.stores, kind.kind).lifecycle, thing, happened),
      ...doneBy(caller),
      effects: name === "update" ? (kind.whenUpdated?.(thing) ?? []) : [],
    })),
  );
}

async function add<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { kind, tx, deps, caller }: Writing<R, I>,
  added: readonly Added<I>[],
): Promise<void> {
  const things = added.map(({ checked }) => ({ id: checked.newId, row: checked.row as JsonObject }));
  const made = await createAll(tx, storeOf(deps.stores, kind.kind), things, { ...doneBy(caller), ifMissing: true });
  const taken = things.find(({ id }) => !made.has(id));
  if (taken === undefined) return;
  throw new AppError("already_exists", `an ${kind.nouns.row} ${taken.id} exists already`, { field: kind.fields.id });
}

async function update<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  writing: Writing<R, I>,
  updated: readonly Updated<R, I>[],
): Promise<void> {
  if (updated.length === 0) return;
  const { kind, tx, deps, caller } = writing;
  const ids = updated.map(({ row }) => row.id);
  await recordChanges(
    tx,
    storeOf(deps.stores, kind.kind),
    updated.map(({ checked, row }) => ({
      id: row.id,
      type: "updated",
      ...doneBy(caller),
      data: {
        changed: differences(kind, row, checked.row),
        ...(checked.password !== undefined && { credentials_changed: true }),
      },
      set: checked.row as JsonObject,
    })),
  );
  await follow(writing, { name: "update", rows: await kind.list(tx, { ids }) });
  await work.wake(
    tx,
    ids.map((id) => ({ kind: kind.kind, id })),
  );
}

/** From what to what, field by field; there is no secret among them. */
function differences<R extends ExpectedDeviceRecord>(
  { fields, ownOf }: Pick<ExpectedKind<R, never>, "fields" | "ownOf">,
  row: R,
  wanted: ExpectedColumns,
): JsonObject {
  const known: JsonObject = {
    name: row.name,
    description: row.description,
    labels: row.labels,
    rack_id: row.rackId,
    bmc_mac: row.bmc.mac,
    bmc_username: row.bmcUsername,
    bmc_address: row.bmc.address,
    bmc_port: row.bmc.port,
    [fields.serial]: row.serial,
    bmc_retain_credentials: row.retainCredentials,
    ...ownOf?.(row),
  };
  return Object.fromEntries(
    Object.entries(wanted)
      .filter(([column, to]) => !isDeepStrictEqual({ ...asObject(known[column]) }, { ...asObject(to) }))
      .map(([column, to]): [string, Json] => [column, { from: known[column] ?? null, to }]),
  );
}

/** Labels come without a prototype of their own from some parsers; only what is in them counts. */
const asObject = (value: unknown): object => (typeof value === "object" && value !== null ? value : { value });

/** A device that is elsewhere now is looked for there; one with new credentials is tried with them at once. */
async function tellDevices<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { kind, tx, deps, caller }: Writing<R, I>,
  { added, updated }: InventoryChange<R, I>,
): Promise<void> {
  const devices = storeOf(deps.stores, kind.device);
  const told = { ...doneBy(caller), reason: "the expected inventory was updated" };
  const moved = updated
    .flatMap(({ checked, row }) => placeChange(kind, checked.row, row))
    .map((one) => ({ ...told, ...one }));
  const signedInAnew = [
    ...added.flatMap(({ checked, deviceId }) => (checked.password === undefined ? [] : (deviceId ?? []))),
    ...updated.flatMap(({ checked, row }) => (checked.password === undefined ? [] : (row.existing?.id ?? []))),
  ].map((id): Change => ({ ...told, id, type: "credentials_changed", set: {} }));
  await recordChanges(tx, devices, moved);
  await recordChanges(tx, devices, signedInAnew);
  await work.wake(
    tx,
    [...moved, ...signedInAnew].map(({ id }) => ({ kind: kind.device, id })),
  );
}
