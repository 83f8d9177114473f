import { z } from "zod";
import { AppError } from "../kernel/errors.ts";
import type { BmcCredentials } from "./bmc-credentials.ts";
import type { Queryable, Transaction } from "./database.ts";
import type { SecretStore } from "./secrets.ts";

export interface SshCredentials {
  readonly username: string;
  readonly privateKey: string;
}

/** Never the name of a shelf's credentials, which are kept by MAC address: machine ids have no colons. */
const bmcName = (machineId: string): string => `bmc/${machineId}`;
const sshName = (machineId: string): string => `ssh/${machineId}`;

const bmcSchema = z.object({ username: z.string(), password: z.string() });
const sshSchema = z.object({ username: z.string(), privateKey: z.string() });

/** The caller holds the machine's lock. */
export const putMachineBmcCredentials = (
  tx: Transaction,
  secrets: SecretStore,
  machineId: string,
  { username, password }: BmcCredentials,
): Promise<void> => secrets.put(tx, bmcName(machineId), JSON.stringify({ username, password }));

/** The caller holds the machine's lock. */
export const putMachineSshCredentials = (
  tx: Transaction,
  secrets: SecretStore,
  machineId: string,
  { username, privateKey }: SshCredentials,
): Promise<void> => secrets.put(tx, sshName(machineId), JSON.stringify({ username, privateKey }));

/** What nobody will sign in to any more needs no credentials; the caller holds the machine's lock. */
export async function removeMachineCredentials(
  tx: Transaction,
  secrets: SecretStore,
  machineId: string,
): Promise<void> {
  await secrets.remove(tx, bmcName(machineId));
  await secrets.remove(tx, sshName(machineId));
}

/** One query for many machines; a set that is missing or unreadable is answered with its error. */
export const getMachineBmcCredentials = (
  db: Queryable,
  secrets: SecretStore,
  machineIds: readonly string[],
): Promise<(BmcCredentials | AppError)[]> =>
  getCredentials(db, secrets, machineIds, { nameOf: bmcName, what: "BMC credentials", schema: bmcSchema });

/** One query for many machines; a set that is missing or unreadable is answered with its error. */
export const getMachineSshCredentials = (
  db: Queryable,
  secrets: SecretStore,
  machineIds: readonly string[],
): Promise<(SshCredentials | AppError)[]> =>
  getCredentials(db, secrets, machineIds, { nameOf: sshName, what: "SSH credentials", schema: sshSchema });

async function getCredentials<T>(
  db: Queryable,
  secrets: SecretStore,
  machineIds: readonly string[],
  {
    nameOf,
    what,
    schema,
  }: { readonly nameOf: (id: string) => string; readonly what: string; readonly schema: z.ZodType<T> },
): Promise<(T | AppError)[]> {
  const found = await secrets.getMany(db, machineIds.map(nameOf));
  return machineIds.map((id) => {
    const next = `millwright machine set-credentials ${id}`;
    const secret = found.get(nameOf(id));
    if (secret === undefined) {
      return new AppError("failed_precondition", `there are no ${what} for machine ${id}`, { next });
    }
    if (typeof secret !== "string") return secret;
    try {
      return schema.parse(JSON.parse(secret));
    } catch {
      // Without the parser's own words: they quote what was being read.
      return new AppError("failed_precondition", `the ${what} of machine ${id} are damaged`, { next });
    }
  });
}
