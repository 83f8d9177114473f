import { exitCodes } from "../../src/cli/client/errors.ts";
import { type CommandDescription, describeCommands, type OptionDescription } from "../../src/cli/describe.ts";
import { cliVocabulary } from "./cli-vocabulary.ts";
import { anchor, code, page, pageHead, table } from "./markdown.ts";

/** Every command with its arguments and options, from the grammar that parses them. */
export function cliPage(): string {
  // From the tables as they are now: what was generated from them may be older.
  const program = describeCommands(cliVocabulary());
  const leaves = leavesOf(program, []);
  return page(
    pageHead("Command line", "the grammar in `src/cli`"),
    `${program.description}.`,
    table(
      ["Command", "What it does"],
      leaves.map(({ words, command }) => {
        const heading = words.join(" ");
        return [`[${code(heading)}](${anchor(heading)})`, command.description];
      }),
    ),
    "## Exit codes",
    table(
      ["Code", "Meaning"],
      exitCodes().map(([exitCode, meaning]) => [code(String(exitCode)), meaning]),
    ),
    "## Options of every command",
    "But for `dev`, `serve`, `sim` and `config check`, which ask no server: those take the settings that are listed with them.",
    optionsTable(program.options),
    leaves.map(({ words, command, aliases }) => section(words, command, aliases)),
  );
}

interface Leaf {
  readonly words: readonly string[];
  readonly command: CommandDescription;
  /** For each word that has some: the others that stand for it. */
  readonly aliases: readonly string[];
}

function leavesOf(
  command: CommandDescription,
  before: readonly string[],
  aliasesBefore: readonly string[] = [],
): Leaf[] {
  const words = [...before, command.name];
  const own = command.aliases.map((alias) => `${code(alias)} for ${code(command.name)}`);
  const aliases = [...aliasesBefore, ...own];
  if (command.commands.length > 0) return command.commands.flatMap((next) => leavesOf(next, words, aliases));
  return [{ words, command, aliases }];
}

function section(words: readonly string[], command: CommandDescription, aliases: readonly string[]): string {
  const usage = [...words, ...command.arguments.map((argument) => argument.usage)];
  if (command.options.length > 0) usage.push("[options]");
  return page(
    `## ${words.join(" ")}`,
    `\`\`\`\n${usage.join(" ")}\n\`\`\``,
    `${sentence(command.description)}${aliases.length > 0 ? ` Aliases: ${aliases.join(", ")}.` : ""}`,
    command.arguments.some(({ description }) => description !== "")
      ? table(
          ["Argument", "Meaning"],
          command.arguments.map(({ usage: name, description, choices }) => [code(name), description + among(choices)]),
        )
      : "",
    optionsTable(command.options),
  );
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
const among = (choices: readonly string[]): string =>
  choices.length > 0 ? ` (one of ${choices.map(code).join(", ")})` : "";

function optionsTable(options: readonly OptionDescription[]): string {
  if (options.length === 0) return "";
  const rows = options.map(({ flags, description, required, choices, defaultValue }) => {
    const about = [
      ...(required ? ["required"] : []),
      ...(choices.length > 0 ? [`one of ${choices.map(code).join(", ")}`] : []),
      ...(defaultValue !== undefined ? [`by default ${code(defaultValue)}`] : []),
    ];
    return [code(flags), description + (about.length > 0 ? ` (${about.join("; ")})` : "")];
  });
  return table(["Option", "Meaning"], rows);
}
