import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { positiveNumber } from "../event/history.ts";
import type { CountOptions } from "./count.ts";

export function addTopCommands(program: Command, run: Run): void {
  program
    .command("top")
    .argument("[kind...]", "only these kinds, such as machine run")
    .description("show what needs somebody, longest waiting first, and how many things are in which state")
    .addHelpText("after", "\nExamples:\n  millwright top\n  millwright top machine rack")
    .action((kinds: string[]) => run(async (session) => (await import("./show.ts")).showTop(session, kinds)));
  program
    .command("count")
    .argument("<kind>", "a kind that has a list, such as machine")
    .description("count things, grouped by fields of their list, with how long they have been in their states")
    .option("--by <field...>", "fields to group by, at most three; several values, or the option several times")
    .option("--filter <filter>", "only things that satisfy it, as in the kind's list")
    .option("-n, --limit <count>", "the largest so many groups", positiveNumber, 100)
    .addHelpText(
      "after",
      "\nExamples:\n  millwright count machine --by rack effective_state --filter failing=true\n  millwright count run --by cause --filter 'phase=FAILED AND finished_at>-1d'",
    )
    .action((kind: string, options: CountOptions) =>
      run(async (session) => (await import("./count.ts")).countKind(session, kind, options)),
    );
}
