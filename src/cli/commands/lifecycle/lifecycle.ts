import type { Command } from "commander";
import type { Run } from "../../client/session.ts";

export function addLifecycleCommands(program: Command, run: Run): void {
  const lifecycle = program
    .command("lifecycle")
    .description("the lifecycles by which the server decides: states and transitions");
  lifecycle
    .command("list")
    .description("list the lifecycles")
    .action(() => run(async (session) => (await import("./show.ts")).listLifecycles(session)));
  lifecycle
    .command("show")
    .argument("<kind>", "such as power_shelf")
    .description("show states and transitions")
    .option("--mermaid", "as a Mermaid diagram")
    .action((kind: string, options: { mermaid?: boolean }) =>
      run(async (session) => (await import("./show.ts")).showLifecycle(session, kind, options)),
    );
}
