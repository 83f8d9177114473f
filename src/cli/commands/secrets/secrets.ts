import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { RotateOptions } from "./rotate.ts";

export function addSecretsCommands(program: Command, run: Run): void {
  const secrets = program
    .command("secrets")
    .description("the keys that passwords and other secrets are encrypted with");
  secrets
    .command("keys")
    .description("list the keys by their ids: which encrypts, which replicas have it, and which can be removed")
    .addHelpText("after", "\nRequires the role admin. The keys themselves are never shown.")
    .action(() => run(async (session) => (await import("./rotate.ts")).listKeys(session)));
  secrets
    .command("new-key")
    .argument("<file>", "the key file (secret_key_file), on this host")
    .description("add a line with a new key to a key file; it does not encrypt until rotate-key")
    .addHelpText(
      "after",
      "\nCalls no server. All replicas need the same line: copy the file to the host of each, and to its backup.\n\nExample:\n  millwright secrets new-key /etc/millwright/secret-key",
    )
    .action((file: string) => run(async (session) => (await import("./key-file.ts")).addKey(session, file)));
  secrets
    .command("rotate-key")
    .description("encrypt with the newest key of the key files from now on, and encrypt again what is there")
    .option("--key <id>", "with this key, as `secrets keys` shows it")
    .option("--wait", "until all secrets are encrypted with it")
    .addHelpText(
      "after",
      "\nRequires the role admin. All replicas go on serving, and change the key at the same moment.\n\nExample:\n  millwright secrets new-key /etc/millwright/secret-key && millwright secrets rotate-key --wait",
    )
    .action((options: RotateOptions) =>
      run(async (session) => (await import("./rotate.ts")).rotateKey(session, options)),
    );
}
