import { AppError } from "../../kernel/errors.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import { parseMac, parsePowerShelfId } from "../../kernel/ids.ts";
import type { ExploreResult } from "../../lifecycles/expected-power-shelf/expected-power-shelf.ts";
import {
  type ExpectedPowerShelfField,
  expectedPowerShelfListing,
} from "../../store/expected-power-shelf/expected-power-shelf-list.ts";
import {
  type ExpectedPowerShelfRecord,
  listExpectedPowerShelves,
} from "../../store/expected-power-shelf/expected-power-shelves.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import { findShelvesOfBmcs } from "../../store/power-shelf/power-shelves.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { type Checked, checkExpected, type ExpectedInput, parseUuid, refuseRepeated } from "./input.ts";
import { type Added, changeInventory, NO_CHANGE } from "./inventory-change.ts";

export type { ExploreResult } from "../../lifecycles/expected-power-shelf/expected-power-shelf.ts";
export type { ExpectedPowerShelfRecord } from "../../store/expected-power-shelf/expected-power-shelves.ts";
export type { ExpectedInput } from "./input.ts";

/**
 * Rows that one transaction writes or removes at most. Each takes up to three locks (its own, its BMC's, its shelf's), and a
 * PostgreSQL as it comes has room for 6,400 of them, and for a few more.
 */
const MOST_ROWS = 2_000;

export type ExpectedKey = { readonly id: string } | { readonly bmcMac: string };

/** Puts a shelf on record that the site says it has; the explorer then looks for it. */
export async function addExpectedPowerShelf(deps: ServiceDeps, caller: Caller, input: ExpectedInput): Promise<void> {
  const checked = checkExpected(input);
  await changeInventory(deps, caller, async (tx) => {
    const [taken] = await listExpectedPowerShelves(tx, { bmcMac: checked.mac });
    if (taken) {
      throw new AppError("already_exists", `an expected power shelf with BMC ${checked.mac} exists already`, {
        field: "bmc_mac_address",
        next: `millwright expected-power-shelf show ${checked.mac}`,
      });
    }
    return { ...NO_CHANGE, added: await withShelves(tx, [checked]) };
  });
}

/** Replaces what is on record, found by id or MAC address, and has the explorer look again unless the shelf is there. */
export async function updateExpectedPowerShelf(deps: ServiceDeps, caller: Caller, input: ExpectedInput): Promise<void> {
  const checked = checkExpected(input);
  await changeInventory(deps, caller, async (tx) => {
    const row = await find(tx, checked.id === undefined ? { bmcMac: checked.mac } : { id: checked.id });
    if (row.bmc.mac !== checked.mac) {
      const message = `bmc_mac_address: row ${row.id} has ${row.bmc.mac}; a MAC address cannot be changed, add a new row`;
      throw new AppError("invalid_argument", message, { field: "bmc_mac_address" });
    }
    return { ...NO_CHANGE, updated: [{ checked, row }] };
  });
}

/** The shelf that it became stays; so do the credentials, as long as a shelf needs them. */
export async function deleteExpectedPowerShelf(deps: ServiceDeps, caller: Caller, key: ExpectedKey): Promise<void> {
  await changeInventory(deps, caller, async (tx) => ({ ...NO_CHANGE, removed: [await find(tx, key)] }));
}

/** All that are on record now; a large inventory goes in several portions. */
export async function deleteAllExpectedPowerShelves(deps: ServiceDeps, caller: Caller): Promise<void> {
  const all = (await listExpectedPowerShelves(deps.db)).map(({ id }) => id);
  for (let from = 0; from < all.length; from += MOST_ROWS) {
    const ids = all.slice(from, from + MOST_ROWS);
    await changeInventory(deps, caller, async (tx) => ({
      ...NO_CHANGE,
      removed: await listExpectedPowerShelves(tx, { ids }),
    }));
  }
}

/**
 * The list takes the place of all rows, in one transaction. A row that is listed again is updated: it keeps its link to its
 * shelf, and its password when none is given, as it is in every answer of ours.
 */
