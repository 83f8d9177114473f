import { countUnsealed, type SealKey, sealNext } from "../../../src/store/lifecycle/seals/journal-seals.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { eventually } from "../eventually.ts";

const KEY = Buffer.alloc(32, 7);

/** For tests that need no secret store. */
export const testSealKey: SealKey = async () => KEY;

/** Until a seal covers everything; transactions of other tests on the same server may hold entries back for a moment. */
export async function sealJournal(db: Database, key: SealKey = testSealKey): Promise<void> {
  const isSealed = async () => {
    await sealNext(db, await key(), { now: new Date(), most: 5_000 });
    return (await countUnsealed(db)).entries === 0;
  };
  await eventually(isSealed, { what: "the journal is sealed" });
}
