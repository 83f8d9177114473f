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
    .description("change the server's inventory to match a file; the difference is shown first")
    .requiredOption("-f, --file <file>", "YAML or JSON, or - for standard input")
    .option("--dry-run", "show the difference and change nothing")
    .option(
      "--prune",
      "also remove expected racks, switches, power shelves and profiles that are not in the file; machines stay",
    )
    .option("--resend-credentials", "also send the passwords of entries that do not differ otherwise")
    .option(...YES_OPTION)
    .addHelpText(
      "after",
      `
The file has any of these lists: rack_profiles, expected_racks, expected_switches, expected_power_shelves, machines. An entry has
the fields that the list commands print with -o json; one of a machine may also have bmc_username and bmc_password, ssh_username and
ssh_private_key, and one of a switch nvos_address. The server never shows passwords, so that they cannot be compared: an entry that differs only in its password is not
sent, unless --resend-credentials is given, or the server has none at all for the BMC of a machine.

Examples:
  millwright site apply -f site.yaml --dry-run
  millwright site apply -f site.yaml --yes
  millwright rack list`,
    )
    .action((options: ApplyOptions) =>
      run(async (session) => (await import("./apply.ts")).applySite(session, options)),
    );
}
