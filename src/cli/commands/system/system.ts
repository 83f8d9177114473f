import type { Command } from "commander";
import type { Run } from "../../client/session.ts";

export function addSystemCommand(program: Command, run: Run): void {
  program
    .command("system")
    .description("show which server answers, and who you are to it")
    .action(() => run(async (session) => (await import("./show.ts")).showSystem(session)));
}
