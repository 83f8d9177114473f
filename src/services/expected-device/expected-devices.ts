import { AppError } from "../../kernel/errors.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import { parseMac } from "../../kernel/ids.ts";
import type { ExploreResult } from "../../lifecycles/expected-device/expected-device.ts";
import type { ExpectedDeviceRecord } from "../../store/expected-device/expected-devices.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { storedSecret } from "../call/given-secret.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { addTogether } from "./add-together.ts";
import type { ExpectedKind } from "./expected-kind.ts";
import {
  type Checked,
  checkExpected,
  type ExpectedInput,
  type ExpectedWords,
  parseUuid,
  refuseRepeated,
} from "./input.ts";
import { type Added, changeInventory, NO_CHANGE } from "./inventory-change.ts";

export type { ExploreResult } from "../../lifecycles/expected-device/expected-device.ts";
export type { ExpectedDeviceRecord } from "../../store/expected-device/expected-devices.ts";

/**
 * Rows that one transaction writes or removes at most. Each takes up to three locks (its own, its BMC's, its device's), and a
 * PostgreSQL as it comes has room for 6,400 of them, and for a few more.
 */
const MOST_ROWS = 2_000;

export type ExpectedKey = { readonly id: string } | { readonly bmcMac: string };

/** Puts devices on record that the site says it has; the explorer then looks for them. All of them, or none. */
async function addRows<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  deps: ServiceDeps,
  caller: Caller,
  rows: readonly Checked<I>[],
): Promise<void> {
  await changeInventory(kind, deps, caller, async (tx) => {
    const [taken] = await kind.list(tx, { bmcMacs: rows.map(({ mac }) => mac) });
    if (taken) {
      throw new AppError("already_exists", `an ${kind.nouns.row} with BMC ${taken.bmc.mac} exists already`, {
        field: "bmc_mac_address",
        next: `millwright ${kind.command} show ${taken.bmc.mac}`,
      });
    }
    return { ...NO_CHANGE, added: await withDevices(kind, tx, rows) };
  });
}

/** Replaces what is on record, found by id or MAC address, and has the explorer look again unless the device is there. */
async function updateExpected<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  deps: ServiceDeps,
  caller: Caller,
  input: I,
): Promise<void> {
  const checked = await withSecrets(kind, deps, caller, checkExpected(kind, input));
  await changeInventory(kind, deps, caller, async (tx) => {
    const row = await findExpected(kind, tx, checked.id === undefined ? { bmcMac: checked.mac } : { id: checked.id });
    if (row.bmc.mac !== checked.mac) {
      const message = `bmc_mac_address: row ${row.id} has ${row.bmc.mac}; a MAC address cannot be changed, add a new row`;
      throw new AppError("invalid_argument", message, { field: "bmc_mac_address" });
    }
    return { ...NO_CHANGE, updated: [{ checked, row }] };
  });
}

/** The device that it became stays; so do the credentials, as long as a device needs them. */
async function deleteExpected<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  deps: ServiceDeps,
  caller: Caller,
  key: ExpectedKey,
): Promise<void> {
  await changeInventory(kind, deps, caller, async (tx) => ({
    ...NO_CHANGE,
    removed: [await findExpected(kind, tx, key)],
  }));
}

/** All that are on record now; a large inventory goes in several portions. */
async function deleteAllExpected<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  deps: ServiceDeps,
  caller: Caller,
): Promise<void> {
  const all = (await kind.list(deps.db)).map(({ id }) => id);
  for (let from = 0; from < all.length; from += MOST_ROWS) {
    const ids = all.slice(from, from + MOST_ROWS);
    await changeInventory(kind, deps, caller, async (tx) => ({
      ...NO_CHANGE,
      removed: await kind.list(tx, { ids }),
    }));
  }
}

/**
 * The list takes the place of all rows, in one transaction. A row that is listed again is updated: it keeps its link to its
 * device, and its password when none is given, as it is in every answer of ours.
 */
async function replaceAllExpected<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  deps: ServiceDeps,
  caller: Caller,
  inputs: readonly I[],
): Promise<void> {
  if (inputs.length > MOST_ROWS) throw tooMany(kind, `${inputs.length} rows are listed`);
  const rows = inputs.map((input, index) => checkExpected(kind, input, `${kind.fields.list}[${index}].`));
  const checked: Checked<I>[] = [];
  // One after the other: the first that is wrong is named, and a Vault is not asked for two thousand at once.
  for (const row of rows) checked.push(await withSecrets(kind, deps, caller, row));
  refuseRepeated(
    kind,
    checked.map(({ mac }) => mac),
  );
  refuseRepeated(
    kind,
    checked.flatMap(({ id }) => id ?? []),
  );
  await changeInventory(kind, deps, caller, async (tx) => {
    const rows = await kind.list(tx);
    const known = new Map(rows.map((row) => [row.bmc.mac, row]));
    const updated = checked.flatMap((one) => {
      const row = known.get(one.mac);
      return row && (one.id === undefined || one.id === row.id) ? [{ checked: one, row }] : [];
    });
    const staying = new Set(updated.map(({ row }) => row.id));
    const removed = rows.filter(({ id }) => !staying.has(id));
    if (checked.length + removed.length > MOST_ROWS)
      throw tooMany(kind, `${checked.length} rows are listed, and ${removed.length} others would be removed`);
    const again = new Set(updated.map((one) => one.checked));
    const added = await withDevices(
      kind,
      tx,
      checked.filter((one) => !again.has(one)),
    );
    return { added, updated, removed };
  });
}

