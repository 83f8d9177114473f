import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { DescribedKind, SetOptions } from "./metadata.ts";

/** The grammar alone. */
export interface MetadataGrammar {
  /** As people call one: a power shelf. */
  readonly what: string;
  /** Such as <id|name>. */
  readonly argument: string;
  /** The command of the kind, such as power-shelf. */
  readonly command: string;
  readonly load: () => Promise<DescribedKind>;
}

/** Name, description and labels: the same verbs for devices of every kind. Returns the group, for verbs of one kind alone. */
export function addMetadataCommands(device: Command, run: Run, grammar: MetadataGrammar): Command {
  const { what, argument, load } = grammar;
  const verbs = () => import("./metadata.ts");
  const metadata = device.command("metadata").description(`name, description and labels of ${what}`);
  const command = (word: string, description: string, example = "") =>
    metadata
      .command(word)
      .argument(argument, what)
      .description(description)
      .addHelpText("after", `\nExample:\n  millwright ${grammar.command} metadata ${word} ID${example}`);
  command("show", "show them").action((id: string) =>
    run(async (session) => (await verbs()).showMetadata(session, await load(), id)),
  );
  command("set", "set name, description or both", " --description 'row 7, third from the door'")
    .option("--name <name>", "2 to 256 ASCII characters")
    .option("--description <text>", "at most 1024 characters")
    .option("--if-version-match <version>", "only if the version is still this one")
    .action((id: string, options: SetOptions) =>
      run(async (session) => (await verbs()).setMetadata(session, await load(), id, options)),
    );
  command("add-label", "add a label, or give it another value", " --key row --value 7")
    .requiredOption("--key <key>", "1 to 255 ASCII characters")
    .option("--value <value>", "at most 255 characters")
    .action((id: string, options: { key: string; value?: string }) =>
      run(async (session) => (await verbs()).addLabel(session, await load(), id, options)),
    );
  command("remove-labels", "remove labels", " --keys row")
    .requiredOption("--keys <key...>", "keys of the labels")
    .action((id: string, options: { keys: string[] }) =>
      run(async (session) => (await verbs()).removeLabels(session, await load(), id, options)),
    );
  return metadata;
}
