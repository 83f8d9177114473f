import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { positiveNumber } from "../event/history.ts";
import { addListOptions } from "../options/list-options.ts";
import type { ActOptions, MarkManualOptions, RunVerb } from "./act.ts";
import type { ListRunsOptions, RunChoice } from "./list.ts";
import type { RunLogsOptions } from "./logs.ts";
import type { StartRunOptions } from "./start.ts";

const collect = (pair: string, before: readonly string[] = []): readonly string[] => [...before, pair];

export function addRunCommands(program: Command, run: Run): void {
  const runs = program
    .command("run")
    .description("work on machines and other things: start, list, follow and cancel runs, and try again");
  runs
    .command("start")
    .description("start a run of a plan on a machine, or on each of several machines")
    .option("--machine <id>", "the machine to work on; may be given several times", collect)
    .option("--filter <filter>", "all machines that it admits now, as in machine list; the server starts their runs")
    .option(
      "--max-parallel <count>",
      "with --filter: how many runs are active at a time; 5 when left out",
      positiveNumber,
    )
    .option(
      "--stop-after <count>",
      "with --filter: start no further run after so many without success; 1 when left out",
      positiveNumber,
    )
    .option("--type <type>", "REPAVE, RMA, REBOOT, UPGRADE, NET_RECONFIG or JOIN; its default plan is used")
    .option("--plan <id>", "another plan than the type's own")
    .option(
      "--param <name=value>",
      "a value for the plan's steps (force=true resets a system that hangs); may be given several times",
      collect,
    )
    .option("--request-id <id>", "makes the command safe to repeat; a new one when left out")
    .option("--wait", "follow steps and log to the end; the exit code says how it ended")
    .option(
      "--dry-run",
      "only say what would be done, what stands in the way, and how long it would take, on each machine",
    )
    .option(
      "-y, --yes",
      "do not ask before a machine that serves a cluster is disturbed, or before runs start with --filter; required there without a terminal",
    )
    .addHelpText(
      "after",
      `
A run that reboots, reinstalls or reconfigures a machine that serves a cluster, and does not drain it first, needs confirmation.

Examples:
  millwright run start --machine m-rack1-03 --type REPAVE --wait
  millwright run start --machine m-rack1-03 --machine m-rack1-04 --type REBOOT --wait
  millwright run start --filter 'rack=rack-1 AND phase=READY' --type REBOOT --max-parallel 5 --stop-after 2 --wait`,
    )
    .action((options: StartRunOptions) =>
      run(async (session) => (await import("./start.ts")).startRun(session, options)),
    );
  addReading(runs, run);
  runs
    .command("cancel")
    .argument("<id...>", "runs; each is canceled for itself")
    .description("end active runs, or undo failed workflows; what could not be undone is listed")
    .addHelpText(
      "after",
      `\nThe runs that a run has started are canceled with it and end first. A run that another run has started counts there
as failed. One run that cannot be canceled does not keep the others from being canceled.`,
    )
    .action((ids: string[]) => run(async (session) => (await import("./cancel.ts")).cancelRuns(session, ids)));
  addActions(runs, run);
}

/** Which runs are meant, in the same words for whoever lists and whoever watches. */
const addChoice = (command: Command): Command =>
  command
    .option("--machine <id>", "only runs on this machine")
    .option("--target <kind/id>", "only runs on this thing, such as rack/rack-1")
    .option("--target-kind <kind>", "only runs on things of this kind, such as rack")
    .option("--children", "also runs that other runs have started, each with the run and step that it is a part of");

