import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { eventTypes, positiveNumber } from "./history.ts";
import type { WatchOptions } from "./watch-events.ts";

export function addWatchCommand(program: Command, run: Run): void {
  program
    .command("watch")
    .argument("[kind]", "only things of this kind, such as power_shelf")
    .argument("[id...]", "only these things")
    .description("print events as they happen, one line each; a broken connection is restored without losing events")
    .option("--from <cursor>", "go on after this cursor, or from `oldest`; from now on when left out")
    .addOption(eventTypes())
    .option("-n, --limit <count>", "end after so many events", positiveNumber)
    .addHelpText(
      "after",
      "\nExamples:\n  millwright watch\n  millwright watch --type failed needs_intervention\n  millwright watch power-shelf --type transition -o json",
    )
    .action((kind: string | undefined, ids: string[], options: WatchOptions) =>
      run(async (session) => (await import("./watch-events.ts")).watchEvents(session, kind, ids, options)),
    );
}
