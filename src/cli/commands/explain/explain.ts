import type { Command } from "commander";
import type { Run } from "../../client/session.ts";

export function addExplainCommand(program: Command, run: Run): void {
  program
    .command("explain")
    .argument("<kind>", "machine, run, node, rack, switch, power-shelf (ps), expected-power-shelf (eps), …")
    .argument("<id>", "the thing; a power shelf or fleet node also by its name, an expected one by its MAC address")
    .description(
      "explain a thing: what it does, what it waits for, what blocks it, what failed last, and which commands help",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  millwright explain machine m-rack1-03\n  millwright explain rack rack-1\n  millwright explain ps shelf-1",
    )
    .action((kind: string, id: string) =>
      run(async (session) => (await import("./show.ts")).showExplanation(session, kind, id)),
    );
}
