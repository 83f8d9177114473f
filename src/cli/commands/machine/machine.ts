import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { FILTER_OPTION, YES_TO_FILTER } from "../device/many-options.ts";
import { addHistoryOptions } from "../event/history.ts";
import type { HistoryOptions } from "../event/history-read.ts";
import { addHealthReportCommands } from "../health-report/health-report.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";
import { addPasswordOptions } from "../options/password-options.ts";
import type { CredentialOptions } from "./credentials.ts";
import type { MachineFields, RegisterOptions } from "./edit.ts";
import type { DrainOptions, VerbOptions } from "./phase.ts";
import { addPowerCommands } from "./power-commands.ts";
import type { ReprovisionOptions } from "./reprovision.ts";

/** The grammar alone; what a command does is loaded when it runs. */
export function addMachineCommands(program: Command, run: Run): void {
  const machine = program
    .command("machine")
    .alias("m")
    .description("machines: what they are, what phase they are in, and what people decide about them");
  addReading(machine, run);
  addEditing(machine, run);
  addCertificate(machine, run);
  addPhases(machine, run);
  addReprovision(machine, run);
  addPowerCommands(machine, run);
  addHealthReportCommands(machine, run, {
    what: "a machine",
    argument: "<id>",
    command: "machine",
    load: async () => (await import("../health-report/device-reports.ts")).deviceReports("machine", "machine"),
  });
}

function addReading(machine: Command, run: Run): void {
  addListOptions(machine.command("list").description("list machines"), {
    filter: "rack=rack-1 AND phase=READY",
    order: "rack, created_at desc",
  })
    .option("--failing", "only machines that need intervention, are degraded or cannot be reached")
    .option("--watch", "keep showing it as it changes")
    .addHelpText(
      "after",
      `\nConditions are joined with AND, OR, NOT and parentheses: field=value, !=, IN (value, value), ~ (contains), ^= (begins with);
times and numbers also with <, <=, > and >=. docs/reference/filters.md lists all fields.

Examples:
  millwright machine list --filter 'effective_state IN (READY, FACTORY_READY)'
  millwright machine list --filter 'labels.env=prod AND (rack^=rack-1 OR conditions.Degraded=true)' -o json
  millwright machine list --failing --filter rack=rack-1 --order-by 'rack, phase_since desc'
  millwright machine list --watch`,
    )
    .action((options: ListOptions & { failing?: boolean; watch?: boolean }) =>
      run(async (session) => (await import("./read.ts")).listMachines(session, options)),
    );
  machine
    .command("show")
    .argument("<id>", "a machine")
    .description("show a machine: phase, conditions, claims, endpoints, last runs")
    .option("--watch", "keep showing it as it changes")
    .action((id: string, options: { watch?: boolean }) =>
      run(async (session) => (await import("./read.ts")).showMachine(session, id, options)),
    );
  addHistoryOptions(
    machine
      .command("history")
      .argument("<id>", "a machine")
      .description("what happened to a machine, who did it and why"),
  ).action((id: string, options: HistoryOptions) =>
    run(async (session) => (await import("../event/history-read.ts")).showHistory(session, "machine", id, options)),
  );
}

const addFields = (command: Command): Command =>
  command
    .option("--mac <mac...>", "its MAC addresses; several values, or the option several times")
    .option("--serial <serial>", "its serial number")
    .option("--rack <rack>", "the rack that it stands in")
    .option("--slot <slot>", "where in the rack")
    .option("--location <place>", "the site, hall or room")
    .option("--customer <id>", "whose it is")
    .option("--cluster <name>", "the cluster that it joins")
    .option("--provider <name>", "the provider that reaches it; the server's default when left out")
    .option(
      "--bmc-endpoint <host[:port]>",
      "where its BMC is; with /redfish/v1/Systems/ID behind it where the BMC has several machines",
    )
    .addOption(new Option("--bmc-protocol <protocol>", "what its BMC speaks").choices(["redfish", "ipmi"]))
    .addOption(new Option("--tls-trust <mode>", "how the BMC's certificate is verified").choices(["ca", "pin", "off"]))
    .option("--ssh-endpoint <host[:port]>", "where SSH answers")
    .option("--ssh-host-key <key>", "the host key that it must show, as in known_hosts, or its SHA256: fingerprint")
    .option(
      "--jump-host <[user@]host[:port]=key...>",
      "hosts on the way to SSH, the nearest to the server first, each with its host key or SHA256: fingerprint; replaces all",
    )
    .option("--label <key=value...>", "its labels; several values, or the option several times");

