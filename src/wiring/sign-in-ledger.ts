import type { SignInAttempt, SignInLedger, SignInRejections } from "../capabilities/sign-in-ledger.ts";
import { createBatcher } from "../kernel/batcher.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import {
  findRejections,
  noteAccepted,
  noteRejected,
  openSignInDigest,
  type SignInDigest,
} from "../store/access/sign-in-ledger.ts";
import type { Database } from "../store/postgres/database.ts";

/** The ledger in the database; what many ask at once, as after a start, is asked in one query. */
export function createSignInLedger(db: Database, secrets: SecretStore, log: Log): SignInLedger {
  let opened: Promise<SignInDigest> | undefined;
  const digest = (): Promise<SignInDigest> => {
    opened ??= openSignInDigest(db, secrets).catch((error: unknown) => {
      opened = undefined; // the database may be back next time
      throw error;
    });
    return opened;
  };
  const asked = createBatcher<SignInAttempt, SignInRejections | undefined>({
    most: 500,
    atOnce: 2,
    run: async (attempts) => findRejections(db, await digest(), attempts),
  });
  const logged = (error: unknown): never => {
    log.warn({ error: messageOf(error) }, "other replicas cannot be told how a sign-in to a BMC ended");
    throw error;
  };
  return {
    rejections: (attempt) => asked.submit(attempt),
    noteRejected: async (attempt, rule) => noteRejected(db, await digest(), attempt, rule).catch(logged),
    noteAccepted: async (attempt) => noteAccepted(db, await digest(), attempt).catch(logged),
  };
}