export async function replaceAllExpectedPowerShelves(
  deps: ServiceDeps,
  caller: Caller,
  inputs: readonly ExpectedInput[],
): Promise<void> {
  if (inputs.length > MOST_ROWS) throw tooMany(`${inputs.length} rows are listed`);
  const checked = inputs.map((input, index) => checkExpected(input, `expected_power_shelves[${index}].`));
  refuseRepeated(checked.map(({ mac }) => mac));
  refuseRepeated(checked.flatMap(({ id }) => id ?? []));
  await changeInventory(deps, caller, async (tx) => {
    const rows = await listExpectedPowerShelves(tx);
    const known = new Map(rows.map((row) => [row.bmc.mac, row]));
    const updated = checked.flatMap((one) => {
      const row = known.get(one.mac);
      return row && (one.id === undefined || one.id === row.id) ? [{ checked: one, row }] : [];
    });
    const staying = new Set(updated.map(({ row }) => row.id));
    const removed = rows.filter(({ id }) => !staying.has(id));
    if (checked.length + removed.length > MOST_ROWS)
      throw tooMany(`${checked.length} rows are listed, and ${removed.length} others would be removed`);
    const again = new Set(updated.map((one) => one.checked));
    const added = await withShelves(
      tx,
      checked.filter((one) => !again.has(one)),
    );
    return { added, updated, removed };
  });
}

function tooMany(what: string): AppError {
  const field = "expected_power_shelves";
  const message = `${field}: ${what}; one call changes at most ${MOST_ROWS} rows. Add, update and delete rows one by one`;
  return new AppError("invalid_argument", message, { field });
}

async function withShelves(tx: Transaction, checked: readonly Checked[]): Promise<Added[]> {
  const shelves = await findShelvesOfBmcs(
    tx,
    checked.map(({ mac }) => mac),
  );
  return checked.map((one) => ({ checked: one, shelfId: shelves.get(one.mac) }));
}

export async function getExpectedPowerShelf(deps: ServiceDeps, key: ExpectedKey): Promise<ExpectedPowerShelfRecord> {
  return find(deps.db, key);
}

export async function listAllExpectedPowerShelves(deps: ServiceDeps): Promise<ExpectedPowerShelfRecord[]> {
  return listExpectedPowerShelves(deps.db);
}

export interface ExpectedQuery extends ListRequest {
  readonly rackId: string | undefined;
  readonly bmcMac: string | undefined;
  /** The one that became this shelf. */
  readonly powerShelfId: string | undefined;
  /** Absent: however exploring goes. */
  readonly explored: readonly ExploreResult[] | undefined;
}

/** In the order of their MAC addresses unless told. */
export async function pageExpectedPowerShelves(
  deps: ServiceDeps,
  request: ExpectedQuery,
): Promise<ListPage<ExpectedPowerShelfRecord>> {
  const { rackId, bmcMac, powerShelfId, explored } = request;
  const clauses: Filter<ExpectedPowerShelfField> = [
    ...is("rack_id", rackId),
    ...is("bmc_mac", bmcMac && parseMac(bmcMac, "bmc_mac")),
    ...is("power_shelf_id", powerShelfId && parsePowerShelfId(powerShelfId, "power_shelf_id")),
    ...(explored ? [{ field: "explore_state", operator: "in", values: explored } as const] : []),
  ];
  const query = { rackId, bmcMac, powerShelfId, explored };
  return pageList(deps, expectedPowerShelfListing, request, { clauses, query, show: (row) => row });
}

async function find(db: Queryable, key: ExpectedKey): Promise<ExpectedPowerShelfRecord> {
  const filter =
    "id" in key
      ? { ids: [parseUuid(key.id, "expected_power_shelf_id")] }
      : { bmcMac: parseMac(key.bmcMac, "bmc_mac_address") };
  const [row] = await listExpectedPowerShelves(db, filter);
  if (row) return row;
  const which = "id" in key ? key.id : `with BMC ${key.bmcMac}`;
  throw new AppError("not_found", `there is no expected power shelf ${which}`, {
    next: "millwright expected-power-shelf list",
  });
}
