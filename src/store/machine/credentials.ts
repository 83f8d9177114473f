import { z } from "zod";
import type { CredentialPlace } from "../../capabilities/credential-place.ts";
import { AppError } from "../../kernel/errors.ts";
import { bmcPlaceOf, sshPlaceOf } from "../../lifecycles/machine/endpoint.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { givesCredentials, hasNoCredentials } from "../../runs/model/sign-ins.ts";
import { ENDPOINT_NAMES, type Endpoint } from "../../runs/model/targets.ts";
import { type Bound, NotForThisAddress, type SecretStore } from "../access/secrets.ts";
import type { BmcCredentials } from "../device/bmc-credentials.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export interface SshCredentials {
  readonly username: string;
  readonly privateKey: string;
}

/** Never the name of a shelf's credentials, which are kept by MAC address: machine ids have no colons. */
const nameOf = (endpoint: Endpoint, machineId: string): string => `${endpoint}/${machineId}`;

const bmcSchema = z.object({ username: z.string(), password: z.string() });
const sshSchema = z.object({ username: z.string(), privateKey: z.string() });

type Reached = Pick<Machine, "id" | "spec">;

/** The caller holds the machine's lock. They are for the place where its BMC is on record now. */
export const putMachineBmcCredentials = (
  tx: Transaction,
  secrets: SecretStore,
  machine: Reached,
  { username, password }: BmcCredentials,
): Promise<void> => secrets.putFor(tx, bmcOf(machine), JSON.stringify({ username, password }));

const bmcOf = (machine: Reached): Bound => ({ name: nameOf("bmc", machine.id), place: bmcPlaceOf(machine) });

const sshOf = (machine: Reached): Bound => ({ name: nameOf("ssh", machine.id), place: sshPlaceOf(machine) });

/** The caller holds the machine's lock. They are for the place where its system is on record now. */
export const putMachineSshCredentials = (
  tx: Transaction,
  secrets: SecretStore,
  machine: Reached,
  { username, privateKey }: SshCredentials,
): Promise<void> => secrets.putFor(tx, sshOf(machine), JSON.stringify({ username, privateKey }));

/**
 * The owner has said where the system is now. The caller holds the machine's lock.
 *
 * `isSame`: it is the same system at its new address, so that the credentials are for that. Otherwise they stay where they are, with the
 * host key that was seen there. Returns the key that was seen at the new place, where they are for that.
 */
export async function moveSshCredentials(
  tx: Transaction,
  machineId: string,
  { from, to, isSame, pin }: SshMoved,
): Promise<string | null> {
  const name = nameOf("ssh", machineId);
  const [kept] = await tx.query<{ bound_to: string; bound_pin: string | null }>(
    "select bound_to, bound_pin from secrets where name = $1 and bound_nonce = nonce and bound_to = any($2)",
    [name, [from, to]],
  );
  if (kept === undefined) return null;
  const isBack = kept.bound_to === to;
  await tx.execute("update secrets set bound_to = $2, bound_pin = $3 where name = $1", [
    name,
    isSame ? to : kept.bound_to,
    isBack || isSame ? null : (pin ?? kept.bound_pin),
  ]);
  failPoint("machine-credentials:moved");
  return isBack ? kept.bound_pin : null;
}

export interface SshMoved {
  readonly from: CredentialPlace;
  readonly to: CredentialPlace;
  readonly isSame: boolean;
  /** The key that was seen first at the place that the machine leaves. */
  readonly pin: string | null;
}

/** What nobody will sign in to any more needs no credentials; the caller holds the machine's lock. */
export async function removeMachineCredentials(
  tx: Transaction,
  secrets: SecretStore,
  machineId: string,
): Promise<void> {
  await secrets.remove(tx, nameOf("bmc", machineId));
  await secrets.remove(tx, nameOf("ssh", machineId));
}

/** Credentials of a BMC, and the certificate that it must show where the machine's record has no pin any more. */
export interface PinnedBmcCredentials extends BmcCredentials {
  readonly pin?: string;
}

/**
 * One query for many machines: the credentials of those whose BMC is where they were given for. A set that is missing, unreadable or
 * for another address is answered with its error.
 */
export async function getMachineBmcCredentials(
  db: Queryable,
  secrets: SecretStore,
  machines: readonly Reached[],
): Promise<(PinnedBmcCredentials | AppError)[]> {
  const opened = await secrets.openFor(db, machines.map(bmcOf));
  return machines.map(({ id }, index) => {
    const found = opened[index];
    const parsed = parseSecret(id, "bmc", bmcSchema, found instanceof AppError ? found : found?.plaintext);
    if (parsed instanceof AppError || found === undefined || found instanceof AppError || found.pin === null)
      return parsed;
    return { ...parsed, pin: found.pin };
  });
}

/**
 * The same for their systems. A private key leaves by no connection; what is sent over a connection that it opens does: join material,
 * scripts and their secrets.
 */
export async function getMachineSshCredentials(
  db: Queryable,
  secrets: SecretStore,
  machines: readonly Reached[],
): Promise<(SshCredentials | AppError)[]> {
  const opened = await secrets.openFor(db, machines.map(sshOf));
  return machines.map(({ id }, index) => {
    const found = opened[index];
    return parseSecret(id, "ssh", sshSchema, found instanceof AppError ? found : found?.plaintext);
  });
}

/** Where nothing is sent to the place that is on record: to write its public half into an installation, or for another place that is known. */
export async function getSshKeyElsewhere(
  db: Queryable,
  secrets: SecretStore,
  machineId: string,
): Promise<SshCredentials | AppError> {
  const name = nameOf("ssh", machineId);
  return parseSecret(machineId, "ssh", sshSchema, (await secrets.getManyUnsent(db, [name])).get(name));
}

function parseSecret<T>(
  id: string,
  endpoint: Endpoint,
  schema: z.ZodType<T>,
  secret: string | AppError | undefined,
): T | AppError {
  const next = givesCredentials(id, [endpoint]);
  if (secret === undefined) return new AppError("failed_precondition", hasNoCredentials(id, endpoint), { next });
  const what = `the ${ENDPOINT_NAMES[endpoint]} credentials of machine ${id}`;
  if (secret instanceof NotForThisAddress) return secret.about(what, next);
  if (typeof secret !== "string") return secret;
  try {
    return schema.parse(JSON.parse(secret));
  } catch {
    // Without the parser's own words: they quote what was being read.
    return new AppError("failed_precondition", `${what} are damaged`, { next });
  }
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
