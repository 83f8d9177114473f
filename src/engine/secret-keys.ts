import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../kernel/log.ts";
import { seconds } from "../kernel/time/duration.ts";
import { countEarlierSecrets, forgetHolder } from "../store/access/secret-keys.ts";
import type { KeyRotation } from "../store/access/secret-rotation.ts";
import type { Database, Queryable } from "../store/postgres/database.ts";
import type { Collect } from "../telemetry/metrics.ts";

const LOOK_EVERY = seconds(5);
/** Those that could not be read are tried again, and told of, so often: their key may have been put back. */
const ROUNDS_UNTIL_TRIED_AGAIN = 720;
const PAGE = 500;

export interface SecretKeyUpkeep {
  readonly db: Database;
  readonly log: Log;
  readonly secrets: KeyRotation;
  readonly replica: string;
}

/** Says which keys this replica has, follows the database to the current one, and encrypts with it what an earlier one encrypted. */
export async function runSecretKeys(options: SecretKeyUpkeep, signal: AbortSignal): Promise<void> {
  const { db, log, secrets, replica } = options;
  const told = { trouble: "", unreadable: 0 };
  for (let round = 1; !signal.aborted; round += 1) {
    try {
      if (round % ROUNDS_UNTIL_TRIED_AGAIN === 0) told.unreadable = 0;
      await secrets.followKeys(db, replica);
      if ((await countEarlierSecrets(db)) > told.unreadable) told.unreadable = await encryptAllAgain(options, signal);
      told.trouble = "";
    } catch (error) {
      const trouble = error instanceof Error ? error.message : String(error);
      if (trouble !== told.trouble)
        log.warn({ err: error }, "the secret keys could not be checked; trying again every 5 s");
      told.trouble = trouble;
    }
    await pause(LOOK_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
  }
  await forgetHolder(db, replica).catch(() => undefined); // it is taken for gone in a while anyway
}

/** How many of them no key opens. */
async function encryptAllAgain({ db, log, secrets }: SecretKeyUpkeep, signal: AbortSignal): Promise<number> {
  const [unreadable, sum] = [[] as string[], { done: 0 }];
  for (let after: string | null = ""; after !== null && !signal.aborted; ) {
    const page = await secrets.encryptAgain(db, { after, most: PAGE });
    sum.done += page.done;
    unreadable.push(...page.unreadable.map(({ message }) => message));
    after = page.last;
  }
  if (sum.done > 0) log.info({ secrets: sum.done }, "encrypted secrets again with the current key");
  if (unreadable.length > 0) {
    const what = { secrets: unreadable.length, first: unreadable.slice(0, 10) };
    log.warn(what, "secrets that cannot be read stay as they are: put the key of each back, or store it again");
  }
  return unreadable.length;
}

export const collectSecretKeys =
  (db: Queryable): Collect =>
  async () => ({ millwright_secrets_of_earlier_keys: [{ labels: {}, value: await countEarlierSecrets(db) }] });
