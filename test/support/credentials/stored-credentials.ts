import type { SecretStore } from "../../../src/store/access/secrets.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";

/** What is kept for the BMC of a machine (by its id) or of a device (by its MAC address), wherever it may be sent. */
export async function storedBmcCredentials(
  db: Queryable,
  secrets: SecretStore,
  owner: string,
): Promise<{ readonly username: string; readonly password: string } | undefined> {
  const secret = (await secrets.getManyUnsent(db, [`bmc/${owner}`])).get(`bmc/${owner}`);
  return typeof secret === "string" ? JSON.parse(secret) : undefined;
}
