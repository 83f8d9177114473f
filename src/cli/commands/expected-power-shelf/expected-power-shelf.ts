import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions } from "../options/list-options.ts";
import { addPasswordOptions } from "../options/password-options.ts";
import type { ExpectedFields } from "./edit.ts";
import type { ExpectedListOptions } from "./read.ts";

export function addExpectedPowerShelfCommands(program: Command, run: Run): void {
  const expected = program
    .command("expected-power-shelf")
    .alias("eps")
    .description("power shelves that the site says it has; each becomes a power shelf once its BMC was reached");
  addReading(expected, run);
  addEditing(expected, run);
  addWholesale(expected, run);
}

function addReading(expected: Command, run: Run): void {
  const load = () => import("./read.ts");
  addListOptions(expected.command("list").description("list expected power shelves, and how finding them goes"), {
    filter: "explore_state IN (unreachable, failed) AND (rack_id=rack-1 OR name^=pdu)",
    order: "rack_id, name",
  })
    .option("--rack <id>", "only those of this rack")
    .option("--explore-state <state>", "only those in this state, such as pending, linked or unreachable")
    .option("--bmc-mac <mac>", "only the one whose BMC has this MAC address")
    .option("--power-shelf <id>", "only the one from which this power shelf was made")
    .action((options: ExpectedListOptions) => run(async (session) => (await load()).listExpected(session, options)));
  expected
    .command("show")
    .argument("[mac|id]", "an expected power shelf; all of them when left out")
    .description("show an expected power shelf")
    .action((macOrId: string | undefined) => run(async (session) => (await load()).showExpected(session, macOrId)));
  expected
    .command("linked")
    .description("list expected power shelves with the power shelves made from them")
    .action(() => run(async (session) => (await load()).listLinked(session)));
}

const addDescribing = (command: Command): Command =>
  addPasswordOptions(
    command
      .option("--rack, --rack-id <id>", "the rack it stands in")
      .option("--name <name>", "its name")
      .option("--description <text>", "its description")
      .option("--label <key=value...>", "its labels; several values, or the option several times")
      .option(
        "--retain-credentials",
        "leave the BMC's credentials that are on record as they are; those given here count only where there are none",
      ),
  );

function addEditing(expected: Command, run: Run): void {
  const load = () => import("./edit.ts");
  addDescribing(
    expected
      .command("add")
      .description("expect a power shelf")
      .requiredOption("--bmc-mac, --bmc-mac-address <mac>", "MAC address of its BMC")
      .requiredOption("--bmc-username <name>", "user name at its BMC")
      .requiredOption("--serial, --shelf-serial-number <serial>", "its serial, as its BMC shows it")
      .requiredOption("--bmc-endpoint, --bmc-ip-address <host[:port]>", "where its BMC is")
      .option("--id <uuid>", "id of the entry; given by the server when left out"),
  ).action((options: ExpectedFields) => run(async (session) => (await load()).addExpected(session, options)));
  addDescribing(
    expected
      .command("update")
      .argument("<mac|id>", "an expected power shelf")
      .description("change an expected power shelf; what is not given stays")
      .option("--bmc-mac, --bmc-mac-address <mac>", "MAC address of its BMC")
      .option("--bmc-username <name>", "user name at its BMC")
      .option("--serial, --shelf-serial-number <serial>", "its serial, as its BMC shows it")
      .option("--bmc-endpoint, --bmc-ip-address <host[:port]>", "where its BMC is"),
  ).action((macOrId: string, options: ExpectedFields) =>
    run(async (session) => (await load()).updateExpected(session, macOrId, options)),
  );
  expected
    .command("delete")
    .argument("<mac|id>", "an expected power shelf")
    .description("expect a power shelf no longer; one that was made from it stays")
    .option(...YES_OPTION)
    .action((macOrId: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteExpected(session, macOrId, options)),
    );
}

function addWholesale(expected: Command, run: Run): void {
  const load = () => import("./edit.ts");
  expected
    .command("replace-all")
    .description("make the expected inventory exactly what a file says, or change nothing")
    .requiredOption("-f, --file <file>", "JSON or YAML; - for standard input")
    .addHelpText(
      "after",
      "\nExample of a file:\n  - bmc_mac: 02:00:5e:10:00:01\n    bmc_endpoint: 10.0.0.7\n    bmc_username: admin\n    bmc_password: ...\n    serial: SN-1\n    rack_id: rack-1",
    )
    .option("-y, --yes", "do not ask before entries are dropped that the file does not have")
    .action((options: { file: string; yes?: boolean }) =>
      run(async (session) => (await load()).replaceAllExpected(session, options)),
    );
  expected
    .command("delete-all")
    .description("empty the expected inventory; power shelves made from it stay")
    .option(...YES_OPTION)
    .action((options: ConfirmOptions) => run(async (session) => (await load()).deleteAllExpected(session, options)));
}
