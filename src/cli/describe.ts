import type { Argument, Command, Option } from "commander";
import type { ServerVocabulary } from "./client/server-vocabulary.ts";
import { createProgram } from "./program.ts";

export interface OptionDescription {
  /** As help prints it: `--id, --power-shelf-id <id...>`. */
  readonly flags: string;
  /** Every spelling: `--id`, `--power-shelf-id`. */
  readonly names: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly required: boolean;
  readonly choices: readonly string[];
  readonly defaultValue: string | undefined;
}

export interface ArgumentDescription {
  /** As help prints it: `<id>`, `[id|name]`, `[id...]`. */
  readonly usage: string;
  readonly description: string;
  readonly choices: readonly string[];
}

/** A command as its grammar has it; what the reference and the completion scripts are made from. */
export interface CommandDescription {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly description: string;
  readonly arguments: readonly ArgumentDescription[];
  readonly options: readonly OptionDescription[];
  readonly commands: readonly CommandDescription[];
}

/** The tree from its root. */
export function describeCommands(vocabulary?: ServerVocabulary): CommandDescription {
  const nowhere = { write() {}, columns: 120 };
  const run = () => async () => {
    throw new Error("a description cannot be run");
  };
  return describeCommand(
    createProgram({ version: "", stdout: nowhere, stderr: nowhere, run, ...(vocabulary && { vocabulary }) }),
  );
}

export function describeCommand(command: Command): CommandDescription {
  return {
    name: command.name(),
    aliases: command.aliases(),
    description: command.description(),
    arguments: command.registeredArguments.map(describeArgument),
    options: command.options.filter((option) => !option.hidden).map(describeOption),
    commands: command.commands.map(describeCommand),
  };
}

function describeArgument(argument: Argument): ArgumentDescription {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return {
    usage: argument.required ? `<${name}>` : `[${name}]`,
    description: argument.description,
    choices: argument.argChoices ?? [],
  };
}

function describeOption(option: Option): OptionDescription {
  const hasDefault = option.defaultValue !== undefined && typeof option.defaultValue !== "boolean";
  return {
    flags: option.flags,
    names: [option.short, option.long].filter((name) => name !== undefined && name !== null),
    description: option.description,
    takesValue: option.required || option.optional,
    required: option.mandatory,
    choices: option.argChoices ?? [],
    defaultValue: hasDefault ? String(option.defaultValue) : undefined,
  };
}
