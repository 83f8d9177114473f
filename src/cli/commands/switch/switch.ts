import { type Command, Option } from "commander";
import type { Run, Session } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addMetadataCommands } from "../device/metadata-commands.ts";
import { addHistoryOptions } from "../event/history.ts";
import type { HistoryOptions } from "../event/history-read.ts";
import { addHealthReportCommands } from "../health-report/health-report.ts";
import { addListOptions } from "../options/list-options.ts";
import type { ListSwitchesOptions } from "./list.ts";
import type { ForceDeleteOptions } from "./manage.ts";

const ID = ["<id|name>", "a switch"] as const;

/** Names stand for ids everywhere. */
const idOf = async (session: Session, idOrName: string): Promise<string> =>
  (await import("./names.ts")).resolveSwitch(session, idOrName);

/** The grammar alone; what a command does is loaded when it runs. */
export function addSwitchCommands(program: Command, run: Run): void {
  const sw = program
    .command("switch")
    .alias("sw")
    .description("switches of racks: where they stand, what state they are in, and their fabric");
  addReading(sw, run);
  addManaging(sw, run);
  addMetadataCommands(sw, run, {
    what: "a switch",
    argument: "<id|name>",
    command: "switch",
    load: async () => (await import("./names.ts")).describedSwitches,
  });
  addHealthReportCommands(sw, run, {
    what: "a switch",
    argument: "<id|name>",
    command: "switch",
    load: async () => ({
      ...(await import("../health-report/device-reports.ts")).deviceReports("switch", "switch"),
      resolve: idOf,
    }),
  });
}

function addReading(sw: Command, run: Run): void {
  const load = () => import("./manage.ts");
  addListOptions(sw.command("list").description("list switches"), {
    filter: "state=error AND (rack_id=rack-1 OR fabric=not_ok)",
    order: "rack_id, tray_index",
  })
    .option("--rack <id>", "only those of this rack")
    .option(
      "--state, --controller-state <state>",
      "only those in this state, such as ready or bom_validating",
      stateWord,
    )
    .option("--power-state <state>", "only those in this power state, such as on or off")
    .option(
      "--stuck",
      "only switches that need attention: in error, waiting for a person, too long in their state, or failing for a minute",
    )
    .option("--failing", "only switches whose last pass failed, such as those that cannot be reached")
    .option("--bmc-mac <mac>", "only the one whose BMC has this MAC address")
    .option("--nvos-mac <mac>", "only the one whose operating system has this MAC address")
    .addOption(
      new Option("--deleted <which>", "those marked for deletion")
        .choices(["exclude", "only", "include"])
        .default("exclude"),
    )
    .option("--watch", "keep showing it as it changes")
    .addHelpText(
      "after",
      "\nExamples:\n  millwright switch list --rack rack-1\n  millwright sw list --state error -o json\n  millwright sw list --stuck --watch",
    )
    .action((options: ListSwitchesOptions & { controllerState?: string }) =>
      run(async (session) => {
        const { controllerState, ...rest } = options;
        const { listSwitches } = await import("./list.ts");
        return listSwitches(session, controllerState === undefined ? rest : { ...rest, state: controllerState });
      }),
    );
  sw.command("show")
    .argument("[id|name]", "a switch; all of them when left out")
    .description("show a switch: state, why and since when, place, power, fabric, firmware")
    .option("--watch", "keep showing it as it changes")
    .addHelpText("after", "\nExample:\n  millwright switch show rack-1-switch-1")
    .action((idOrName: string | undefined, options: { watch?: boolean }) =>
      run(async (session) => (await load()).showSwitch(session, idOrName, options)),
    );
  addHistoryOptions(
    sw
      .command("history")
      .argument(...ID)
      .description("what happened to a switch, who did it and why"),
  ).action((id: string, options: HistoryOptions) =>
    run(async (session) =>
      (await import("../event/history-read.ts")).showHistory(session, "switch", await idOf(session, id), options),
    ),
  );
  sw.command("log")
    .argument(...ID)
    .description("the latest entries of the log that the switch itself keeps")
    .addHelpText("after", "\nExample:\n  millwright switch log rack-1-switch-1")
    .action((id: string) => run(async (session) => (await load()).showSwitchLog(session, await idOf(session, id))));
  sw.command("refresh")
    .argument(...ID)
    .description("make the controller read a switch now")
    .addHelpText("after", "\nExample:\n  millwright switch refresh rack-1-switch-1")
    .action((id: string) => run(async (session) => (await load()).refreshSwitch(session, await idOf(session, id))));
}

/** The words for states come in several spellings; the server knows those with underscores, and those without. */
const stateWord = (text: string): string => text.toLowerCase().replaceAll("-", "_");

function addManaging(sw: Command, run: Run): void {
  const load = () => import("./manage.ts");
  sw.command("accept-certificate")
    .argument(...ID)
    .description("pin the certificate that a switch shows since its BMC was replaced or given a new one")
    .requiredOption("--fingerprint <sha256>", "as compared at the switch, with or without colons; `explain` prints it")
    .option("--nvos", "the certificate of its operating system (NVOS), and not that of its BMC; takes the role admin")
    .addHelpText(
      "after",
      "\nThe server refuses another fingerprint than the one that the BMC shows. It does not compare that of NVOS (`--nvos`): the host that shows this certificate at the address of NVOS gets its password.\n\nExample:\n  millwright switch accept-certificate rack-1-switch-1 --nvos --fingerprint AB:CD:…",
    )
    .action((id: string, options: { readonly fingerprint: string; readonly nvos?: boolean }) =>
      run(async (session) =>
        (await import("./manage.ts")).acceptCertificate(session, await idOf(session, id), options),
      ),
    );
  sw.command("delete")
    .argument(...ID)
    .description("mark a switch for deletion; the controller removes it as soon as its state allows")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright switch delete ID")
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteSwitch(session, await idOf(session, id), options)),
    );
  sw.command("force-delete")
    .argument(...ID)
    .description("remove a switch at once, whatever its state")
    .option("-d, --delete-interfaces", "also forget its network interfaces")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright switch force-delete ID")
    .action((id: string, options: ForceDeleteOptions) =>
      run(async (session) => (await load()).forceDeleteSwitch(session, await idOf(session, id), options)),
    );
}
