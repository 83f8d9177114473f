import { followOrRefuse } from "../../kernel/decide.ts";
import { AppError, changedByAnother, wrongField } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import {
  type FirmwareFilter,
  findDefault,
  findRunOfFirmware,
  listRackFirmware,
  rackFirmwareStore,
} from "../../store/rack-firmware/rack-firmware.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { givenSecret } from "../call/given-secret.ts";
import { actorOf, doneBy } from "../call/initiator.ts";
import { sweepArtifacts } from "./files.ts";
import { parseFirmwareConfig } from "./firmware-config.ts";
import { type FirmwareView, viewFirmware } from "./view.ts";

const { kind } = rackFirmwareStore.lifecycle;
const LONGEST_TYPE = 128;
const LONGEST_TOKEN = 16_384;
/** What clients of the contract send where the files need no token. */
const NO_TOKEN = "NOAUTH";

/** Who makes another record the default of a type holds this, whatever records there are. */
const defaultOf = (hardwareType: string): ThingKey => ({ kind: `${kind}_default`, id: hardwareType });
export const tokenSecret = (id: string): string => `rack-firmware/${id}`;

export interface CreateRackFirmware {
  readonly configJson: string;
  readonly token: string;
  readonly hardwareType: string;
}

/** Puts a record into the catalogue; its files are downloaded from then on. The first of a type becomes the type's default. */
export async function createRackFirmware(
  deps: ServiceDeps,
  caller: Caller,
  input: CreateRackFirmware,
): Promise<FirmwareView> {
  const hardwareType = checkHardwareType(input.hardwareType);
  const given = await givenSecret(deps, caller, input.token, "artifactory_token");
  const token = checkToken(given.value) === undefined ? undefined : given.stored;
  const { id, components } = parseFirmwareConfig(input.configJson);
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id }, defaultOf(hardwareType)]);
    const isDefault = (await findDefault(tx, hardwareType)) === undefined;
    const isNew = await create(tx, storeOf(deps.stores, kind), {
      id,
      ...doneBy(caller),
      ifMissing: true,
      row: {
        config: input.configJson,
        components: components.map(({ file, ...component }) => ({ ...component, file: { ...file } })),
        hardware_type: hardwareType,
        is_default: isDefault,
        created_by: actorOf(caller),
      },
    });
    if (!isNew)
      throw new AppError("already_exists", `rack firmware ${id} exists already; a changed record needs another Id`, {
        field: "config_json",
        next: `millwright rack-firmware get ${id}`,
      });
    if (token === undefined) await deps.secrets.remove(tx, tokenSecret(id));
    else await deps.secrets.put(tx, tokenSecret(id), token);
    return found(tx, id);
  });
}

function checkHardwareType(text: string): string {
  if (text === "") throw wrongField("rack_hardware_type", "is required; any suits every rack");
  if (text.length > LONGEST_TYPE || !isPrintable(text) || text.trim() !== text)
    throw wrongField("rack_hardware_type", `at most ${LONGEST_TYPE} printable characters, without spaces around them`);
  return text;
}

/** Undefined where the files need none. Nothing of it is said: it is a secret. */
function checkToken(text: string): string | undefined {
  if (text === "") throw wrongField("artifactory_token", `is required; ${NO_TOKEN} where the files need none`);
  // It becomes a header.
  if (text.length > LONGEST_TOKEN || !/^[\x21-\x7e]+$/.test(text))
    throw wrongField("artifactory_token", `at most ${LONGEST_TOKEN} characters of ASCII, without spaces`);
  return text === NO_TOKEN ? undefined : text;
}

export const getRackFirmware = (deps: ServiceDeps, id: string): Promise<FirmwareView> => found(deps.db, checkId(id));

/** The newest first. */
export const listFirmware = (deps: ServiceDeps, filter: FirmwareFilter): Promise<readonly FirmwareView[]> =>
  listRackFirmware(deps.lists ?? deps.db, filter).then((records) => records.map(viewFirmware));

async function found(db: Queryable, id: string): Promise<FirmwareView> {
  const [firmware] = await listRackFirmware(db, { ids: [id] });
  if (!firmware) throw unknownFirmware(id);
  return viewFirmware(firmware);
}

const unknownFirmware = (id: string): AppError =>
  new AppError("not_found", `rack firmware ${id.slice(0, 256)} does not exist`, {
    next: "millwright rack-firmware list",
  });

function checkId(id: string, field = "id"): string {
  if (id === "") throw wrongField(field, "is required");
  return id;
}

/** Removes the record, unless a run works with it. Its files go once no other record names them. */
export async function deleteRackFirmware(deps: ServiceDeps, caller: Caller, text: string): Promise<void> {
  const id = checkId(text);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id }]);
    const thing = await found(tx, id);
    await refuseUsed(tx, id);
    await deps.secrets.remove(tx, tokenSecret(id));
    // Of the record as far as it can be read: otherwise nothing would lead out of one that cannot.
    const move = followOrRefuse(rackFirmwareStore.lifecycle, thing, { owner: "caller", name: "delete" });
    await commitOrRefuse(tx, deps.stores, [{ kind, thing, move, ...doneBy(caller) }]);
  });
  // The record is gone, whatever becomes of its files: what stays is removed at the next start.
  if (deps.artifacts) await sweepArtifacts(deps.db, deps.artifacts).catch(() => undefined);
}

async function refuseUsed(tx: Transaction, id: string): Promise<void> {
  const run = await findRunOfFirmware(tx, id);
  if (run === undefined) return;
  throw new AppError("failed_precondition", `rack firmware ${id} is in use: run ${run} works with it`, {
    next: `millwright run show ${run}`,
  });
}

/** Downloads the files again, or compares those that are here with their digests once more. */
export async function downloadRackFirmware(deps: ServiceDeps, caller: Caller, text: string): Promise<void> {
  const id = checkId(text);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id }]);
    const firmware = await found(tx, id);
    if (firmware.unreadable !== undefined) throw new AppError("failed_precondition", firmware.reason);
    const { state } = firmware;
    if (state.name === "downloading") return; // it is at it
    await refuseUsed(tx, id);
    await applyVerb(tx, deps.stores, { kind, id, owner: "caller", name: "download", ...doneBy(caller) });
  });
}

/** From now on racks of the record's hardware type get it where nobody names a version. */
export async function setDefaultRackFirmware(deps: ServiceDeps, caller: Caller, text: string): Promise<void> {
  const id = checkId(text, "firmware_id");
  const { hardwareType } = await found(deps.db, id);
  const before = await findDefault(deps.db, hardwareType);
  if (before === id) return;
  const store = storeOf(deps.stores, kind);
  await deps.db.transaction(async (tx) => {
    const others = before === undefined ? [] : [{ kind, id: before }];
    await lockThings(tx, [defaultOf(hardwareType), { kind, id }, ...others]);
    await found(tx, id);
    if ((await findDefault(tx, hardwareType)) !== before)
      throw changedByAnother(`the default firmware of ${hardwareType}`);
    const change = { ...doneBy(caller), touchesBasis: false } as const;
    const updated = { updated_at: nowOf(deps) };
    // One after the other, since a type never has two.
    if (before !== undefined)
      await recordChange(tx, store, {
        ...{ id: before, type: "default_ended", ...change, data: { by: id } },
        set: { is_default: false, ...updated },
      });
    await recordChange(tx, store, { id, type: "default_set", ...change, set: { is_default: true, ...updated } });
  });
}
