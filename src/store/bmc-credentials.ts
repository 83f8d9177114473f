import { z } from "zod";
import { AppError } from "../kernel/errors.ts";
import type { Queryable } from "./database.ts";
import type { SecretStore } from "./secrets.ts";

export interface BmcCredentials {
  readonly username: string;
  readonly password: string;
}

/** One set of credentials a BMC, whichever things speak of it. */
export const credentialName = (mac: string): string => `bmc/${mac}`;

const schema = z.object({ username: z.string(), password: z.string() });

export async function putBmcCredentials(
  tx: Queryable,
  secrets: SecretStore,
  mac: string,
  credentials: BmcCredentials,
): Promise<void> {
  await secrets.put(tx, credentialName(mac), JSON.stringify(credentials));
}

/** One query for many BMCs; a set that is missing or unreadable is answered with its error. */
export async function getBmcCredentials(
  db: Queryable,
  secrets: SecretStore,
  macs: readonly string[],
): Promise<(BmcCredentials | AppError)[]> {
  const found = await secrets.getMany(db, macs.map(credentialName));
  return macs.map((mac) => {
    const secret = found.get(credentialName(mac));
    if (secret === undefined) return new AppError("failed_precondition", `there are no credentials for the BMC ${mac}`);
    return typeof secret === "string" ? schema.parse(JSON.parse(secret)) : secret;
  });
}
