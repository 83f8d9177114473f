import type { Command } from "commander";
import type { Run } from "../../client/session.ts";

export function addReplicaCommands(program: Command, run: Run): void {
  const replica = program.command("replica").description("the servers that share the database");
  replica
    .command("list")
    .description("list the replicas, what each works on, and those that were lost")
    .action(() => run(async (session) => (await import("./list.ts")).listReplicas(session)));
}
