import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { YES_OPTION } from "../../terminal/confirm.ts";
import type { ApplyOptions } from "./apply.ts";

/** What a site consists of, in one file. */
export function addSiteCommands(program: Command, run: Run): void {
  const site = program
    .command("site")
    .description("what a site consists of: profiles, racks, switches, power shelves and machines, in one file");
  site
    .command("apply")
    .description("make the server's inventory what the file says; the difference is shown first")
    .requiredOption("-f, --file <file>", "YAML or JSON, or - for standard input")
    .option("--dry-run", "show the difference and change nothing")
    .option(
      "--prune",
      "also remove what the file does not have: expected racks, switches, power shelves and profiles; machines stay",
    )
    .option("--resend-credentials", "also update rows in which nothing differs, with the passwords of the file")
    .option(...YES_OPTION)
    .addHelpText(
      "after",
      `
The file has any of these lists: rack_profiles, expected_racks, expected_switches, expected_power_shelves, machines. Entries are
written as the contracts have them, or as the list commands print them with -o json. Passwords cannot be compared: a row in which
nothing else differs is left alone.

Examples:
  millwright site apply -f site.yaml --dry-run
  millwright site apply -f site.yaml --yes
  millwright rack list`,
    )
    .action((options: ApplyOptions) =>
      run(async (session) => (await import("./apply.ts")).applySite(session, options)),
    );
}
