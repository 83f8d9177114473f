import { randomUUID } from "node:crypto";
import { AppError } from "../kernel/errors.ts";
import { parseMac } from "../kernel/ids.ts";
import type { ExploreResult } from "../lifecycles/expected-power-shelf/expected-power-shelf.ts";
import { credentialName, putBmcCredentials } from "../store/bmc-credentials.ts";
import { recordChange } from "../store/changes.ts";
import { create } from "../store/create.ts";
import type { Queryable } from "../store/database.ts";
import { type ExpectedPowerShelfRecord, listExpectedPowerShelves } from "../store/expected-power-shelves.ts";
import { lockThings } from "../store/locks.ts";
import { listPowerShelves } from "../store/power-shelves.ts";
import { storeOf } from "../store/things.ts";
import { applyVerb } from "../store/verbs.ts";
import * as work from "../store/work.ts";
import { parseBmcEndpoint } from "./bmc-endpoint.ts";
import type { Caller } from "./caller.ts";
import type { ServiceDeps } from "./deps.ts";
import { doneBy } from "./initiator.ts";
import { checkMetadata, type Metadata } from "./metadata.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "./paging.ts";
import { parseRackId } from "./rack-id.ts";

export type { ExploreResult } from "../lifecycles/expected-power-shelf/expected-power-shelf.ts";
export type { ExpectedPowerShelfRecord } from "../store/expected-power-shelves.ts";

const KIND = "expected_power_shelf";
const SHELF = "power_shelf";
/** A lock over the set of expected shelves: rows come and go under it, so that two writers never miss each other's rows. */
const WHOLE_SET = { kind: KIND, id: "*" };
const LONGEST_TEXT = 256;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface ExpectedInput {
  readonly id?: string;
  readonly bmcMac: string;
  readonly bmcUsername: string;
  /** Undefined on an update keeps the one on record. */
  readonly bmcPassword: string | undefined;
  readonly serial: string;
  readonly bmcEndpoint: string | undefined;
  readonly rackId: string | undefined;
  readonly metadata: Metadata;
  readonly retainCredentials?: boolean;
}

export type ExpectedKey = { readonly id: string } | { readonly bmcMac: string };

/** Puts a shelf on record that the site says it has; the explorer then looks for it. */
export async function addExpectedPowerShelf(deps: ServiceDeps, caller: Caller, input: ExpectedInput): Promise<void> {
  const checked = check(input);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [WHOLE_SET]);
    await insert(tx, deps, caller, checked);
  });
}

/** Replaces what is on record, found by id or MAC address, and has the explorer look again unless the shelf is there. */
export async function updateExpectedPowerShelf(deps: ServiceDeps, caller: Caller, input: ExpectedInput): Promise<void> {
  const checked = check(input);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [WHOLE_SET]);
    const known = await find(tx, checked.id === undefined ? { bmcMac: checked.mac } : { id: checked.id });
    if (known.bmc.mac !== checked.mac) {
      const message = `bmc_mac_address: row ${known.id} has ${known.bmc.mac}; a MAC address cannot be changed, add a new row`;
      throw new AppError("invalid_argument", message, { field: "bmc_mac_address" });
    }
    await lockThings(tx, locksOf(known));
    await update(tx, deps, caller, checked, known);
  });
}

export async function deleteExpectedPowerShelf(deps: ServiceDeps, caller: Caller, key: ExpectedKey): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [WHOLE_SET]);
    await remove(tx, deps, caller, await find(tx, key));
  });
}

export async function deleteAllExpectedPowerShelves(deps: ServiceDeps, caller: Caller): Promise<void> {
  await replaceAllExpectedPowerShelves(deps, caller, []);
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
  const checked = inputs.map((input, index) => check(input, `expected_power_shelves[${index}].`));
  refuseRepeated(checked.map(({ mac }) => mac));
  refuseRepeated(checked.flatMap(({ id }) => id ?? []));
  await deps.db.transaction(async (tx) => {
    // Alone and first, as everywhere: together with the rows its turn among them could be any.
    await lockThings(tx, [WHOLE_SET]);
    const rows = await listExpectedPowerShelves(tx);
    await lockThings(tx, rows.flatMap(locksOf));
    const known = new Map(rows.map((row) => [row.bmc.mac, row]));
    const listedAgain = ({ id, mac }: Checked) => {
      const row = known.get(mac);
      return row && (id === undefined || id === row.id) ? row : undefined;
    };
    const staying = new Set(checked.flatMap((one) => listedAgain(one)?.id ?? []));
    for (const row of rows) if (!staying.has(row.id)) await remove(tx, deps, caller, row);
    for (const one of checked) {
      const row = listedAgain(one);
      if (row) await update(tx, deps, caller, one, row);
      else await insert(tx, deps, caller, one);
    }
  });
}

