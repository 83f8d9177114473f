import type { Command } from "commander";
import type { Run } from "../session.ts";
import type { ListRunsOptions, RunLogsOptions, StartRunOptions } from "./run-manage.ts";

const collect = (pair: string, before: readonly string[] = []): readonly string[] => [...before, pair];

export function addRunCommands(program: Command, run: Run): void {
  const load = () => import("./run-manage.ts");
  const runs = program.command("run").description("operations on machines: start, follow, cancel");
  runs
    .command("start")
    .description("start a run of a plan on a machine")
    .requiredOption("--machine <id>", "the machine to work on")
    .option("--type <type>", "REPAVE, RMA, REBOOT, UPGRADE or NET_RECONFIG; its default plan is used")
    .option("--plan <id>", "another plan than the type's own")
    .option("--param <name=value>", "a value for the plan's steps; may be given several times", collect)
    .option("--request-id <id>", "makes the command safe to repeat; a new one when left out")
    .option("--wait", "follow steps and log to the end; the exit code says how it ended")
    .addHelpText("after", "\nExample:\n  millwright run start --machine m-rack1-03 --type REPAVE --wait")
    .action((options: StartRunOptions) => run(async (session) => (await load()).startRun(session, options)));
  runs
    .command("list")
    .description("list runs, the newest first")
    .option("--filter <filter>", "such as machine_id=m-1 AND phase IN (PENDING, RUNNING)")
    .option("--machine <id>", "only runs of this machine")
    .option("--limit <number>", "at most so many", "50")
    .action((options: ListRunsOptions) => run(async (session) => (await load()).listRuns(session, options)));
  runs
    .command("show")
    .argument("<id>", "a run")
    .description("show a run with its steps")
    .action((id: string) => run(async (session) => (await load()).showRun(session, id)));
  runs
    .command("logs")
    .argument("<id>", "a run")
    .description("print what the steps of a run said")
    .option("--follow", "go on until the run has ended")
    .action((id: string, options: RunLogsOptions) =>
      run(async (session) => (await load()).runLogs(session, id, options)),
    );
  runs
    .command("cancel")
    .argument("<id>", "a run")
    .description("end an active run; what it could not undo is listed")
    .action((id: string) => run(async (session) => (await load()).cancelRun(session, id)));
}
