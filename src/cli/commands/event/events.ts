import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { EventsOptions } from "./events-read.ts";
import { addHistoryOptions } from "./history.ts";

export function addEventsCommand(program: Command, run: Run): void {
  addHistoryOptions(
    program
      .command("events")
      .argument("[thing...]", "only these things, such as machine/m-1 run/run-2")
      .description("what happened, over all things or several; the newest last"),
  )
    .option("--kind <kind...>", "only things of these kinds")
    .option("--actor <actor...>", "only what these caused")
    .option("--since <duration>", "how far back, such as 12h or 7d")
    .option("--until <duration>", "up to how long ago, such as 1h")
    .addHelpText(
      "after",
      "\nExamples:\n  millwright events --since 1h --type failed needs_intervention\n  millwright events machine/m-1 rack/rack-7 -n 50\n  millwright events --actor ops-a --since 1d",
    )
    .action((things: string[], options: EventsOptions) =>
      run(async (session) => (await import("./events-read.ts")).showEvents(session, things, options)),
    );
}