export async function getExpectedPowerShelf(deps: ServiceDeps, key: ExpectedKey): Promise<ExpectedPowerShelfRecord> {
  return find(deps.db, key);
}

export async function listAllExpectedPowerShelves(deps: ServiceDeps): Promise<ExpectedPowerShelfRecord[]> {
  return listExpectedPowerShelves(deps.db);
}

export interface ExpectedQuery {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly rackId: string | undefined;
  /** Absent: however exploring goes. */
  readonly explored: readonly ExploreResult[] | undefined;
}

/** In the order of their MAC addresses. */
export async function pageExpectedPowerShelves(
  deps: ServiceDeps,
  request: ExpectedQuery,
): Promise<Page<ExpectedPowerShelfRecord>> {
  const { pageSize, pageToken, ...query } = request;
  const size = checkPageSize(pageSize);
  const afterMac = parsePageToken(pageToken, query, 1)?.[0];
  const rows = await listExpectedPowerShelves(deps.db, {
    ...(query.rackId !== undefined && { rackId: query.rackId }),
    ...(query.explored !== undefined && { explored: query.explored }),
    ...(afterMac !== undefined && { afterMac }),
    limit: size + 1,
  });
  return cutPage(rows, size, query, ({ bmc }) => [bmc.mac]);
}

interface Checked {
  readonly id: string | undefined;
  readonly mac: string;
  readonly username: string;
  readonly password: string | undefined;
  /** Where it stands in the request. */
  readonly prefix: string;
  readonly row: {
    readonly name: string;
    readonly description: string;
    readonly labels: Readonly<Record<string, string | null>>;
    readonly rack_id: string | null;
    readonly bmc_mac: string;
    readonly bmc_username: string;
    readonly bmc_address: string | null;
    readonly bmc_port: number | null;
    readonly shelf_serial_number: string;
    readonly bmc_retain_credentials: boolean;
  };
}

function check(input: ExpectedInput, prefix = ""): Checked {
  const at = (field: string) => `${prefix}${field}`;
  const atMost = (text: string, field: string) => {
    if (text.length <= LONGEST_TEXT) return;
    throw new AppError("invalid_argument", `${at(field)}: at most ${LONGEST_TEXT} characters`, { field: at(field) });
  };
  const mac = parseMac(input.bmcMac, at("bmc_mac_address"));
  const id = input.id === undefined ? undefined : parseUuid(input.id, at("expected_power_shelf_id"));
  if (input.bmcUsername === "")
    throw new AppError("invalid_argument", `${at("bmc_username")}: is required`, { field: at("bmc_username") });
  atMost(input.bmcUsername, "bmc_username");
  atMost(input.bmcPassword ?? "", "bmc_password");
  atMost(input.serial, "shelf_serial_number");
  const endpoint = input.bmcEndpoint ? parseBmcEndpoint(input.bmcEndpoint, at("bmc_ip_address")) : undefined;
  const { name, description, labels } = checkMetadata(input.metadata, { field: at("metadata"), nameMayBeEmpty: true });
  return {
    id,
    mac,
    username: input.bmcUsername,
    password: input.bmcPassword,
    prefix,
    row: {
      name,
      description,
      labels,
      rack_id: parseRackId(input.rackId, at("rack_id")),
      bmc_mac: mac,
      bmc_username: input.bmcUsername,
      bmc_address: endpoint?.address ?? null,
      bmc_port: endpoint?.port ?? null,
      shelf_serial_number: input.serial,
      bmc_retain_credentials: input.retainCredentials ?? false,
    },
  };
}

function parseUuid(text: string, field: string): string {
  const lower = text.toLowerCase();
  if (UUID.test(lower)) return lower;
  throw new AppError("invalid_argument", `${field}: ${JSON.stringify(text.slice(0, 80))} is not a UUID`, { field });
}

