import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import { givesCredentials, hasNoCredentials } from "../../runs/model/sign-ins.ts";
import { ENDPOINT_NAMES, type Endpoint } from "../../runs/model/targets.ts";
import type { SecretStore } from "../access/secrets.ts";
import type { BmcCredentials } from "../device/bmc-credentials.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";

export interface SshCredentials {
  readonly username: string;
  readonly privateKey: string;
}

/** Never the name of a shelf's credentials, which are kept by MAC address: machine ids have no colons. */
const nameOf = (endpoint: Endpoint, machineId: string): string => `${endpoint}/${machineId}`;

const bmcSchema = z.object({ username: z.string(), password: z.string() });
const sshSchema = z.object({ username: z.string(), privateKey: z.string() });

/** The caller holds the machine's lock. */
export const putMachineBmcCredentials = (
  tx: Transaction,
  secrets: SecretStore,
  machineId: string,
  { username, password }: BmcCredentials,
): Promise<void> => secrets.put(tx, nameOf("bmc", machineId), JSON.stringify({ username, password }));

/** The caller holds the machine's lock. */
export const putMachineSshCredentials = (
  tx: Transaction,
  secrets: SecretStore,
  machineId: string,
  { username, privateKey }: SshCredentials,
): Promise<void> => secrets.put(tx, nameOf("ssh", machineId), JSON.stringify({ username, privateKey }));

/** What nobody will sign in to any more needs no credentials; the caller holds the machine's lock. */
export async function removeMachineCredentials(
  tx: Transaction,
  secrets: SecretStore,
  machineId: string,
): Promise<void> {
  await secrets.remove(tx, nameOf("bmc", machineId));
  await secrets.remove(tx, nameOf("ssh", machineId));
}

/** One query for many machines; a set that is missing or unreadable is answered with its error. */
export const getMachineBmcCredentials = (
  db: Queryable,
  secrets: SecretStore,
  machineIds: readonly string[],
): Promise<(BmcCredentials | AppError)[]> => getCredentials(db, secrets, machineIds, "bmc", bmcSchema);

/** One query for many machines; a set that is missing or unreadable is answered with its error. */
export const getMachineSshCredentials = (
  db: Queryable,
  secrets: SecretStore,
  machineIds: readonly string[],
): Promise<(SshCredentials | AppError)[]> => getCredentials(db, secrets, machineIds, "ssh", sshSchema);

async function getCredentials<T>(
  db: Queryable,
  secrets: SecretStore,
  machineIds: readonly string[],
  endpoint: Endpoint,
  schema: z.ZodType<T>,
): Promise<(T | AppError)[]> {
  const found = await secrets.getMany(
    db,
    machineIds.map((id) => nameOf(endpoint, id)),
  );
  return machineIds.map((id) => {
    const next = givesCredentials(id, [endpoint]);
    const secret = found.get(nameOf(endpoint, id));
    if (secret === undefined) return new AppError("failed_precondition", hasNoCredentials(id, endpoint), { next });
    if (typeof secret !== "string") return secret;
    try {
      return schema.parse(JSON.parse(secret));
    } catch {
      // Without the parser's own words: they quote what was being read.
      const what = `the ${ENDPOINT_NAMES[endpoint]} credentials of machine ${id} are damaged`;
      return new AppError("failed_precondition", what, { next });
    }
  });
}

/** Credentials of a machine, by where they are for. */
export interface MachineSignIn {
  readonly machineId: string;
  readonly endpoint: Endpoint;
}

/** Whether each of them is on record: one query for all, and none for nothing. What they are stays in the store. */
export async function findMachineCredentials(
  db: Queryable,
  secrets: SecretStore,
  signIns: readonly MachineSignIn[],
): Promise<(signIn: MachineSignIn) => boolean> {
  const names = new Set(signIns.map(({ endpoint, machineId }) => nameOf(endpoint, machineId)));
  const found = await secrets.findNames(db, [...names]);
  return ({ endpoint, machineId }) => found.has(nameOf(endpoint, machineId));
}
