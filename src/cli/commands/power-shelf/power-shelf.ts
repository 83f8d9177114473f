import { type Command, Option } from "commander";
import type { Run, Session } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addMetadataCommands } from "../device/metadata-commands.ts";
import { addHistoryOptions } from "../event/history.ts";
import type { HistoryOptions } from "../event/history-read.ts";
import { addHealthReportCommands } from "../health-report/health-report.ts";
import { addListOptions } from "../options/list-options.ts";
import { addPasswordOptions } from "../options/password-options.ts";
import type { ListOptions } from "./list.ts";
import type { CancelOptions, MaintenanceOptions, Operation } from "./maintenance.ts";
import type { CreateOptions, CredentialOptions, ForceDeleteOptions } from "./manage.ts";

/** The grammar alone; what a command does is loaded when it runs, so that none waits for the others' code. */
export function addPowerShelfCommands(program: Command, run: Run): void {
  const shelf = program
    .command("power-shelf")
    .alias("ps")
    .description("power shelves: what they are, what state they are in, and power on and off");
  addReading(shelf, run);
  addMaintenance(shelf, run);
  addManaging(shelf, run);
  addMetadata(shelf, run);
  addHealthReportCommands(shelf, run, {
    what: "a power shelf",
    argument: "<id|name>",
    command: "power-shelf",
    load: async () => (await import("./health.ts")).shelfReports,
  });
}

/** Names stand for ids everywhere. */
const idOf = async (session: Session, idOrName: string): Promise<string> =>
  (await import("./names.ts")).resolveShelf(session, idOrName);

function addReading(shelf: Command, run: Run): void {
  addListOptions(shelf.command("list").description("list power shelves"), {
    filter: "state=error AND (rack_id=rack-1 OR labels.tier^=gold)",
    order: "rack_id, state_since desc",
  })
    .option("--rack <id>", "only those of this rack")
    .option("--state, --controller-state <state>", "only those in this state, such as ready or error", stateWord)
    .option("--power-state <state>", "only those in this power state, such as on or off")
    .option(
      "--stuck",
      "only shelves that need attention: in error, waiting for a person, too long in their state, or failing for a minute",
    )
    .option("--failing", "only shelves whose last pass failed, such as those that cannot be reached")
    .addOption(
      new Option("--deleted <which>", "those marked for deletion")
        .choices(["exclude", "only", "include"])
        .default("exclude"),
    )
    .option("--bmc-mac <mac>", "only the one whose BMC has this MAC address")
    .option("--watch", "keep showing it as it changes")
    .addHelpText(
      "after",
      "\nExamples:\n  millwright power-shelf list --state error\n  millwright ps list --rack rack-1 -o json\n  millwright ps list --watch",
    )
    .action((options: ListOptions & { controllerState?: string }) =>
      run(async (session) => {
        const { controllerState, ...rest } = options;
        const { listPowerShelves } = await import("./list.ts");
        return listPowerShelves(session, controllerState === undefined ? rest : { ...rest, state: controllerState });
      }),
    );
  shelf
    .command("show")
    .argument("[id|name]", "a power shelf; all of them when left out")
    .description("show a power shelf: state, why and since when, requests, power, parts")
    .option("--watch", "keep showing it as it changes")
    .action((idOrName: string | undefined, options: { watch?: boolean }) =>
      run(async (session) => (await import("./show.ts")).showPowerShelf(session, idOrName, options)),
    );
  addHistoryOptions(
    shelf
      .command("history")
      .argument("<id|name>", "a power shelf")
      .description("what happened to a power shelf, who did it and why"),
  ).action((id: string, options: HistoryOptions) =>
    run(async (session) =>
      (await import("../event/history-read.ts")).showHistory(session, "power_shelf", await idOf(session, id), options),
    ),
  );
  shelf
    .command("log")
    .argument("<id|name>", "a power shelf")
    .description("the latest entries of the log that the shelf itself keeps")
    .action((id: string) =>
      run(async (session) => (await import("./log.ts")).showDeviceLog(session, await idOf(session, id))),
    );
  shelf
    .command("refresh")
    .argument("<id|name>", "a power shelf")
    .description("make the controller read a power shelf now")
    .option("--forget-certificate", "pin the certificate that the BMC shows next (it was replaced or given a new one)")
    .action((id: string, options: { readonly forgetCertificate?: boolean }) =>
      run(async (session) =>
        (await import("./manage.ts")).refreshPowerShelf(session, await idOf(session, id), options),
      ),
    );
}

/** The seed's words for states come in several spellings; ours is the one with underscores. */
const stateWord = (text: string): string => text.toLowerCase().replaceAll("-", "_");

