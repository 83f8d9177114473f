import { randomBytes } from "node:crypto";
import type { Database } from "../postgres/database.ts";
import type { SecretStore } from "./secrets.ts";

/**
 * A key that all replicas of a site share, made by the first that needs it. It lies encrypted among the secrets, so that it survives a
 * change of the secret key.
 */
export async function siteKey(db: Database, secrets: SecretStore, name: string): Promise<Buffer> {
  return Buffer.from((await secrets.get(db, name)) ?? (await makeKey(db, secrets, name)), "base64");
}

function makeKey(db: Database, secrets: SecretStore, name: string): Promise<string> {
  return db.transaction(async (tx) => {
    await tx.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [name]);
    const made = await secrets.get(tx, name);
    if (made !== undefined) return made;
    const key = randomBytes(32).toString("base64");
    await secrets.put(tx, name, key);
    return key;
  });
}
