import { signInEndpoint } from "../../capabilities/sign-in-ledger.ts";
import { AppError } from "../../kernel/errors.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import { bmcTargetOf } from "../../runs/model/targets.ts";
import { liftSignInStop } from "../../store/access/sign-in-ledger.ts";
import type { BmcCredentials } from "../../store/device/bmc-credentials.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import {
  putMachineBmcCredentials,
  putMachineSshCredentials,
  type SshCredentials,
} from "../../store/machine/credentials.ts";
import { listMachines, type MachineRecord } from "../../store/machine/machines.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { givenSecret, storedSecret } from "../call/given-secret.ts";
import { doneBy } from "../call/initiator.ts";
import { MACHINE_KIND, machineKey, refuseRetired, unknownMachine } from "./machines.ts";
import { wakeWithRuns } from "./wake.ts";

export interface SetMachineCredentials {
  readonly machineId: string;
  readonly bmcUsername: string;
  readonly bmcPassword: string;
  readonly sshUsername: string;
  readonly sshPrivateKey: string;
}

const LONGEST = { username: 256, password: 256, key: 16_384 } as const;

/** What is left empty stays as it is. No message of this repeats what it was given. */
export async function setMachineCredentials(
  deps: ServiceDeps,
  caller: Caller,
  input: SetMachineCredentials,
): Promise<void> {
  const id = parseMachineId(input.machineId, "machine_id");
  const bmcPassword = await storedSecret(deps, caller, input.bmcPassword, "bmc_password");
  const bmc = checkBmcAccount({ ...input, bmcPassword });
  const hasSsh = checkPair([input.sshUsername, "ssh_username"], [input.sshPrivateKey, "ssh_private_key", LONGEST.key]);
  const key = hasSsh ? await givenSecret(deps, caller, input.sshPrivateKey, "ssh_private_key") : undefined;
  if (key) checkPrivateKey(key.value);
  if (bmc === null && !hasSsh) {
    throw new AppError(
      "invalid_argument",
      "bmc_username: no credentials are given; give BMC credentials, SSH credentials or both",
      {
        field: "bmc_username",
      },
    );
  }
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [machineKey(id)]);
    const [machine] = await listMachines(tx, { ids: [id] });
    if (!machine) throw unknownMachine(id);
    refuseRetired(machine);
    const ssh = key ? { username: input.sshUsername, privateKey: key.stored } : null;
    await putCredentials(tx, deps, caller, { machine, bmc, ssh });
  });
}

/** What is null stays as it is; the caller holds the machine's lock. */
export async function putCredentials(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  given: {
    readonly machine: MachineRecord;
    readonly bmc: BmcCredentials | null;
    readonly ssh: SshCredentials | null;
  },
): Promise<void> {
  const { machine, bmc, ssh } = given;
  const { id } = machine;
  if (bmc !== null) {
    await putMachineBmcCredentials(tx, deps.secrets, machine, bmc);
    if (machine.spec.bmc !== null) await liftSignInStop(tx, [signInEndpoint(bmcTargetOf(machine, bmc))]);
  }
  if (ssh !== null) await putMachineSshCredentials(tx, deps.secrets, machine, ssh);
  await recordChange(tx, storeOf(deps.stores, MACHINE_KIND), {
    id,
    type: "credentials_changed",
    ...doneBy(caller),
    data: { bmc: bmc !== null, ssh: ssh !== null },
    set: {},
  });
  await wakeWithRuns(tx, id);
}

/** Both fields or neither; null: neither is given. */
export function checkBmcAccount({
  bmcUsername: username,
  bmcPassword: password,
}: Pick<SetMachineCredentials, "bmcUsername" | "bmcPassword">): BmcCredentials | null {
  return checkPair([username, "bmc_username"], [password, "bmc_password", LONGEST.password])
    ? { username, password }
    : null;
}

/** Both or neither; whether they are there. */
function checkPair(
  [name, nameField]: readonly [string, string],
  [secret, secretField, longest]: readonly [string, string, number],
): boolean {
  if (name === "" && secret === "") return false;
  const missing = name === "" ? nameField : secret === "" ? secretField : undefined;
  if (missing !== undefined) {
    const other = missing === nameField ? secretField : nameField;
    throw new AppError("invalid_argument", `${missing}: is required together with ${other}`, { field: missing });
  }
  refuseLong(name, nameField, LONGEST.username);
  refuseLong(secret, secretField, longest);
  return true;
}

function refuseLong(text: string, field: string, most: number): void {
  if (text.length > most) throw new AppError("invalid_argument", `${field}: at most ${most} characters`, { field });
}

const PEM = /^\s*-----BEGIN ([A-Z ]*)PRIVATE KEY-----\r?\n([\s\S]+?)-----END \1PRIVATE KEY-----\s*$/;
/** The magic word of OpenSSH's format, and the cipher that means "none". */
const OPENSSH_PLAIN = Buffer.from("openssh-key-v1\0\0\0\0\x04none", "latin1");

/** A key with a passphrase would be found useless only when a run needs it. */
function checkPrivateKey(text: string): void {
  const field = "ssh_private_key";
  const [, kind = "", body = ""] = PEM.exec(text) ?? [];
  if (body === "") {
    throw new AppError("invalid_argument", `${field}: is not a private key in OpenSSH's or PEM format`, { field });
  }
  const isOpenssh = kind === "OPENSSH ";
  const isLocked = isOpenssh
    ? !Buffer.from(body, "base64").subarray(0, OPENSSH_PLAIN.length).equals(OPENSSH_PLAIN)
    : kind.includes("ENCRYPTED") || body.includes("ENCRYPTED");
  if (isLocked) {
    const why = "has a passphrase or is damaged; give a private key without a passphrase";
    throw new AppError("invalid_argument", `${field}: ${why}`, { field });
  }
}