function addEditing(machine: Command, run: Run): void {
  const load = () => import("./edit.ts");
  addFields(
    machine
      .command("register")
      .description("record a machine, or replace spec and labels of the one with the same id")
      .option("--id <id>", "its id; given by the server when left out")
      .option("-f, --file <file>", "YAML or JSON as `machine show -o yaml` prints it, or - for standard input"),
  ).action((options: RegisterOptions) => run(async (session) => (await load()).registerMachine(session, options)));
  addFields(
    machine
      .command("update")
      .argument("<id>", "a machine")
      .description("change the given fields of a machine; an empty value clears a field"),
  ).action((id: string, options: MachineFields) =>
    run(async (session) => (await load()).updateMachine(session, id, options)),
  );
  machine
    .command("label")
    .argument("<id>", "a machine")
    .argument("<changes...>", "key=value sets a label, key- removes it")
    .description("set and remove labels of a machine")
    .action((id: string, changes: string[]) =>
      run(async (session) => (await load()).labelMachine(session, id, changes)),
    );
  addPasswordOptions(
    machine
      .command("set-credentials")
      .argument("<id>", "a machine")
      .description("set the credentials of a machine; what is left out stays as it is")
      .option("--bmc-username <name>", "user name at its BMC; without any option it is asked for on the terminal")
      .option("--ssh-username <name>", "user name for SSH")
      .option("--ssh-key-file <file>", "file with the private key for SSH, without a passphrase"),
  ).action((id: string, options: CredentialOptions) =>
    run(async (session) => (await import("./credentials.ts")).setCredentials(session, id, options)),
  );
}

function addCertificate(machine: Command, run: Run): void {
  machine
    .command("accept-certificate")
    .argument("<id>", "a machine")
    .description("pin the certificate that the BMC of a machine shows since it was replaced or given a new one")
    .requiredOption("--fingerprint <sha256>", "as compared at the BMC, with or without colons; `explain` prints it")
    .addHelpText(
      "after",
      "\nThe server refuses another fingerprint than the one that the BMC shows.\n\nExample:\n  millwright machine accept-certificate m-rack1-03 --fingerprint AB:CD:…",
    )
    .action((id: string, options: { readonly fingerprint: string }) =>
      run(async (session) => (await import("./certificate.ts")).acceptCertificate(session, id, options)),
    );
}

function addReprovision(machine: Command, run: Run): void {
  machine
    .command("reprovision")
    .argument("[id...]", "machines in racks")
    .description(
      "compare the firmware of machines with the default of their racks' hardware type, and write what differs",
    )
    .option("--reset", "also while it waits for its rack; refused while the rack works on it")
    .option("--reference <text>", "why, such as the address of a ticket")
    .option(FILTER_OPTION, "in place of ids: all machines that it admits, such as rack=rack-1")
    .option(...YES_TO_FILTER)
    .addHelpText(
      "after",
      "\nExamples:\n  millwright machine reprovision m-rack1-03 m-rack1-04 --reference https://tracker/FW-12\n  millwright machine reprovision --filter 'rack=rack-1' --yes",
    )
    .action((ids: readonly string[], options: ReprovisionOptions) =>
      run(async (session) => (await import("./reprovision.ts")).reprovisionMachines(session, { ...options, ids })),
    );
}

function addPhases(machine: Command, run: Run): void {
  const load = () => import("./phase.ts");
  const verb = (word: string, description: string) =>
    machine
      .command(word)
      .argument("<id>", "a machine")
      .description(description)
      .option("--comment <text>", "why; kept in its history");
  verb("accept", "FACTORY_READY → READY: the machine is ours to manage").action((id: string, options: VerbOptions) =>
    run(async (session) => (await load()).acceptMachine(session, id, options)),
  );
  verb("enter-maintenance", "READY or IN_SERVICE → MAINTENANCE: its node is cordoned and drained; Drained proves it")
    .option("--evict-bare-pods", "also evict pods that no controller starts again elsewhere (kubectl drain --force)")
    .option("--delete-local-data", "also evict pods that lose data in emptyDir volumes (--delete-emptydir-data)")
    .addHelpText(
      "after",
      "\nRepeat the command with other options while the node is being drained to change what is evicted.\n" +
        "\nExample:\n  millwright machine enter-maintenance m-rack2-05 --delete-local-data --comment 'swap a fan'",
    )
    .action((id: string, options: DrainOptions) =>
      run(async (session) => (await load()).enterMaintenance(session, id, options)),
    );
  verb("exit-maintenance", "MAINTENANCE → READY: its node is uncordoned, if we cordoned it")
    .option("--acknowledge", "end NeedsIntervention: the cause is fixed; requires --comment")
    .action((id: string, options: VerbOptions & { acknowledge?: boolean }) =>
      run(async (session) => (await load()).exitMaintenance(session, id, options)),
    );
  verb("return", "RMA → FACTORY_READY: repaired or replaced, it is back").action((id: string, options: VerbOptions) =>
    run(async (session) => (await load()).returnMachine(session, id, options)),
  );
  verb("retire", "any phase → RETIRED, for good")
    .option(...YES_OPTION)
    .action((id: string, options: VerbOptions & ConfirmOptions) =>
      run(async (session) => (await load()).retireMachine(session, id, options)),
    );
}
