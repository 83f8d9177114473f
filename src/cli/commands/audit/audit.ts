import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { addListOptions } from "../options/list-options.ts";
import type { ListAuditOptions } from "./list.ts";

export function addAuditCommands(program: Command, run: Run): void {
  const audit = program.command("audit").description("who tried what");
  const list = audit
    .command("list")
    .description("list failed sign-ins and refused calls, counted by minute")
    .option("--since <duration>", "how far back, such as 12h or 7d", "24h")
    .option("--who <name>", "only calls of this caller")
    .option("--address <address>", "only calls from this address")
    .addOption(
      new Option("--outcome <outcome>", "only these: denied are both of the others").choices([
        "denied",
        "sign_in_failed",
        "refused",
      ]),
    );
  addListOptions(list, { filter: "'calls>100'", order: "'calls desc'", limit: "1000" })
    .addHelpText(
      "after",
      "\nRequires the role auditor. What callers did is in `millwright history` and `millwright report`.\n\nExample:\n  millwright audit list --since 1h --outcome denied",
    )
    .action((options: ListAuditOptions) =>
      run(async (session) => (await import("./list.ts")).listAudit(session, options)),
    );
}
