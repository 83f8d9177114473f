import { AppError } from "../../kernel/errors.ts";
import { hours } from "../../kernel/time/duration.ts";
import * as store from "../../store/access/secret-keys.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { audit } from "../catalog/audit.ts";

/** Page tokens and links that an earlier key signed are out for so long. */
const SIGNATURES_LAST = hours(24);

export interface ShownKey extends store.ListedKey {
  /** From when on no file needs it; null: it is needed, or in none. */
  readonly removableAt: Date | null;
}

export async function listSecretKeys({ db }: ServiceDeps): Promise<{ keys: ShownKey[]; replicas: number }> {
  const [keys, replicas] = await Promise.all([store.listKeys(db), store.countReplicas(db)]);
  const signsSince = keys.find(({ isCurrent }) => isCurrent)?.currentSince ?? null;
  const show = (key: store.ListedKey): ShownKey => {
    const isNeeded = key.isCurrent || key.currentSince === null || key.secrets > 0 || key.holders === 0;
    const removableAt = isNeeded || signsSince === null ? null : new Date(signsSince.getTime() + SIGNATURES_LAST);
    return { ...key, removableAt };
  };
  return { keys: keys.map(show), replicas };
}

/** Asking again is harmless: the key that encrypts already goes on. */
export async function rotateSecretKey(
  deps: ServiceDeps,
  caller: Caller,
  keyId: string,
): Promise<{ key: ShownKey; changed: boolean; secretsLeft: number }> {
  const { id, changed } = await deps.db.transaction(async (tx) => {
    await store.lockKeys(tx);
    const chosen = choose(await store.listKeys(tx), keyId);
    if (chosen.isCurrent) return { id: chosen.id, changed: false };
    await checkHolders(tx, chosen);
    const entry = { kind: "secret_key", id: chosen.id } as const;
    await lockThings(tx, [entry]);
    await store.makeCurrent(tx, chosen.id);
    await audit(tx, caller, { ...entry, type: "changed", data: { current: true } });
    return { id: chosen.id, changed: true };
  });
  const { keys } = await listSecretKeys(deps);
  const key = keys.find((one) => one.id === id);
  if (!key) throw new AppError("internal", `secret key ${id} is gone from the list of keys`);
  return { key, changed, secretsLeft: await store.countEarlierSecrets(deps.db) };
}

const NEXT = "add the same new line to the key file of each replica: millwright secrets new-key";

/** Unnamed: the newest that is in a file, which is the current one when none was added since. */
function choose(keys: readonly store.ListedKey[], keyId: string): store.ListedKey {
  const chosen =
    keyId === ""
      ? keys.findLast(({ holders, isCurrent }) => holders > 0 || isCurrent)
      : keys.find(({ id }) => id === keyId);
  if (!chosen) {
    const what =
      keyId === "" ? "no replica has said which keys it has" : `there is no key ${JSON.stringify(keyId.slice(0, 80))}`;
    throw new AppError("not_found", `key_id: ${what}`, { field: "key_id", next: "millwright secrets keys" });
  }
  return chosen;
}

async function checkHolders(db: Queryable, { id, holders }: store.ListedKey): Promise<void> {
  const replicas = await store.countReplicas(db);
  if (replicas > 0 && holders === replicas) return;
  throw new AppError(
    "failed_precondition",
    `key ${id} is in the key file of ${holders} of ${replicas} replicas: the others could not read what it encrypts`,
    { next: `${NEXT}; they read it within 5 s, and millwright secrets keys shows it` },
  );
}
