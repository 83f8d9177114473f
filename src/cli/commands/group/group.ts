import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";

export interface GroupOptions {
  readonly name?: string;
  readonly description?: string;
  readonly parent?: string;
  readonly workflow?: string;
  readonly autoProvision?: Choice;
  readonly autoPromote?: Choice;
}

/** What a group says itself, or leaves to the next one above. */
const CHOICES = ["yes", "no", "inherit"] as const;
export type Choice = (typeof CHOICES)[number];

const load = () => import("./manage.ts");

/** `group …`: nodes that are treated alike. */
export function addGroupCommands(program: Command, run: Run): void {
  const group = program
    .command("group")
    .description("nested groups of nodes: what they install, and what happens without approval");
  group
    .command("list")
    .description("list groups, parents before their children")
    .option("--parent <group>", "only the groups directly below this one, by id or name")
    .option("--roots", "only groups at the top")
    .action((options: { parent?: string; roots?: boolean }) =>
      run(async (session) => (await load()).listGroups(session, options)),
    );
  group
    .command("show")
    .argument("<group>", "a group, by id or name")
    .description("show a group with what it inherits")
    .action((word: string) => run(async (session) => (await load()).showGroup(session, word)));
  withOptions(group.command("create").argument("<name>", "what people call it").description("make a group")).action(
    (name: string, options: GroupOptions) => run(async (session) => (await load()).createGroup(session, name, options)),
  );
  withOptions(
    group
      .command("set")
      .argument("<group>", "a group, by id or name")
      .description("change a group; an empty value clears a field")
      .option("--name <name>", "another name"),
  ).action((word: string, options: GroupOptions) =>
    run(async (session) => (await load()).setGroup(session, word, options)),
  );
  group
    .command("delete")
    .argument("<group>", "a group that is empty, by id or name")
    .description("delete a group")
    .option(...YES_OPTION)
    .action((word: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteGroup(session, word, options)),
    );
}

const withOptions = (command: Command): Command =>
  command
    .option("--description <text>", "what it is for")
    .option("--parent <group>", "the group that it is in, by id or name")
    .option("--workflow <id>", "what its nodes are installed with, unless they have their own")
    .addOption(new Option("--auto-provision <choice>", "approve machines at their first boot").choices(CHOICES))
    .addOption(
      new Option("--auto-promote <choice>", "take nodes from installed to active when they report first_boot").choices(
        CHOICES,
      ),
    );
