import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addHistoryOptions } from "../event/history.ts";
import type { HistoryOptions } from "../event/history-read.ts";
import { addHealthReportCommands } from "../health-report/health-report.ts";
import type { ForceDeleteOptions, ListSwitchesOptions } from "./manage.ts";

const ID = ["<id>", "a switch"] as const;

/** The grammar alone; what a command does is loaded when it runs. */
export function addSwitchCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const sw = program
    .command("switch")
    .alias("sw")
    .description("switches of racks: where they stand, what state they are in, and their fabric");
  sw.command("list")
    .description("list switches")
    .option("--rack <id>", "only those of this rack")
    .option("--state, --controller-state <state>", "only those in this state, such as ready or bomvalidating")
    .option("--bmc-mac <mac>", "only the one whose BMC has this MAC address")
    .option("--nvos-mac <mac>", "only the one whose operating system has this MAC address")
    .addOption(
      new Option("--deleted <which>", "those marked for deletion")
        .choices(["exclude", "only", "include"])
        .default("exclude"),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  millwright switch list --rack rack-1\n  millwright sw list --state error -o json",
    )
    .action((options: ListSwitchesOptions & { controllerState?: string }) =>
      run(async (session) => {
        const { controllerState, ...rest } = options;
        return (await load()).listSwitches(
          session,
          controllerState === undefined ? rest : { ...rest, state: controllerState },
        );
      }),
    );
  sw.command("show")
    .argument("[id|name]", "a switch; all of them when left out")
    .description("show a switch: state and why, place, power, fabric")
    .addHelpText("after", "\nExample:\n  millwright switch show rack-1-switch-1")
    .action((idOrName: string | undefined) => run(async (session) => (await load()).showSwitch(session, idOrName)));
  addHistoryOptions(
    sw
      .command("history")
      .argument(...ID)
      .description("what happened to a switch, who did it and why"),
  ).action((id: string, options: HistoryOptions) =>
    run(async (session) => (await import("../event/history-read.ts")).showHistory(session, "switch", id, options)),
  );
  sw.command("delete")
    .argument(...ID)
    .description("mark a switch for deletion; the controller removes it as soon as its state allows")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright switch delete ID")
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteSwitch(session, id, options)),
    );
  sw.command("force-delete")
    .argument(...ID)
    .description("remove a switch at once, whatever its state")
    .option("-d, --delete-interfaces", "also forget its network interfaces")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright switch force-delete ID")
    .action((id: string, options: ForceDeleteOptions) =>
      run(async (session) => (await load()).forceDeleteSwitch(session, id, options)),
    );
  addHealthReportCommands(sw, run, {
    what: "a switch",
    argument: "<id>",
    command: "switch",
    load: async () => (await import("../health-report/device-reports.ts")).deviceReports("switch", "switch"),
  });
}
