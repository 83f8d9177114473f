import { createHash } from "node:crypto";
import { followOrRefuse, type Move } from "../../kernel/decide.ts";
import { move } from "../../kernel/effects.ts";
import { AppError } from "../../kernel/errors.ts";
import { parseMac, parsePowerShelfId } from "../../kernel/ids.ts";
import { expectedPowerShelfLifecycle } from "../../lifecycles/expected-power-shelf/lifecycle.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";
import { bmcKey, putBmcCredentials } from "../../store/device/bmc-credentials.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { create } from "../../store/lifecycle/create.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { recordRequest } from "../../store/lifecycle/requests.ts";
import { listStateHistories, type StateRecord } from "../../store/lifecycle/state-histories.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { commitUnits } from "../../store/lifecycle/transitions.ts";
import { withdrawPending } from "../../store/lifecycle/withdrawals.ts";
import * as work from "../../store/lifecycle/work.ts";
import { isUniqueViolation } from "../../store/postgres/database.ts";
import { rememberKey } from "../../store/postgres/idempotency.ts";
import {
  listPowerShelfIds,
  listPowerShelves,
  type PowerShelfFilter,
  type PowerShelfRecord,
} from "../../store/power-shelf/power-shelves.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { checkIdList } from "../call/id-list.ts";
import { actorOf, describeInitiator, doneBy, parseReference } from "../call/initiator.ts";
import { parseRequestId } from "../call/request-id.ts";
import { checkRequiredText } from "../call/required-text.ts";
import { parseBmcEndpoint } from "../device/bmc-endpoint.ts";
import { checkMetadata, type Metadata, versionText } from "../device/metadata.ts";
import { parseRackId } from "../device/rack-id.ts";

export type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";
export type { StateRecord } from "../../store/lifecycle/state-histories.ts";

const KIND = "power_shelf";
const shelfKey = (id: string) => ({ kind: KIND, id });

export interface SetMaintenance {
  readonly powerShelfIds: readonly string[];
  readonly operation: MaintenanceOperation | undefined;
  readonly reference: string | undefined;
}

/** Records the request on every listed shelf, or on none; the controller carries it out. */
export async function setPowerShelfMaintenance(
  deps: ServiceDeps,
  caller: Caller,
  input: SetMaintenance,
): Promise<void> {
  const ids = checkIdList(input.powerShelfIds, {
    field: "power_shelf_ids",
    most: deps.maxFindByIds,
    parse: parsePowerShelfId,
  });
  const { operation } = input;
  if (operation === undefined) {
    throw new AppError("invalid_argument", "operation: must be POWER_ON or POWER_OFF", { field: "operation" });
  }
  const initiator = describeInitiator(caller.name, parseReference(input.reference));

  await deps.db.transaction(async (tx) => {
    await lockThings(tx, ids.map(shelfKey));
    const found = new Map((await listPowerShelves(tx, { ids })).map((shelf) => [shelf.id as string, shelf]));
    for (const id of ids) {
      const shelf = found.get(id);
      if (!shelf) throw unknownShelf(id);
      if (shelf.deletedAt) {
        // The request is right, the moment is wrong; forge.Forge answers INVALID_ARGUMENT all the same.
        throw new AppError(
          "failed_precondition",
          `power shelf ${id} is marked for deletion, so it takes no maintenance`,
          { field: "power_shelf_ids" },
        );
      }
    }
    await recordRequest(tx, storeOf(deps.stores, KIND), {
      field: "maintenanceRequest",
      ids,
      initiator,
      address: caller.address,
      wish: { operation, ...(caller.traceparent !== undefined && { traceparent: caller.traceparent }) },
    });
  });
}

/** An id wins over a name; with neither, all shelves, also those marked for deletion. */
export async function findPowerShelves(
  deps: ServiceDeps,
  query: { id?: string; name?: string },
): Promise<PowerShelfRecord[]> {
  if (query.id !== undefined)
    return listPowerShelves(deps.db, { ids: [parsePowerShelfId(query.id, "power_shelf_id")] });
  return listPowerShelves(deps.db, query.name === undefined ? {} : { name: query.name });
}

export async function findPowerShelvesByIds(
  deps: ServiceDeps,
  powerShelfIds: readonly string[],
): Promise<PowerShelfRecord[]> {
  const ids = checkIdList(powerShelfIds, {
    field: "power_shelf_ids",
    most: deps.maxFindByIds,
    parse: parsePowerShelfId,
  });
  return listPowerShelves(deps.db, { ids });
}

export type PowerShelfSearch = Pick<PowerShelfFilter, "rackId" | "state" | "bmcMac" | "deleted">;

