import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addMetadataCommands } from "../device/metadata-commands.ts";
import { addHistoryOptions } from "../event/history.ts";
import type { HistoryOptions } from "../event/history-read.ts";
import { addHealthReportCommands } from "../health-report/health-report.ts";
import { addListOptions } from "../options/list-options.ts";
import type { ListRacksOptions } from "./list.ts";
import { addRackMaintenanceCommands } from "./maintenance-commands.ts";
import type { DeleteRackOptions } from "./manage.ts";

const ID = ["<id>", "a rack"] as const;

/** The grammar alone; what a command does is loaded when it runs. */
export function addRackCommands(program: Command, run: Run): void {
  const rack = program
    .command("rack")
    .description("racks: what they consist of, what is missing, and what state they are in");
  const read = () => import("./list.ts");
  addListOptions(
    rack
      .command("list")
      .description(
        "list racks, those that need somebody first: state, ready devices out of the expected ones, and what each rack waits for",
      ),
    {
      filter: "state=error AND labels.row=7",
      order: "state, state_since desc",
    },
  )
    .option(
      "--state <state>",
      "only racks in this state: created, discovering, maintenance, validating, ready, error or deleting",
    )
    .option(
      "--stuck",
      "only racks that need attention: in error, waiting for a person, too long in their state, or failing for a minute",
    )
    .option("--failing", "only racks whose last pass failed")
    .option("--watch", "keep showing it as it changes")
    .addHelpText(
      "after",
      "\nExamples:\n  millwright rack list --stuck\n  millwright rack list --state error -o json\n  millwright rack list --watch",
    )
    .action((options: ListRacksOptions) => run(async (session) => (await read()).listRacks(session, options)));
  rack
    .command("show")
    .argument("[id]", "a rack; all of them when left out")
    .description("show a rack: state, since when and why, requests, firmware against the wanted one, and each device")
    .option("--watch", "keep showing it as it changes")
    .addHelpText("after", "\nExample:\n  millwright rack show rack-1 --watch")
    .action((id: string | undefined, options: { watch?: boolean }) =>
      run(async (session) => (await read()).showRack(session, id, options)),
    );
  addHistoryOptions(
    rack
      .command("history")
      .alias("state-history")
      .argument(...ID)
      .description("what happened to a rack, who did it and why"),
  ).action((id: string, options: HistoryOptions) =>
    run(async (session) => (await import("../event/history-read.ts")).showHistory(session, "rack", id, options)),
  );
  addManaging(rack, run);
  addRackMaintenanceCommands(rack, run);
  addProfiles(rack, run);
  addMetadataCommands(rack, run, {
    what: "a rack",
    argument: "<id>",
    command: "rack",
    load: async () => (await import("./metadata.ts")).describedRacks,
  });
  addHealthReportCommands(rack, run, {
    what: "a rack",
    argument: "<id>",
    command: "rack",
    load: async () => (await import("../health-report/device-reports.ts")).deviceReports("rack", "rack"),
  });
}

function addManaging(rack: Command, run: Run): void {
  rack
    .command("refresh")
    .argument(...ID)
    .description("make the controller check a rack now")
    .addHelpText("after", "\nExample:\n  millwright rack refresh rack-1")
    .action((id: string) => run(async (session) => (await import("./manage.ts")).refreshRack(session, id)));
  rack
    .command("delete")
    .argument(...ID)
    .description("mark a rack for deletion; the rack is removed once no device names it")
    .option("--detach", "also remove the rack from the devices and expected devices that name it")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright rack delete rack-1 --detach")
    .action((id: string, options: DeleteRackOptions) =>
      run(async (session) => (await import("./manage.ts")).deleteRack(session, id, options)),
    );
  rack
    .command("force-delete")
    .argument(...ID)
    .description("remove the record of a rack at once, whatever its state")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright rack force-delete rack-1")
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await import("./manage.ts")).forceDeleteRack(session, id, options)),
    );
}

function addProfiles(rack: Command, run: Run): void {
  const load = () => import("./profile.ts");
  const profile = rack.command("profile").description("rack profiles: what racks of one kind consist of");
  profile
    .command("list")
    .description("list rack profiles")
    .addHelpText("after", "\nExample:\n  millwright rack profile list")
    .action(() => run(async (session) => (await load()).listProfiles(session)));
  profile
    .command("show")
    .argument("<rack>", "a rack")
    .description("show the profile of a rack")
    .addHelpText("after", "\nExample:\n  millwright rack profile show rack-1")
    .action((id: string) => run(async (session) => (await load()).showProfile(session, id)));
  profile
    .command("delete")
    .argument("<name>", "a rack profile")
    .description("remove a rack profile that no rack names")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright rack profile delete gb200")
    .action((name: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteProfile(session, name, options)),
    );
}
