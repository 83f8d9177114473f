import { type CredentialPlace, placeOfBmc } from "../../capabilities/credential-place.ts";
import { signInEndpoint } from "../../capabilities/sign-in-ledger.ts";
import { changedByAnother } from "../../kernel/errors.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import { liftSignInStop } from "../../store/access/sign-in-ledger.ts";
import { bmcKey, putBmcCredentials } from "../../store/device/bmc-credentials.ts";
import { listExpectedPowerShelves } from "../../store/expected-power-shelf/expected-power-shelves.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listPowerShelves } from "../../store/power-shelf/power-shelves.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { storedSecret } from "../call/given-secret.ts";
import { doneBy } from "../call/initiator.ts";
import { checkRequiredText } from "../call/required-text.ts";
import { unknownShelf } from "./power-shelves.ts";

export interface SetCredentials {
  readonly id: string;
  readonly bmcUsername: string;
  readonly bmcPassword: string;
}

/** New credentials of a shelf's BMC, also for the expected row that speaks of the same one; both are tried at once. */
export async function setPowerShelfCredentials(
  deps: ServiceDeps,
  caller: Caller,
  { id: text, bmcUsername: username, bmcPassword }: SetCredentials,
): Promise<void> {
  const id = parsePowerShelfId(text, "id");
  checkRequiredText(username, "bmc_username");
  checkRequiredText(bmcPassword, "bmc_password");
  const password = await storedSecret(deps, caller, bmcPassword, "bmc_password");
  await deps.db.transaction(async (tx) => {
    const before = await findConcerned(tx, id);
    await lockThings(tx, before.locks);
    const { mac, rowId, place } = await findConcerned(tx, id);
    if (mac !== before.mac || rowId !== before.rowId) throw changedByAnother(`power shelf ${id}`);
    await putBmcCredentials(tx, deps.secrets, { mac, place, username, password });
    await liftSignInStop(tx, before.endpoints);
    const told = { type: "credentials_changed", ...doneBy(caller) };
    await recordChange(tx, storeOf(deps.stores, "power_shelf"), { ...told, id, set: {} });
    if (rowId !== undefined) {
      const set = { bmc_username: username };
      await recordChange(tx, storeOf(deps.stores, "expected_power_shelf"), { ...told, id: rowId, set });
    }
    await work.wake(tx, before.things);
  });
}

interface Concerned {
  readonly mac: string;
  readonly rowId: string | undefined;
  readonly place: CredentialPlace;
  readonly endpoints: readonly string[];
  readonly things: readonly ThingKey[];
  readonly locks: readonly ThingKey[];
}

async function findConcerned(tx: Transaction, id: string): Promise<Concerned> {
  const [shelf] = await listPowerShelves(tx, { ids: [id] });
  if (!shelf) throw unknownShelf(id);
  const { mac } = shelf.bmc;
  const [row] = await listExpectedPowerShelves(tx, { bmcMac: mac });
  const things = [{ kind: "power_shelf", id }, ...(row ? [{ kind: "expected_power_shelf", id: row.id }] : [])];
  const endpoints = [signInEndpoint(shelf.bmc)];
  return { mac, rowId: row?.id, place: placeOfBmc(shelf.bmc), endpoints, things, locks: [...things, bmcKey(mac)] };
}
