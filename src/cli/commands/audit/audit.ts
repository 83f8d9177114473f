import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { addListOptions } from "../options/list-options.ts";
import type { ExportOptions } from "./export.ts";
import type { ListAuditOptions } from "./list.ts";
import type { VerifyOptions } from "./verify.ts";

export function addAuditCommands(program: Command, run: Run): void {
  const audit = program.command("audit").description("who tried what, and whether the record of it is whole");
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
  addJournalCommands(audit, run);
  addListOptions(list, { filter: "'calls>100'", order: "'calls desc'", limit: "1000" })
    .addHelpText(
      "after",
      "\nRequires the role auditor. What callers did is in `millwright history` and `millwright report`.\n\nExample:\n  millwright audit list --since 1h --outcome denied",
    )
    .action((options: ListAuditOptions) =>
      run(async (session) => (await import("./list.ts")).listAudit(session, options)),
    );
}

function addJournalCommands(audit: Command, run: Run): void {
  audit
    .command("verify")
    .description("compare the history with its seals, and name the first entry that was changed, deleted or inserted")
    .option("--head <head>", "a head from the log of a server, or from an earlier verification: it must be there still")
    .addHelpText(
      "after",
      "\nRequires the role auditor. Exit code 1 if something does not match.\n\nServers log the head each minute. Without --head, a database that was replaced by an older copy of itself passes.\n\nExample:\n  millwright audit verify",
    )
    .action((options: VerifyOptions) =>
      run(async (session) => (await import("./verify.ts")).verifyAudit(session, options)),
    );
  audit
    .command("export")
    .description("write what happened to all things as JSON lines, the oldest first")
    .option("--since <when>", "from when on: a duration such as 7d, or a time such as 2026-01-31T08:00:00Z")
    .option("--until <when>", "up to when")
    .option("--after <cursor>", "only what comes after this event: the cursor of the last line of an earlier export")
    .addHelpText(
      "after",
      "\nRequires the role auditor.\n\nExample:\n  millwright audit export --since 7d > journal.jsonl",
    )
    .action((options: ExportOptions) =>
      run(async (session) => (await import("./export.ts")).exportAudit(session, options)),
    );
}