/** The passwords of a row as they are put on record. */
async function withSecrets<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { withOwnSecrets }: ExpectedKind<R, I>,
  deps: ServiceDeps,
  caller: Caller,
  checked: Checked<I>,
): Promise<Checked<I>> {
  const store = <T extends string | undefined>(text: T, field: string) =>
    storedSecret(deps, caller, text, `${checked.prefix}${field}`);
  const password = await store(checked.password, "bmc_password");
  const input = withOwnSecrets ? await withOwnSecrets(checked.input, store) : checked.input;
  return { ...checked, input, password };
}

function tooMany({ fields: { list: field } }: ExpectedWords, what: string): AppError {
  const message = `${field}: ${what}; one call changes at most ${MOST_ROWS} rows. Add, update and delete rows one by one`;
  return new AppError("invalid_argument", message, { field });
}

async function withDevices<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { findDevicesOfBmcs }: ExpectedKind<R, I>,
  tx: Transaction,
  checked: readonly Checked<I>[],
): Promise<Added<I>[]> {
  const devices = await findDevicesOfBmcs(
    tx,
    checked.map(({ mac }) => mac),
  );
  return checked.map((one) => ({ checked: one, deviceId: devices.get(one.mac) }));
}

async function findExpected<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  db: Queryable,
  key: ExpectedKey,
): Promise<R> {
  const filter =
    "id" in key ? { ids: [parseUuid(key.id, kind.fields.id)] } : { bmcMac: parseMac(key.bmcMac, "bmc_mac_address") };
  const [row] = await kind.list(db, filter);
  if (row) return row;
  const which = "id" in key ? key.id : `with BMC ${key.bmcMac}`;
  throw new AppError("not_found", `there is no ${kind.nouns.row} ${which}`, {
    next: `millwright ${kind.command} list`,
  });
}

export interface ExpectedQuery extends ListRequest {
  readonly rackId: string | undefined;
  readonly bmcMac: string | undefined;
  /** The one that became this device. */
  readonly deviceId: string | undefined;
  /** Absent: however exploring goes. */
  readonly explored: readonly ExploreResult[] | undefined;
}

/** In the order of their MAC addresses unless told. */
function pageExpected<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { listing, linkField, parseDeviceId }: ExpectedKind<R, I>,
  deps: ServiceDeps,
  request: ExpectedQuery,
): Promise<ListPage<R>> {
  const { rackId, bmcMac, deviceId, explored } = request;
  const clauses: Filter<string> = [
    ...is("rack_id", rackId),
    ...is("bmc_mac", bmcMac && parseMac(bmcMac, "bmc_mac")),
    ...is(linkField, deviceId && parseDeviceId(deviceId, linkField)),
    ...(explored ? [{ field: "explore_state", operator: "in", values: explored } as const] : []),
  ];
  const query = { rackId, bmcMac, [linkField]: deviceId, explored };
  return pageList(deps, listing, request, { clauses, query, show: (row) => row });
}

/** What callers can do with the expected devices of one kind. */
export const expectedServices = <R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: ExpectedKind<R, I>,
  add = addTogether<I>((deps, caller, rows) => addRows(kind, deps, caller, rows)),
) => ({
  add: async (deps: ServiceDeps, caller: Caller, input: I) =>
    add(deps, caller, await withSecrets(kind, deps, caller, checkExpected(kind, input))),
  update: (deps: ServiceDeps, caller: Caller, input: I) => updateExpected(kind, deps, caller, input),
  remove: (deps: ServiceDeps, caller: Caller, key: ExpectedKey) => deleteExpected(kind, deps, caller, key),
  removeAll: (deps: ServiceDeps, caller: Caller) => deleteAllExpected(kind, deps, caller),
  replaceAll: (deps: ServiceDeps, caller: Caller, inputs: readonly I[]) =>
    replaceAllExpected(kind, deps, caller, inputs),
  get: (deps: ServiceDeps, key: ExpectedKey) => findExpected(kind, deps.db, key),
  listAll: (deps: ServiceDeps) => kind.list(deps.db),
  page: (deps: ServiceDeps, request: ExpectedQuery) => pageExpected(kind, deps, request),
});
