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
  const { sshUsername, sshKeyFile } = options;
  if ((sshUsername === undefined) !== (sshKeyFile === undefined))
    throw new UsageError("--ssh-username and --ssh-key-file belong together");
  const bmcUsername = options.bmcUsername ?? (sshUsername === undefined ? await askBmcUsername(session) : undefined);
  const sshPrivateKey = sshKeyFile === undefined ? "" : readKey(sshKeyFile);
  const bmcPassword = bmcUsername === undefined ? "" : ((await readBmcPassword(session, options, "required")) ?? "");
  const client = await session.client(MachineLifecycleService);
  await client.setMachineCredentials(
    { machineId, bmcUsername: bmcUsername ?? "", bmcPassword, sshUsername: sshUsername ?? "", sshPrivateKey },
    { signal: session.signal },
  );
  await printDone(session, `Credentials of machine ${machineId} set.`, { machine_id: machineId });
}

/** Without any option it is the account of the BMC that is given, and asked for. */
async function askBmcUsername({ terminal: { stdin, stderr } }: Session): Promise<string> {
  if (!stdin.isTTY || !stderr.isTTY)
    throw new UsageError(
      "no credentials are given",
      "give --bmc-username, or --ssh-username with --ssh-key-file, or both; at a terminal, the BMC account is asked for",
    );
  const name = (await stdin.ask("BMC user name: ", { hidden: false })).trim();
  if (name === "") throw new UsageError("the BMC user name is empty; nothing was changed");
  return name;
}

function readKey(file: string): string {
  const text = readTextFile(file);
  if (text === undefined) throw new UsageError(`--ssh-key-file: ${file} does not exist`);
  return text;
}