function addReading(runs: Command, run: Run): void {
  addChoice(
    addListOptions(runs.command("list").description("list runs on all targets, the newest first"), {
      filter: "machine_id=m-1 AND phase IN (PENDING, RUNNING), or job_state=failed_retryable",
      order: "target_id, created_at desc",
      limit: "50",
    }),
  )
    .addHelpText(
      "after",
      `
docs/reference/filters.md lists all fields to filter and to sort by.

Examples:
  millwright run list --target rack/rack-1
  millwright run list --filter 'phase=FAILED AND created_at>-2h' --order-by 'target_id' --total
  millwright run list --children --filter 'parent_run_id=RUN AND NOT phase=SUCCEEDED'`,
    )
    .action((options: ListRunsOptions) =>
      run(async (session) => (await import("./list.ts")).listRuns(session, options)),
    );
  runs
    .command("show")
    .argument("<id>", "a run")
    .description("show a run with its steps, and the runs that they have started")
    .action((id: string) => run(async (session) => (await import("./show.ts")).showRun(session, id)));
  runs
    .command("logs")
    .argument("<id>", "a run")
    .description("print what the steps of a run said")
    .option("--follow", "go on until the run has ended")
    .option("-n, --tail <count>", "only the newest so many pieces", positiveNumber)
    .option("--grep <text>", "only pieces that contain it, whatever the case; the newest 100 unless --tail says")
    .option("--step <name>", "with --tail or --grep: only what this step said")
    .action((id: string, options: RunLogsOptions) =>
      run(async (session) => (await import("./logs.ts")).runLogs(session, id, options)),
    );
  addChoice(
    runs
      .command("watch")
      .argument(
        "[id]",
        "a run, to watch it with the runs that it has started until it ends; all active runs when left out",
      )
      .description("keep showing active runs as they change, or one run until it ends")
      .option("--filter <filter>", "such as target_kind=rack AND type=REPAVE"),
  )
    .addHelpText("after", "\nThe exit code says how the one run ended: 0 for SUCCEEDED, 1 otherwise.")
    .action((id: string | undefined, options: RunChoice) =>
      run(async (session) => (await import("./watch.ts")).watchRuns(session, id, options)),
    );
}

/** What people do with a run that has ended; each but the last makes the next attempt at the same job. */
// biome-ignore format: a table is read by its columns
const ACTIONS: readonly (readonly [command: string, verb: RunVerb, description: string])[] = [
  ["retry",         "retryRun",        "do the failed step of a run once more, and what comes after it"],
  ["resume",        "resumeRun",       "go on after what stopped a run was put right: check first, do only what is not done"],
  ["rerun",         "rerunRun",        "do everything of a run once more, with the plan as it was then"],
  ["restart-clean", "restartRunClean", "undo what a run has begun, then do everything from the first step"],
  ["adopt",         "adoptRun",        "take what people did by hand as done, if it is seen to be: nothing is done to the machine"],
];

const YES = [
  "-y, --yes",
  "do not ask before a machine that serves a cluster is disturbed, or before runs that --filter chose; required there without a terminal",
] as const;

const examplesOf = (name: string): string => `
One run that is refused does not keep the others from being done again.

Examples:
  millwright run ${name} run-1 run-2 --wait
  millwright run ${name} --filter 'phase=FAILED AND job_state=failed_retryable AND created_at>-2h'`;

function addActions(runs: Command, run: Run): void {
  const load = () => import("./act.ts");
  for (const [name, verb, description] of ACTIONS) {
    const command = runs
      .command(name)
      .argument("[id...]", "runs that have ended, each the latest attempt at its job")
      .description(description)
      .option("--filter <filter>", "all runs that it admits, as in run list; needs confirmation")
      .option("--request-id <id>", "makes the command safe to repeat; a new one when left out")
      .option("--wait", "follow steps and log to the end; the exit code says how it ended");
    if (verb === "retryRun") command.option("--new-scripts", "take scripts that have changed since as they are now");
    if (verb !== "adoptRun") command.option(...YES);
    command
      .addHelpText("after", examplesOf(name))
      .action((given: string[], options: ActOptions) =>
        run(async (session) => (await load()).actOnRuns(session, { verb, word: name, given }, options)),
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