export async function searchPowerShelfIds(deps: ServiceDeps, filter: PowerShelfSearch): Promise<string[]> {
  const { bmcMac, ...rest } = filter;
  return listPowerShelfIds(deps.db, { ...rest, ...(bmcMac !== undefined && { bmcMac: parseMac(bmcMac, "bmc_mac") }) });
}

export async function getPowerShelf(deps: ServiceDeps, id: string, field = "id"): Promise<PowerShelfRecord> {
  const [shelf] = await listPowerShelves(deps.db, { ids: [parsePowerShelfId(id, field)] });
  if (!shelf) throw unknownShelf(id);
  return shelf;
}

/** A hundred histories of this length stay below the 4 MB that gRPC clients accept by default. */
const LONGEST_HISTORY = 250;

/** The latest states of each shelf, oldest first, also of shelves that are gone; ids without a history are left out. */
export async function findPowerShelfStateHistories(
  deps: ServiceDeps,
  powerShelfIds: readonly string[],
): Promise<ReadonlyMap<string, readonly StateRecord[]>> {
  const ids = checkIdList(powerShelfIds, {
    field: "power_shelf_ids",
    most: deps.maxFindByIds,
    parse: parsePowerShelfId,
  });
  return listStateHistories(deps.db, KIND, ids, LONGEST_HISTORY);
}

/** Marks the shelf; the controller removes it as soon as its state allows. Asking again refreshes the mark. */
export async function deletePowerShelf(deps: ServiceDeps, caller: Caller, id: string): Promise<void> {
  const shelfId = parsePowerShelfId(id, "id");
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [shelfKey(shelfId)]);
    const known = await recordChange(tx, storeOf(deps.stores, KIND), {
      id: shelfId,
      type: "deletion_requested",
      ...doneBy(caller),
      set: { deleted_at: nowOf(deps) },
    });
    if (!known) throw unknownShelf(id);
    // Deletion comes before maintenance: nobody will carry out what still waits.
    await withdrawPending(tx, storeOf(deps.stores, KIND), {
      field: "maintenanceRequest",
      id: shelfId,
      ...doneBy(caller),
    });
    await work.wake(tx, [shelfKey(shelfId)]);
  });
}

/** Removes the record at once, whatever the shelf is doing; its history stays. */
export async function forceDeletePowerShelf(deps: ServiceDeps, caller: Caller, id: string): Promise<void> {
  const shelfId = parsePowerShelfId(id, "power_shelf_id");
  await deps.db.transaction(async (tx) => {
    const [before] = await listPowerShelves(tx, { ids: [shelfId] });
    const expected = before?.expectedId ? [{ kind: "expected_power_shelf", id: before.expectedId }] : [];
    await lockThings(tx, [shelfKey(shelfId), ...(before ? [bmcKey(before.bmc.mac)] : []), ...expected]);
    const [shelf] = await listPowerShelves(tx, { ids: [shelfId] });
    if (!shelf) throw unknownShelf(id);
    if (shelf.expectedId !== before?.expectedId || shelf.bmc.mac !== before.bmc.mac)
      throw new AppError("conflict", `power shelf ${id} changed meanwhile; ask again`);
    await commitUnits(tx, deps.stores, [
      {
        kind: KIND,
        thing: shelf,
        move: forcedMove(shelf),
        ...doneBy(caller),
        effects: expected.map((row) => move(expectedPowerShelfLifecycle, row.id, "power_shelf_deleted")),
      },
    ]);
  });
}

/** Also out of a state that the lifecycle does not know: a damaged record has no other way out. */
function forcedMove(shelf: PowerShelfRecord): Move {
  const { name } = shelf.state;
  const standing =
    name in powerShelfLifecycle.states ? shelf : { ...shelf, state: { name: powerShelfLifecycle.initial } };
  const move = followOrRefuse(powerShelfLifecycle, standing, { owner: "caller", name: "force_delete" });
  return { ...move, from: name, to: name };
}

export interface RefreshPowerShelf {
  readonly id: string;
  /** The certificate that the BMC shows next is then pinned. */
  readonly forgetCertificate: boolean;
}

/** Has the controller look at the shelf now. */
export async function refreshPowerShelf(deps: ServiceDeps, caller: Caller, input: RefreshPowerShelf): Promise<void> {
  const id = parsePowerShelfId(input.id, "id");
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [shelfKey(id)]);
    const [thing] = await listPowerShelves(tx, { ids: [id] });
    if (!thing) throw unknownShelf(id);
    if (input.forgetCertificate) {
      const facts = { certificateFingerprint: null };
      await commitUnits(tx, deps.stores, [{ kind: KIND, thing, facts, ...doneBy(caller) }]);
    }
    await work.wake(tx, [shelfKey(id)]);
    await announce(tx);
  });
}