function addMaintenance(shelf: Command, run: Run): void {
  const maintenance = shelf
    .command("maintenance")
    .alias("fix")
    .description("request a power operation on one or more power shelves, all or none");
  const add = (word: string, operation: Operation, description: string) => {
    const command = maintenance
      .command(word)
      .description(description)
      .requiredOption(
        "--id, --power-shelf-id <id...>",
        "power shelves, by id or name; several values, or the option several times",
      )
      .option("--ref, --reference <url>", "ticket or issue behind the request; recorded with it")
      .option("--wait", "follow it until every shelf has ended; exit code 1 when one failed")
      .option("--timeout <duration>", "with --wait: give up waiting after this long, such as 10m")
      .addHelpText(
        "after",
        `\nExamples:\n  millwright power-shelf maintenance ${word} --power-shelf-id ID1 ID2 --reference https://tracker/MAINT-123\n  millwright ps fix ${word} --id ID1 --id ID2 --wait`,
      )
      .action((options: MaintenanceOptions) =>
        run(async (session) => (await import("./maintenance.ts")).requestMaintenance(session, operation, options)),
      );
    if (operation === "power_off")
      command.option(
        "-y, --yes",
        "do not ask before shelves are powered off in a rack with machines that serve a cluster; required without a terminal",
      );
  };
  maintenance
    .command("cancel")
    .description("end the requests of power shelves, whether they wait or are being carried out")
    .requiredOption(
      "--id, --power-shelf-id <id...>",
      "power shelves, by id or name; several values, or the option several times",
    )
    .option("--request-id <id>", "only this request of one shelf")
    .addHelpText(
      "after",
      "\nA shelf that was commanded already may still obey; `power-shelf show` shows its power.\n\nExample:\n  millwright power-shelf maintenance cancel --id ID1 ID2",
    )
    .action((options: CancelOptions) =>
      run(async (session) => (await import("./maintenance.ts")).cancelRequests(session, options)),
    );
  add("power-on", "power_on", "power shelves on");
  add("power-off", "power_off", "power shelves off");
}

function addManaging(shelf: Command, run: Run): void {
  addPasswordOptions(
    shelf
      .command("create")
      .description("record a power shelf whose BMC is known")
      .requiredOption("--bmc-endpoint <host[:port]>", "where its BMC is")
      .requiredOption("--bmc-mac <mac>", "MAC address of its BMC")
      .requiredOption("--bmc-username <name>", "user name at its BMC")
      .option("--id <id>", "its id; given by the server when left out")
      .option("--name <name>", "its name; the id when left out")
      .option("--rack <id>", "the rack it stands in")
      .addOption(
        new Option("--tls-trust <mode>", "how the BMC's certificate is verified; pin when left out").choices([
          "ca",
          "pin",
          "off",
        ]),
      )
      .addOption(new Option("--bmc-scheme <scheme>", "https when left out").choices(["https", "http"]))
      .option("--request-id <id>", "makes the command safe to repeat"),
  ).action((options: CreateOptions) =>
    run(async (session) => (await import("./manage.ts")).createPowerShelf(session, options)),
  );
  addPasswordOptions(
    shelf
      .command("set-credentials")
      .argument("<id|name>", "a power shelf")
      .description("change user name and password at a power shelf's BMC")
      .requiredOption("--bmc-username <name>", "user name at its BMC"),
  ).action((id: string, options: CredentialOptions) =>
    run(async (session) => (await import("./manage.ts")).setCredentials(session, await idOf(session, id), options)),
  );
  shelf
    .command("accept-certificate")
    .argument("<id|name>", "a power shelf")
    .description("pin the certificate that the BMC of a power shelf shows since it was replaced or given a new one")
    .requiredOption("--fingerprint <sha256>", "as compared at the BMC, with or without colons; `explain` prints it")
    .addHelpText(
      "after",
      "\nThe server refuses another fingerprint than the one that the BMC shows.\n\nExample:\n  millwright power-shelf accept-certificate ID --fingerprint AB:CD:…",
    )
    .action((id: string, options: { readonly fingerprint: string }) =>
      run(async (session) =>
        (await import("./manage.ts")).acceptCertificate(session, await idOf(session, id), options),
      ),
    );
  shelf
    .command("delete")
    .argument("<id|name>", "a power shelf")
    .description("mark a power shelf for deletion; the controller removes it")
    .option(...YES_OPTION)
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await import("./manage.ts")).deletePowerShelf(session, await idOf(session, id), options)),
    );
  shelf
    .command("force-delete")
    .argument("<id|name>", "a power shelf")
    .description("remove a power shelf at once, whatever its state")
    .option("-d, --delete-interfaces", "also forget its network interfaces")
    .option(...YES_OPTION)
    .action((id: string, options: ForceDeleteOptions) =>
      run(async (session) =>
        (await import("./manage.ts")).forceDeletePowerShelf(session, await idOf(session, id), options),
      ),
    );
}

function addMetadata(shelf: Command, run: Run): void {
  const load = () => import("./metadata.ts");
  const grammar = { what: "a power shelf", argument: "<id|name>", command: "power-shelf" };
  addMetadataCommands(shelf, run, { ...grammar, load: async () => (await load()).describedShelves })
    .command("from-expected-power-shelf")
    .argument("<id|name>", "a power shelf")
    .description("copy them from the expected inventory")
    .option("--replace-all", "also drop what the expected inventory does not have")
    .action((id: string, options: { replaceAll?: boolean }) =>
      run(async (session) => (await load()).metadataFromExpected(session, await idOf(session, id), options)),
    );
}
