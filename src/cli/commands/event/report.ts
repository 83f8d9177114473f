import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { ReportOptions } from "./report-read.ts";

export function addReportCommand(program: Command, run: Run): void {
  program
    .command("report")
    .description("what failed, what needed intervention, and who did what, from the journal")
    .option("--since <duration>", "how far back, such as 12h or 7d", "12h")
    .addHelpText(
      "after",
      "\nThe exit code is 0 if nothing failed and nothing needed intervention, and 1 otherwise.\n\nExample:\n  millwright report --since 12h",
    )
    .action((options: ReportOptions) =>
      run(async (session) => (await import("./report-read.ts")).showReport(session, options)),
    );
}
