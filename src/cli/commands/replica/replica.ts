import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { DrainOptions, LogLevelOptions } from "./orders.ts";

export function addReplicaCommands(program: Command, run: Run): void {
  const replica = program.command("replica").description("the servers that share the database");
  replica
    .command("list")
    .description("list the replicas, what each works on, and those that were lost")
    .action(() => run(async (session) => (await import("./list.ts")).listReplicas(session)));
  replica
    .command("drain")
    .argument("<replica...>", "ids, or hosts, as `replica list` shows them")
    .description("have replicas hand over their work and take none; they go on answering, and are not ready")
    .option("--force", "also the last that works")
    .option("--wait", "until they have handed everything over")
    .addHelpText(
      "after",
      "\nRequires the role admin. Before a host is serviced, say; `replica resume` undoes it, and so does a restart.",
    )
    .action((names: string[], options: DrainOptions) =>
      run(async (session) => (await import("./orders.ts")).drainReplicas(session, names, options)),
    );
  replica
    .command("resume")
    .argument("<replica...>", "ids, or hosts, as `replica list` shows them")
    .description("have drained replicas work again")
    .addHelpText("after", "\nRequires the role admin.")
    .action((names: string[]) => run(async (session) => (await import("./orders.ts")).resumeReplicas(session, names)));
  replica
    .command("log-level")
    .argument("<level>", "trace, debug, info, warn, error, fatal, silent; reset: that of the configuration")
    .description("have replicas log more, or less, for a time")
    .option("--replica <replica...>", "only these; otherwise all")
    .option("--for <duration>", "such as 30m; otherwise 15m, and 24h at most")
    .addHelpText(
      "after",
      "\nRequires the role admin. Then the level of the configuration holds again.\n\nExample:\n  millwright replica log-level debug --for 5m",
    )
    .action((level: string, options: LogLevelOptions) =>
      run(async (session) => (await import("./orders.ts")).setLogLevel(session, level, options)),
    );
}
