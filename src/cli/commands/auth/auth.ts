import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { CanIOptions } from "./my-access.ts";

export function addAuthCommands(program: Command, run: Run): void {
  const load = () => import("./my-access.ts");
  const auth = program.command("auth").description("what you may do");
  auth
    .command("show")
    .description("show who the server takes you for, and what you may call")
    .action(() => run(async (session) => (await load()).showAccess(session)));
  auth
    .command("can-i")
    .argument("<method...>", "a method or a route, such as StartRun or GET /api/v1/nodes/{id}")
    .description("say whether you may call a method; nothing is called")
    .option("--on <thing...>", "and on these things, as kind/id, such as machine/m-1")
    .addHelpText(
      "after",
      "\nThe exit code is 0 for yes and 5 for no. Where a method name is not enough, put the service before it.\n\nExamples:\n  millwright auth can-i StartRun\n  millwright auth can-i millwright.v1.RackService/StartRackMaintenance include_assigned\n  millwright auth can-i SetMachinePower --on machine/m-1 machine/m-2\n  millwright auth can-i DELETE /api/v1/nodes/n-1",
    )
    .action((words: readonly string[], options: CanIOptions) =>
      run(async (session) => (await load()).canI(session, words, options)),
    );
}
