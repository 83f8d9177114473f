import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printDone } from "../../terminal/printing.ts";
import { type PasswordOptions, readBmcPassword } from "../../terminal/secret-input.ts";

export interface CredentialOptions extends PasswordOptions {
  readonly bmcUsername?: string;
  readonly sshUsername?: string;
  readonly sshKeyFile?: string;
}

export async function setCredentials(
  session: Session,
  machineId: string,
  options: CredentialOptions,
): Promise<undefined> {
  const { bmcUsername, sshUsername, sshKeyFile } = options;
  if (bmcUsername === undefined && sshUsername === undefined)
    throw new UsageError(
      "no credentials are given",
      "give --bmc-username, or --ssh-username with --ssh-key-file, or both",
    );
  if ((sshUsername === undefined) !== (sshKeyFile === undefined))
    throw new UsageError("--ssh-username and --ssh-key-file belong together");
  const sshPrivateKey = sshKeyFile === undefined ? "" : readKey(sshKeyFile);
  const bmcPassword = bmcUsername === undefined ? "" : ((await readBmcPassword(session, options, "required")) ?? "");
  const client = await session.client(MachineLifecycleService);
  await client.setMachineCredentials(
    { machineId, bmcUsername: bmcUsername ?? "", bmcPassword, sshUsername: sshUsername ?? "", sshPrivateKey },
    { signal: session.signal },
  );
  await printDone(session, `Credentials of machine ${machineId} set.`, { machine_id: machineId });
}

function readKey(file: string): string {
  const text = readTextFile(file);
  if (text === undefined) throw new UsageError(`--ssh-key-file: ${file} does not exist`);
  return text;
}