function refuseRepeated(words: readonly string[]): void {
  const seen = new Set<string>();
  for (const word of words) {
    if (seen.has(word)) {
      const field = "expected_power_shelves";
      throw new AppError("invalid_argument", `${field}: ${word} is listed twice`, { field });
    }
    seen.add(word);
  }
}

async function insert(tx: Queryable, deps: ServiceDeps, caller: Caller, checked: Checked): Promise<void> {
  const [taken] = await listExpectedPowerShelves(tx, { bmcMac: checked.mac });
  if (taken) {
    throw new AppError("already_exists", `an expected power shelf with BMC ${checked.mac} exists already`, {
      field: "bmc_mac_address",
      next: `millwright expected-power-shelf show ${checked.mac}`,
    });
  }
  const id = checked.id ?? randomUUID();
  await lockThings(tx, [{ kind: KIND, id }]);
  if (checked.password === undefined) throw passwordRequired(checked, "a new row");
  await keepCredentials(tx, deps, checked);
  const isNew = await create(tx, storeOf(deps.stores, KIND), {
    id,
    row: checked.row,
    ...doneBy(caller),
    ifMissing: true,
  });
  if (!isNew)
    throw new AppError("already_exists", `an expected power shelf ${id} exists already`, {
      field: "expected_power_shelf_id",
    });
}

async function update(
  tx: Queryable,
  deps: ServiceDeps,
  caller: Caller,
  checked: Checked,
  known: ExpectedPowerShelfRecord,
): Promise<void> {
  // A new name with no new password would not fit the old one.
  if (checked.password === undefined && checked.username !== known.bmcUsername)
    throw passwordRequired(checked, "a new bmc_username");
  await keepCredentials(tx, deps, checked);
  const told = { kind: KIND, id: known.id, ...doneBy(caller) };
  await recordChange(tx, storeOf(deps.stores, KIND), {
    ...told,
    type: "updated",
    set: { ...checked.row, labels: JSON.stringify(checked.row.labels) },
  });
  await applyVerb(tx, deps.stores, { ...told, owner: "caller", name: "update" });
  await moveShelf(tx, deps, caller, checked, known);
}

/** The row and the shelf of the same BMC: an update may concern both. */
const locksOf = ({ id, existingShelf }: ExpectedPowerShelfRecord) => [
  { kind: KIND, id },
  ...(existingShelf ? [{ kind: SHELF, id: existingShelf.id }] : []),
];

/** A shelf whose row says that it is elsewhere now is looked for there. */
async function moveShelf(
  tx: Queryable,
  deps: ServiceDeps,
  caller: Caller,
  { row: { bmc_address, bmc_port, rack_id } }: Checked,
  { existingShelf, bmc, rackId }: ExpectedPowerShelfRecord,
): Promise<void> {
  if (!existingShelf || bmc_address === null) return;
  if (bmc_address === bmc.address && bmc_port === bmc.port && rack_id === rackId) return;
  await recordChange(tx, storeOf(deps.stores, SHELF), {
    id: existingShelf.id,
    type: "place_changed",
    ...doneBy(caller),
    reason: "the expected inventory was updated",
    data: { bmc_address, bmc_port, rack_id },
    set: { bmc_address, bmc_port, rack_id },
  });
  await work.wake(tx, [{ kind: SHELF, id: existingShelf.id }]);
}

async function keepCredentials(tx: Queryable, deps: ServiceDeps, checked: Checked): Promise<void> {
  const { mac, username, password } = checked;
  if (password !== undefined) await putBmcCredentials(tx, deps.secrets, mac, { username, password });
}

function passwordRequired({ prefix }: Checked, why: string): AppError {
  const field = `${prefix}bmc_password`;
  return new AppError("invalid_argument", `${field}: is required with ${why}`, { field });
}

/** The shelf that it became stays; so do the credentials, as long as a shelf needs them. */
async function remove(tx: Queryable, deps: ServiceDeps, caller: Caller, row: ExpectedPowerShelfRecord): Promise<void> {
  await applyVerb(tx, deps.stores, { kind: KIND, id: row.id, owner: "caller", name: "remove", ...doneBy(caller) });
  const users = await listPowerShelves(tx, { bmcMac: row.bmc.mac });
  if (users.length === 0) await deps.secrets.remove(tx, credentialName(row.bmc.mac));
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
