import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";
import type { SettleOptions, SettleWord } from "./settle.ts";

interface Verb {
  readonly word: SettleWord;
  readonly about: string;
  readonly more: string;
}

const VERBS: readonly Verb[] = [
  {
    word: "resume",
    about: "let parked things go on, once their machines were asked",
    more: "A machine that does not answer, or that was restarted after the backup, keeps its work parked, unless --force says otherwise.",
  },
  {
    word: "adopt",
    about: "have runs look at what is true now, without acting, and end by that",
    more: "Requests of devices are withdrawn: their state is read anyway.",
  },
  {
    word: "abandon",
    about: "end parked things without a word to any device",
    more: "What runs have begun stays as it is, and is listed on their machines.",
  },
];

export function addRestoreCommands(program: Command, run: Run): void {
  const restore = program
    .command("restore")
    .description("what becomes of the work that a restored backup believes to be under way");
  restore
    .command("review")
    .description("show how the restore was noticed, what is parked, and which revoked tokens are back")
    .action(() => run(async (session) => (await import("./review.ts")).showReview(session)));
  addListOptions(restore.command("list").description("list what was parked, and what became of it"), {
    filter: "'status=waiting AND kind=run'",
    order: "'parked_at desc'",
  }).action((options: ListOptions) =>
    run(async (session) => (await import("./review.ts")).listParked(session, options)),
  );
  for (const { word, about, more } of VERBS) {
    const command = restore
      .command(word)
      .argument(
        "[things...]",
        "as the list shows them, such as run/run-1; a run's own runs and installations go with it",
      )
      .description(about)
      .option("--all", "everything that waits; then the review ends, and devices take commands again")
      .option("--filter <filter>", "everything that waits and matches, such as 'kind=run'")
      .option(...YES_OPTION)
      .addHelpText(
        "after",
        `\n${more} Requires the role admin.\n\nExamples:\n  millwright restore ${word} run/run-1 install/m-1\n  millwright restore ${word} --all`,
      );
    if (word === "resume") command.option("--force", "also where the machine speaks against it");
    command.action((things: readonly string[], options: SettleOptions) =>
      run(async (session) => (await import("./settle.ts")).settleParked(session, { word, things }, options)),
    );
  }
  restore
    .command("end")
    .description("end the review once nothing is parked: devices take commands again")
    .addHelpText("after", "\nRequires the role admin.")
    .action(() => run(async (session) => (await import("./settle.ts")).endReview(session)));
}
