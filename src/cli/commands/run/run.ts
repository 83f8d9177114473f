import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import type { ActOptions, MarkManualOptions, RunVerb } from "./act.ts";
import type { ListRunsOptions, RunLogsOptions, StartRunOptions } from "./manage.ts";

const collect = (pair: string, before: readonly string[] = []): readonly string[] => [...before, pair];

export function addRunCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const runs = program.command("run").description("operations on machines: start, follow, cancel, try again");
  runs
    .command("start")
    .description("start a run of a plan on a machine")
    .requiredOption("--machine <id>", "the machine to work on")
    .option("--type <type>", "REPAVE, RMA, REBOOT, UPGRADE or NET_RECONFIG; its default plan is used")
    .option("--plan <id>", "another plan than the type's own")
    .option(
      "--param <name=value>",
      "a value for the plan's steps (force=true resets a system that hangs); may be given several times",
      collect,
    )
    .option("--request-id <id>", "makes the command safe to repeat; a new one when left out")
    .option("--wait", "follow steps and log to the end; the exit code says how it ended")
    .option("--dry-run", "only say what would be done, what stands in the way, and how long it would take")
    .addHelpText("after", "\nExample:\n  millwright run start --machine m-rack1-03 --type REPAVE --wait")
    .action((options: StartRunOptions) => run(async (session) => (await load()).startRun(session, options)));
  runs
    .command("list")
    .description("list runs, the newest first")
    .option(
      "--filter <filter>",
      "such as machine_id=m-1 AND phase IN (PENDING, RUNNING), or job_state=failed_retryable",
    )
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
    .description("end an active run, or undo a failed workflow; what it could not undo is listed")
    .action((id: string) => run(async (session) => (await load()).cancelRun(session, id)));
  addActions(runs, run);
}

/** What people do with a run that has ended; each but the last makes the next attempt at the same job. */
// biome-ignore format: a table is read by its columns
const ACTIONS: readonly (readonly [command: string, verb: RunVerb, description: string])[] = [
  ["retry",         "retryRun",        "do the failed step of a run once more, and what comes after it"],
  ["resume",        "resumeRun",       "go on after what stopped a run was put right: look first, do only what is not done"],
  ["rerun",         "rerunRun",        "do everything of a run once more, by the plan of then"],
  ["restart-clean", "restartRunClean", "take back what a run has begun, then do everything from the first step"],
  ["adopt",         "adoptRun",        "take what people did by hand as done, if it is seen to be: nothing is done to the machine"],
];

function addActions(runs: Command, run: Run): void {
  const load = () => import("./act.ts");
  for (const [name, verb, description] of ACTIONS) {
    const command = runs
      .command(name)
      .argument("<id>", "a run that has ended; the latest attempt at its job")
      .description(description)
      .option("--request-id <id>", "makes the command safe to repeat; a new one when left out")
      .option("--wait", "follow steps and log to the end; the exit code says how it ended");
    if (verb === "retryRun") command.option("--new-scripts", "take scripts that have changed since as they are now");
    command.action((id: string, options: ActOptions) =>
      run(async (session) => (await load()).actOnRun(session, verb, id, options)),
    );
  }
  runs
    .command("mark-manual")
    .argument("<id>", "a run that FAILED, or a run of a workflow that goes on")
    .description(
      "say that people see to a run; nothing but people retries it then, and a workflow stops after its stage",
    )
    .requiredOption("--comment <text>", "what is wrong, and who sees to it")
    .action((id: string, options: MarkManualOptions) =>
      run(async (session) => (await load()).markManual(session, id, options)),
    );
}
