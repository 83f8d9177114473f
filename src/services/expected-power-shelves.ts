import { randomUUID } from "node:crypto";
import { AppError } from "../kernel/errors.ts";
import { parseMac } from "../kernel/ids.ts";
import { credentialName, putBmcCredentials } from "../store/bmc-credentials.ts";
import { recordChange } from "../store/changes.ts";
import { create } from "../store/create.ts";
import type { Queryable } from "../store/database.ts";
import {
  type ExpectedPowerShelfFilter,
  type ExpectedPowerShelfRecord,
  listExpectedPowerShelves,
} from "../store/expected-power-shelves.ts";
import { lockThings } from "../store/locks.ts";
import { listPowerShelves } from "../store/power-shelves.ts";
import { storeOf } from "../store/things.ts";
import { applyVerb } from "../store/verbs.ts";
import { parseBmcEndpoint } from "./bmc-endpoint.ts";
import type { Caller } from "./caller.ts";
import type { ServiceDeps } from "./deps.ts";
import { actorOf } from "./initiator.ts";
import { checkMetadata, type Metadata } from "./metadata.ts";

const KIND = "expected_power_shelf";
/** A lock over the set of expected shelves: rows come and go under it, so that two writers never miss each other's rows. */
const WHOLE_SET = { kind: KIND, id: "*" };
const LONGEST_SERIAL = 256;
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
      throw new AppError(
        "invalid_argument",
        `bmc_mac_address: row ${known.id} has ${known.bmc.mac}; a MAC address cannot be changed, add a new row`,
        {
          field: "bmc_mac_address",
        },
      );
    }
    await lockThings(tx, [{ kind: KIND, id: known.id }]);
    await keepCredentials(tx, deps, checked, known.bmcUsername);
    await recordChange(tx, storeOf(deps.stores, KIND), {
      id: known.id,
      type: "updated",
      actor: actorOf(caller),
      set: { ...checked.row, labels: JSON.stringify(checked.row.labels) },
    });
    await applyVerb(tx, deps.stores, {
      kind: KIND,
      id: known.id,
      owner: "caller",
      name: "update",
      actor: actorOf(caller),
    });
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

/** The list takes the place of all rows, in one transaction. Rows that stay the same keep their link to their shelf. */
export async function replaceAllExpectedPowerShelves(
  deps: ServiceDeps,
  caller: Caller,
  inputs: readonly ExpectedInput[],
): Promise<void> {
  const checked = inputs.map((input, index) => check(input, `expected_power_shelves[${index}].`));
  const macs = checked.map(({ mac }) => mac);
  const twice = macs.find((mac, index) => macs.indexOf(mac) !== index);
  if (twice !== undefined) {
    throw new AppError("invalid_argument", `expected_power_shelves: ${twice} is listed twice`, {
      field: "expected_power_shelves",
    });
  }
  await deps.db.transaction(async (tx) => {
    const known = await listExpectedPowerShelves(tx);
    await lockThings(tx, [WHOLE_SET, ...known.map(({ id }) => ({ kind: KIND, id }))]);
    for (const row of await listExpectedPowerShelves(tx)) await remove(tx, deps, caller, row);
    for (const one of checked) await insert(tx, deps, caller, one);
  });
}

export async function getExpectedPowerShelf(deps: ServiceDeps, key: ExpectedKey): Promise<ExpectedPowerShelfRecord> {
  return find(deps.db, key);
}

export async function searchExpectedPowerShelves(
  deps: ServiceDeps,
  filter: ExpectedPowerShelfFilter = {},
): Promise<ExpectedPowerShelfRecord[]> {
  return listExpectedPowerShelves(deps.db, filter);
}

interface Checked {
  readonly id: string | undefined;
  readonly mac: string;
  readonly username: string;
  readonly password: string | undefined;
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
  const mac = parseMac(input.bmcMac, at("bmc_mac_address"));
  if (input.id !== undefined && !UUID.test(input.id)) {
    throw new AppError("invalid_argument", `${at("expected_power_shelf_id")}: is not a UUID`, {
      field: at("expected_power_shelf_id"),
    });
  }
  if (input.bmcUsername === "" || input.bmcUsername.length > LONGEST_SERIAL) {
    throw new AppError("invalid_argument", `${at("bmc_username")}: 1 to ${LONGEST_SERIAL} characters are required`, {
      field: at("bmc_username"),
    });
  }
  if (input.serial.length > LONGEST_SERIAL) {
    throw new AppError("invalid_argument", `${at("shelf_serial_number")}: at most ${LONGEST_SERIAL} characters`, {
      field: at("shelf_serial_number"),
    });
  }
  const endpoint = input.bmcEndpoint ? parseBmcEndpoint(input.bmcEndpoint, at("bmc_ip_address")) : undefined;
  const { name, description, labels } = checkMetadata(input.metadata, { field: at("metadata"), nameMayBeEmpty: true });
  return {
    id: input.id,
    mac,
    username: input.bmcUsername,
    password: input.bmcPassword,
    row: {
      name,
      description,
      labels,
      rack_id: input.rackId || null,
      bmc_mac: mac,
      bmc_username: input.bmcUsername,
      bmc_address: endpoint?.address ?? null,
      bmc_port: endpoint?.port ?? null,
      shelf_serial_number: input.serial,
      bmc_retain_credentials: input.retainCredentials ?? false,
    },
  };
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
  await keepCredentials(tx, deps, checked, checked.username);
  const isNew = await create(tx, storeOf(deps.stores, KIND), {
    id,
    row: checked.row,
    actor: actorOf(caller),
    ifMissing: true,
  });
  if (!isNew)
    throw new AppError("already_exists", `an expected power shelf ${id} exists already`, {
      field: "expected_power_shelf_id",
    });
}

/** A new name with no new password would not fit the old one. */
async function keepCredentials(
  tx: Queryable,
  deps: ServiceDeps,
  checked: Checked,
  usernameOnRecord: string,
): Promise<void> {
  if (checked.password === undefined) {
    if (checked.username !== usernameOnRecord) {
      throw new AppError("invalid_argument", "bmc_password: is required with a new bmc_username", {
        field: "bmc_password",
      });
    }
    return;
  }
  await putBmcCredentials(tx, deps.secrets, checked.mac, { username: checked.username, password: checked.password });
}

/** The shelf that it became stays; so do the credentials, as long as a shelf needs them. */
async function remove(tx: Queryable, deps: ServiceDeps, caller: Caller, row: ExpectedPowerShelfRecord): Promise<void> {
  await applyVerb(tx, deps.stores, { kind: KIND, id: row.id, owner: "caller", name: "remove", actor: actorOf(caller) });
  const users = await listPowerShelves(tx, { bmcMac: row.bmc.mac });
  if (users.length === 0) await deps.secrets.remove(tx, credentialName(row.bmc.mac));
}

async function find(db: Queryable, key: ExpectedKey): Promise<ExpectedPowerShelfRecord> {
  const filter = "id" in key ? { ids: [key.id] } : { bmcMac: parseMac(key.bmcMac, "bmc_mac_address") };
  const [row] = await listExpectedPowerShelves(db, filter);
  if (row) return row;
  throw new AppError(
    "not_found",
    `there is no expected power shelf ${"id" in key ? key.id : `with BMC ${key.bmcMac}`}`,
    {
      next: "millwright expected-power-shelf list",
    },
  );
}
