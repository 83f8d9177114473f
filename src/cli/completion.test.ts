import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { runAgainst } from "../../test/support/cli/fake-terminal.ts";
import { completionScript } from "./completion.ts";
import { type CommandDescription, describeCommands } from "./describe.ts";

const root = describeCommands();
const flatten = (
  command: CommandDescription,
  path: readonly string[] = [],
): { path: readonly string[]; command: CommandDescription }[] => [
  { path, command },
  ...command.commands.flatMap((child) => flatten(child, [...path, child.name])),
];

/** What bash offers for the last word. */
function offered(...words: string[]): string[] {
  const script = `${completionScript("bash", root)}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _millwright; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync("bash", ["-s", "millwright", ...words], { input: script, encoding: "utf8" })
    .split("\n")
    .filter((line) => line !== "");
}

test("bash offers every command and option of the tree", () => {
  const paths = flatten(root).filter(({ command }) => command.commands.length > 0);
  for (const { path, command } of paths) {
    expect(offered(...path, "")).toEqual(expect.arrayContaining(command.commands.map(({ name }) => name)));
  }
  expect(offered("ps", "fix", "power-on", "--")).toEqual(
    expect.arrayContaining(["--power-shelf-id", "--id", "--reference", "--ref", "--wait", "--output"]),
  );
});

test.each([
  [["po"], ["power-shelf"]],
  [
    ["ps", "fix", "power"],
    ["power-on", "power-off"],
  ],
  [
    ["ps", "list", "--deleted", ""],
    ["exclude", "only", "include"],
  ],
  [["ps", "list", "-o", "y"], ["yaml"]],
  [["completion", "f"], ["fish"]],
  [["serve", "--http-l"], ["--http-listen"]],
  [["config", "c"], ["check"]],
  [
    ["config", "check", "--profile", ""],
    ["serve", "dev"],
  ],
  [["dev", "--log-format", "j"], ["json"]],
  [["ps", "list", "--rack", ""], []],
])("bash completes %j with %j", (words, expected) => {
  expect(offered(...words)).toEqual(expected);
});

test("zsh and fish scripts name every command", () => {
  for (const shell of ["zsh", "fish"] as const) {
    const script = completionScript(shell, root);
    for (const { path } of flatten(root)) expect(script).toContain(`'/${path.join("/")}'`.replace("'/'", "''"));
  }
});

test("millwright completion prints the script, and refuses other shells", async () => {
  expect((await runAgainst(() => {}, "completion bash")).out).toContain(
    "complete -o default -F _millwright millwright",
  );
  expect((await runAgainst(() => {}, "completion csh")).code).toBe(2);
});

test("every command, argument and option of the tree is described", () => {
  for (const { path, command } of flatten(root)) {
    expect(command.description, path.join(" ")).not.toBe("");
    for (const { flags, description } of command.options)
      expect(description, `${path.join(" ")} ${flags}`).not.toBe("");
    for (const { usage, description } of command.arguments)
      expect(description, `${path.join(" ")} ${usage}`).not.toBe("");
  }
});
