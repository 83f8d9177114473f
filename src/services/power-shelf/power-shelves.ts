import { createHash } from "node:crypto";
import { placeOfBmc } from "../../capabilities/credential-place.ts";
import { AppError } from "../../kernel/errors.ts";
import { parseMac, parsePowerShelfId } from "../../kernel/ids.ts";
import type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";
import { bmcKey, forgetPin, putBmcCredentials } from "../../store/device/bmc-credentials.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { create } from "../../store/lifecycle/create.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { recordRequest } from "../../store/lifecycle/requests.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { isUniqueViolation } from "../../store/postgres/database.ts";
import { rememberKey } from "../../store/postgres/idempotency.ts";
import {
  listPowerShelves,
  type PowerShelfRecord,
  powerShelfTraits,
  powerShelves,
} from "../../store/power-shelf/power-shelves.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { storedSecret } from "../call/given-secret.ts";
import { checkIdList } from "../call/id-list.ts";
import { actorOf, describeInitiator, doneBy, parseReference } from "../call/initiator.ts";
import { parseRequestId } from "../call/request-id.ts";
import { checkRequiredText } from "../call/required-text.ts";
import { parseBmcEndpoint } from "../device/bmc-endpoint.ts";
import { checkPins, checkShown, parseFingerprint } from "../device/certificate.ts";
import { deleteDevice, forceDeleteDevice } from "../device/deletion.ts";
import { unknownDevice } from "../device/device.ts";
import { deviceFinder } from "../device/find.ts";
import { checkMetadata } from "../device/metadata.ts";
import { parseRackId } from "../device/rack-id.ts";
import { mentionRacks, rackKeys } from "../device/racks.ts";

export type { MaintenanceOperation } from "../../lifecycles/power-shelf/power-shelf.ts";

const KIND = "power_shelf";
const shelfKey = (id: string) => ({ kind: KIND, id });

export interface SetMaintenance {
  readonly powerShelfIds: readonly string[];
  readonly operation: MaintenanceOperation | undefined;
  readonly reference: string | undefined;
  /** The request ends where somebody uses a tray of the shelf's rack when its turn comes. Absent: trays are not asked for. */
  readonly unlessInUse?: boolean;
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
          `power shelf ${id} is marked for deletion; maintenance is not possible`,
          { field: "power_shelf_ids" },
        );
      }
    }
    await recordRequest(tx, storeOf(deps.stores, KIND), {
      field: "maintenanceRequest",
      ids,
      initiator,
      address: caller.address,
      wish: {
        operation,
        ...(caller.traceparent !== undefined && { traceparent: caller.traceparent }),
        ...(input.unlessInUse && { unless_in_use: true }),
      },
    });
  });
}

export const {
  find: findPowerShelves,
  findByIds: findPowerShelvesByIds,
  searchIds: searchPowerShelfIds,
  get: getPowerShelf,
} = deviceFinder(powerShelves, powerShelfTraits, "power_shelf_id");

export const deletePowerShelf = (deps: ServiceDeps, caller: Caller, id: string): Promise<void> =>
  deleteDevice(deps, caller, { kind: KIND, id, field: "id" });

export const forceDeletePowerShelf = (deps: ServiceDeps, caller: Caller, id: string): Promise<void> =>
  forceDeleteDevice(deps, caller, { kind: KIND, id, field: "power_shelf_id" });

export interface RefreshPowerShelf {
  readonly id: string;
  /** The certificate that the BMC shows next is then pinned. */
  readonly forgetCertificate: boolean;
}

/** Makes the shelf due for a pass now. */
export async function refreshPowerShelf(deps: ServiceDeps, caller: Caller, input: RefreshPowerShelf): Promise<void> {
  const id = parsePowerShelfId(input.id, "id");
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [shelfKey(id)]);
    const [thing] = await listPowerShelves(tx, { ids: [id] });
    if (!thing) throw unknownShelf(id);
    if (input.forgetCertificate) {
      const facts = { certificateFingerprint: null };
      await commitOrRefuse(tx, deps.stores, [{ kind: KIND, thing, facts, ...doneBy(caller) }]);
      await forgetPin(tx, thing.bmc.mac);
    }
    await work.wake(tx, [shelfKey(id)]);
    announce(tx);
  });
}

export interface AcceptShelfCertificate {
  readonly id: string;
  readonly fingerprint: string;
}

/** From now on the shelf's BMC must show this certificate, and no other; it is tried at once. */
export async function acceptPowerShelfCertificate(
  deps: ServiceDeps,
  caller: Caller,
  input: AcceptShelfCertificate,
): Promise<void> {
  const id = parsePowerShelfId(input.id, "id");
  const certificateFingerprint = parseFingerprint(input.fingerprint);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [shelfKey(id)]);
    const [thing] = await listPowerShelves(tx, { ids: [id] });
    if (!thing) throw unknownShelf(id);
    checkPins(thing.bmc.trust, `power shelf ${id}`);
    const pinned = thing.facts.certificateFingerprint;
    checkShown(certificateFingerprint, { cause: thing.outcome?.cause, pinned });
    if (pinned === certificateFingerprint) return;
    await commitOrRefuse(tx, deps.stores, [
      { kind: KIND, thing, facts: { certificateFingerprint }, ...doneBy(caller) },
    ]);
    await work.wake(tx, [shelfKey(id)]);
    announce(tx);
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
  const password = await storedSecret(deps, caller, input.bmcPassword, "bmc_password");
  const key = parseRequestId(input.requestId);
  const rackId = parseRackId(input.rackId, "rack_id");
  const name =
    input.name === "" ? id : checkMetadata({ name: input.name, description: "", labels: {} }, { field: "" }).name;
  const { bmcPassword: _, ...telling } = input;
  const fingerprint = createHash("sha256").update(JSON.stringify(telling)).digest("hex");

  try {
    const created = await deps.db.transaction(async (tx) => {
      await lockThings(tx, [shelfKey(id), bmcKey(mac), ...rackKeys([rackId])]);
      const scope = { method: "CreatePowerShelf", caller: actorOf(caller) };
      const known = key === undefined ? null : await rememberKey(tx, { scope, key, fingerprint, thingId: id });
      if (known !== null) return known;
      const place = placeOfBmc({ address, port, scheme, trust: input.trust });
      const credentials = { mac, place, username: input.bmcUsername, password };
      await putBmcCredentials(tx, deps.secrets, credentials, { withAddress: true });
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
      await mentionRacks(tx, deps, caller, { named: [rackId], left: [] });
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

export const unknownShelf = (id: string): AppError => unknownDevice(powerShelfTraits, id);
