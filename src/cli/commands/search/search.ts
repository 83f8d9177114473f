import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { positiveNumber } from "../event/history.ts";
import type { SearchOptions } from "./show.ts";

export function addSearchCommand(program: Command, run: Run): void {
  program
    .command("search")
    .argument("<text>", "the beginning of an id, name, hostname, serial, MAC address or address, or of a word in it")
    .description("find things by whatever is known of them, the best first")
    .option("--kind <kind...>", "only things of these kinds; several values, or the option several times")
    .option("-n, --limit <count>", "the best so many, at most 100", positiveNumber, 20)
    .addHelpText(
      "after",
      "\nExamples:\n  millwright search 0412\n  millwright search MCQ105\n  millwright search 5e:10:01 --kind machine",
    )
    .action((text: string, options: SearchOptions) =>
      run(async (session) => (await import("./show.ts")).searchThings(session, text, options)),
    );
}
