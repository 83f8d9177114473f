import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";

/** Rows are added and changed by `site apply`; here they are read and removed. */
export function addExpectedRackCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const row = program
    .command("expected-rack")
    .alias("er")
    .description("racks that the site says it has; `site apply` adds and changes them");
  row
    .command("list")
    .description("list expected racks and their profiles")
    .addHelpText("after", "\nExample:\n  millwright expected-rack list")
    .action(() => run(async (session) => (await load()).listExpectedRacks(session)));
  row
    .command("show")
    .argument("<id>", "a rack")
    .description("show an expected rack")
    .addHelpText("after", "\nExample:\n  millwright expected-rack show rack-1")
    .action((id: string) => run(async (session) => (await load()).showExpectedRack(session, id)));
  row
    .command("delete")
    .argument("<id>", "a rack")
    .description("take a rack off the expected inventory; the rack stays")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright expected-rack delete rack-1")
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteExpectedRack(session, id, options)),
    );
}
