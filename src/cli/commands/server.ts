import type { Command } from "commander";
import { UsageError } from "../errors.ts";
import type { Run } from "../session.ts";

const SERVER_COMMANDS = [
  ["dev", "a whole Millwright on this machine: database, simulated datacentre, server and console"],
  ["serve", "the server alone, for production"],
  ["sim", "the simulated datacentre alone"],
  ["config", "check and show the server's configuration"],
] as const;

/** `bin/millwright` sends these elsewhere by their first word; here they are for help and completion. */
export function addServerCommands(program: Command, run: Run): void {
  for (const [name, description] of SERVER_COMMANDS) {
    program
      .command(name)
      .description(description)
      .allowUnknownOption()
      .allowExcessArguments()
      .addHelpText("after", `\n\`millwright ${name} --help\` tells its options.`)
      .action(() =>
        run(async () => {
          throw new UsageError(`${name} comes first, and its options after it: millwright ${name} ...`);
        }),
      );
  }
}
