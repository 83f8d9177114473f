import type { CommandDescription, OptionDescription } from "./describe.ts";

/** One place in the command tree, with all that can be typed there. */
interface Place {
  /** "" for the root, "/power-shelf/maintenance" for a command below. */
  readonly path: string;
  readonly command: CommandDescription;
}

/** A completion script for a shell, made from the command tree: it cannot forget a command, an option or a choice. */
export function completionScript(shell: "bash" | "zsh" | "fish", root: CommandDescription): string {
  const places = placesOf(root, "");
  return { bash, zsh, fish }[shell](root, places);
}

const placesOf = (command: CommandDescription, path: string): Place[] => [
  { path, command },
  ...command.commands.flatMap((child) => placesOf(child, `${path}/${child.name}`)),
];

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const optionNames = (options: readonly OptionDescription[]): string[] => options.flatMap(({ names }) => names);
const wantsFile = ({ flags }: OptionDescription): boolean => /<(file|dir)>/.test(flags);
const choicesOf = ({ command }: Place): readonly string[] => command.arguments.flatMap(({ choices }) => choices);

/** `case` arms that walk from a place to the one below that a word names. */
function steps(places: readonly Place[], indent: string): string {
  return places
    .flatMap(({ path, command }) =>
      command.commands.map(
        (child) =>
          `${indent}${[child.name, ...child.aliases].map((word) => quote(`${path}/${word}`)).join("|")}) at=${quote(`${path}/${child.name}`)} ;;`,
      ),
    )
    .join("\n");
}

/** The options that can be given at a place; the root's can be given everywhere. */
const optionsAt = (root: CommandDescription, { path, command }: Place): readonly OptionDescription[] =>
  path === "" ? root.options : [...command.options, ...root.options];

function bash(root: CommandDescription, places: readonly Place[]): string {
  const words = places.map((place) => {
    const all = [
      ...place.command.commands.map(({ name }) => name),
      ...choicesOf(place),
      ...optionNames(optionsAt(root, place)),
      "--help",
    ];
    return `    ${quote(place.path)}) words=${quote(all.join(" "))} ;;`;
  });
  return `# bash completion for millwright
_millwright() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at/\${COMP_WORDS[i]}" in
${steps(places, "      ")}
    esac
  done
  COMPREPLY=()
  case "$at $prev" in
${valueArms(places, (choices) => `COMPREPLY=($(compgen -W ${quote(choices.join(" "))} -- "$cur")); return`, 'COMPREPLY=($(compgen -f -- "$cur")); return', "return")}
  esac
  case "$at" in
${words.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _millwright millwright
`;
}

/** `case` arms for the word after an option that takes a value. */
function valueArms(
  places: readonly Place[],
  choose: (choices: readonly string[]) => string,
  file: string,
  other: string,
): string {
  return places
    .flatMap(({ path, command }) =>
      command.options
        .filter(({ takesValue }) => takesValue)
        .map((option) => {
          // The root's options follow any command.
          const patterns = option.names.map((name) =>
            path === "" ? `*${quote(` ${name}`)}` : quote(`${path} ${name}`),
          );
          const then = option.choices.length > 0 ? choose(option.choices) : wantsFile(option) ? file : other;
          return `    ${patterns.join("|")}) ${then} ;;`;
        }),
    )
    .join("\n");
}

function zsh(root: CommandDescription, places: readonly Place[]): string {
  const described = (name: string, description: string) => quote(`${name.replaceAll(":", "\\:")}:${description}`);
  const arms = places.map((place) => {
    const commands = place.command.commands.map(({ name, description }) => described(name, description));
    const options = optionsAt(root, place).flatMap((option) =>
      option.names.map((name) => described(name, option.description)),
    );
    return `    ${quote(place.path)}) commands=(${[...commands, ...choicesOf(place).map(quote)].join(" ")}); options=(${[...options, described("--help", "show help")].join(" ")}) ;;`;
  });
  return `#compdef millwright
_millwright() {
  local at= word prev=\${words[CURRENT-1]}
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at/$word" in
${steps(places, "      ")}
    esac
  done
  case "$at $prev" in
${valueArms(places, (choices) => `compadd -- ${choices.map(quote).join(" ")}; return`, "_files; return", "return")}
  esac
  case "$at" in
${arms.join("\n")}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe option options
  else
    _describe command commands
  fi
}
if [[ \${funcstack[1]} == _millwright ]]; then _millwright "$@"; else compdef _millwright millwright; fi
`;
}

function fish(root: CommandDescription, places: readonly Place[]): string {
  const fishQuote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const walk = places.flatMap(({ path, command }) =>
    command.commands.map(
      (child) =>
        `      case ${[child.name, ...child.aliases].map((word) => fishQuote(`${path}/${word}`)).join(" ")}\n        set at ${fishQuote(`${path}/${child.name}`)}`,
    ),
  );
  const optionLine = (condition: string, option: OptionDescription) =>
    `complete -c millwright${condition}${option.names.map((name) => (name.startsWith("--") ? ` -l ${name.slice(2)}` : ` -s ${name.slice(1)}`)).join("")}` +
    `${option.takesValue ? (wantsFile(option) ? " -r -F" : " -x") : ""}${option.choices.length > 0 ? ` -a ${fishQuote(option.choices.join(" "))}` : ""} -d ${fishQuote(option.description)}`;
  const lines = places.flatMap((place) => {
    const condition = ` -n ${fishQuote(`__millwright_at "${place.path}"`)}`;
    return [
      ...place.command.commands.map(
        ({ name, description }) =>
          `complete -c millwright${condition} -a ${fishQuote(name)} -d ${fishQuote(description)}`,
      ),
      ...choicesOf(place).map((choice) => `complete -c millwright${condition} -a ${fishQuote(choice)}`),
      ...(place.path === "" ? [] : place.command.options.map((option) => optionLine(condition, option))),
    ];
  });
  return `# fish completion for millwright
function __millwright_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    switch "$at/$word"
${walk.join("\n")}
    end
  end
  test "$at" = "$argv[1]"
end
complete -c millwright -f
${root.options.map((option) => optionLine("", option)).join("\n")}
complete -c millwright -s h -l help -d 'show help'
${lines.join("\n")}
`;
}
