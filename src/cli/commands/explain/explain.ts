import type { Command } from "commander";
import type { Run } from "../../client/session.ts";

export function addExplainCommand(program: Command, run: Run): void {
  program
    .command("explain")
    .argument("<kind>", "machine, run, node, power-shelf (ps), expected-power-shelf (eps), …")
    .argument("<id>", "the thing; a power shelf also by its name, an expected one by its MAC address")
    .description(
      "why a thing is as it is: what it does and waits for, who is in its way, what failed last, and what helps",
    )
    .addHelpText("after", "\nExamples:\n  millwright explain machine m-rack1-03\n  millwright explain ps shelf-1")
    .action((kind: string, id: string) =>
      run(async (session) => (await import("./show.ts")).showExplanation(session, kind, id)),
    );
}