export interface CreatePowerShelf {
  readonly id: string | undefined;
  readonly name: string;
  readonly rackId: string | undefined;
  readonly bmcEndpoint: string;
  readonly bmcMac: string;
  readonly bmcUsername: string;
  readonly bmcPassword: string;
  readonly bmcScheme: string;
  readonly trust: "ca" | "pin" | "off";
  readonly requestId: string | undefined;
}

/** Puts a shelf on record whose BMC is known; the controller then reads and configures it. */
export async function createPowerShelf(
  deps: ServiceDeps,
  caller: Caller,
  input: CreatePowerShelf,
): Promise<PowerShelfRecord> {
  const mac = parseMac(input.bmcMac, "bmc_mac");
  const id = parsePowerShelfId(input.id ?? `ps-${mac.replaceAll(":", "")}`, "id");
  const { address, port } = parseBmcEndpoint(input.bmcEndpoint, "bmc_endpoint");
  const scheme = input.bmcScheme === "" ? "https" : input.bmcScheme;
  if (scheme !== "https" && scheme !== "http") {
    throw new AppError("invalid_argument", `bmc_scheme: must be https or http`, { field: "bmc_scheme" });
  }
  for (const [field, given] of [
    ["bmc_username", input.bmcUsername] as const,
    ["bmc_password", input.bmcPassword] as const,
  ])
    checkRequiredText(given, field);
  const key = parseRequestId(input.requestId);
  const rackId = parseRackId(input.rackId, "rack_id");
  const name =
    input.name === "" ? id : checkMetadata({ name: input.name, description: "", labels: {} }, { field: "" }).name;
  const { bmcPassword: _, ...telling } = input;
  const fingerprint = createHash("sha256").update(JSON.stringify(telling)).digest("hex");

  try {
    const created = await deps.db.transaction(async (tx) => {
      await lockThings(tx, [shelfKey(id), bmcKey(mac)]);
      const scope = { method: "CreatePowerShelf", caller: actorOf(caller) };
      const known = key === undefined ? null : await rememberKey(tx, { scope, key, fingerprint, thingId: id });
      if (known !== null) return known;
      await putBmcCredentials(tx, deps.secrets, mac, { username: input.bmcUsername, password: input.bmcPassword });
      await create(tx, storeOf(deps.stores, KIND), {
        id,
        ...doneBy(caller),
        row: {
          name,
          rack_id: rackId,
          bmc_mac: mac,
          bmc_address: address,
          bmc_port: port,
          bmc_scheme: scheme,
          bmc_trust: input.trust,
        },
      });
      return id;
    });
    return await getPowerShelf(deps, created);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const what = isUniqueViolation(error, "power_shelves_bmc_mac_key") ? `with BMC ${mac}` : id;
    throw new AppError("already_exists", `a power shelf ${what} exists already`, {
      next: `millwright power-shelf show ${id}`,
    });
  }
}

export interface UpdateMetadata {
  readonly id: string;
  readonly ifVersionMatch: string | undefined;
  readonly metadata: Metadata;
}

/** Replaces name, description and labels, if the version is still the one that the caller saw. */
export async function updatePowerShelfMetadata(
  deps: ServiceDeps,
  caller: Caller,
  input: UpdateMetadata,
): Promise<void> {
  const id = parsePowerShelfId(input.id, "power_shelf_id");
  const { name, description, labels } = checkMetadata(input.metadata, { field: "metadata" });
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [shelfKey(id)]);
    const [shelf] = await listPowerShelves(tx, { ids: [id] });
    if (!shelf) throw unknownShelf(id);
    const current = versionText(shelf.metadataVersion, shelf.metadataChangedAt);
    if (input.ifVersionMatch !== undefined && input.ifVersionMatch !== current) {
      throw new AppError(
        "conflict",
        `if_version_match: the metadata of ${id} is at ${current}, not ${input.ifVersionMatch}; read it again`,
        {
          field: "if_version_match",
        },
      );
    }
    await recordChange(tx, storeOf(deps.stores, KIND), {
      id,
      type: "metadata_changed",
      ...doneBy(caller),
      touchesBasis: false,
      data: { name, description, labels },
      set: {
        name,
        description,
        labels,
        metadata_version: shelf.metadataVersion + 1,
        metadata_changed_at: nowOf(deps),
      },
    });
  });
}

export const unknownShelf = (id: string): AppError =>
  new AppError("not_found", `power shelf ${id} does not exist`, { next: "millwright power-shelf list" });
