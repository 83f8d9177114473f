import type { Command } from "commander";
import type { Run } from "../../client/session.ts";

export function addSystemCommand(program: Command, run: Run): void {
  program
    .command("system")
    .description("which server answers, and who it takes you for")
    .action(() => run(async (session) => (await import("./show.ts")).showSystem(session)));
}
