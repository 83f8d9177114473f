import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { type Chosen, FILTER_OPTION, YES_TO_FILTER } from "../device/many-options.ts";
import type { StartManyOptions } from "./maintenance.ts";

type ManyOptions = Omit<Chosen, "ids">;

const ACTIVITIES = ["firmware-upgrade", "configure-nmx-cluster", "power-sequence"] as const;

/** Lists are separated by commas or by spaces. */
const listed = (text: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  ...text.split(",").filter((word) => word !== ""),
];

export function addRackMaintenanceCommands(rack: Command, run: Run): void {
  const load = () => import("./maintenance.ts");
  const maintenance = rack.command("maintenance").description("maintain a rack: firmware, fabric, power");
  maintenance
    .command("start")
    .description(
      "request maintenance of racks in state ready or error; of whole racks, unless devices of one are named",
    )
    .option(
      "-r, --rack <id...>",
      "the rack; several are maintained in the same way, each by a request of its own",
      listed,
    )
    .option(FILTER_OPTION, "in place of --rack: all racks that it admits, such as labels.row=7 AND state=ready")
    .option("--machine-ids <id...>", "only these compute trays", listed)
    .option("--switch-ids <id...>", "only these switches, by id or name", listed)
    .option("--power-shelf-ids <id...>", "only these power shelves, by id or name", listed)
    .option("--activities <activity...>", `only these: ${ACTIVITIES.join(", ")}; left out: all of them`, listed)
    .option(
      "--firmware-version <id>",
      "a rack firmware (`rack-firmware list`); left out: the default of the rack's hardware type",
    )
    .option("--components <name...>", "upgrade only these components, such as bmc", listed)
    .addOption(
      new Option("--operation <operation>", "what power-sequence does; left out: it switches on what is off").choices([
        "on",
        "off",
        "cycle",
      ]),
    )
    .option("--reference <url>", "why, such as the URL of a ticket")
    .option("--include-assigned", "also work on trays that are assigned (role admin); needs --reason")
    .option("--reason <text>", "why assigned trays are worked on")
    .option("--dry-run", "show devices, holders, firmware, reboots and the usual duration, and change nothing")
    .option("--wait", "wait until the maintenance has ended; exit code 1 if it failed")
    .option(...YES_TO_FILTER)
    .addHelpText(
      "after",
      "\nExamples:\n  millwright rack maintenance start --rack rack-1 --dry-run\n  millwright rack maintenance start --rack rack-1\n  millwright rack maintenance start --rack rack-1 --machine-ids m1 m2 --activities firmware-upgrade --firmware-version fw-v2.1 --wait\n  millwright rack maintenance start --filter 'labels.row=7' --activities firmware-upgrade --yes",
    )
    .action((options: StartManyOptions & { readonly dryRun?: boolean }) =>
      run(async (session) =>
        options.dryRun
          ? (await import("./preview.ts")).previewMaintenance(session, options)
          : (await load()).startMaintenance(session, options),
      ),
    );
  maintenance
    .command("terminate")
    .argument("[id...]", "racks")
    .option("-r, --rack <id...>", "the racks, instead of the argument", listed)
    .option(FILTER_OPTION, "in place of ids: all racks that it admits, such as state=maintenance")
    .option(...YES_TO_FILTER)
    .description("stop the maintenance of racks, or withdraw pending requests; a flash that has begun runs to its end")
    .addHelpText("after", "\nExample:\n  millwright rack maintenance terminate rack-1 rack-2")
    .action(
      (ids: readonly string[], { rack: named = [], ...options }: ManyOptions & { readonly rack?: readonly string[] }) =>
        run(async (session) => (await load()).terminateMaintenance(session, { ...options, ids: [...ids, ...named] })),
    );
  maintenance
    .command("resume")
    .description(
      "let maintenance begin by itself again after it has failed on too many racks (rack.stop_after_failures)",
    )
    .addHelpText("after", "\nExample:\n  millwright rack maintenance resume")
    .action(() => run(async (session) => (await load()).resumeMaintenance(session)));
  addRecovery(rack, run);
}

function addRecovery(rack: Command, run: Run): void {
  const load = () => import("./maintenance.ts");
  rack
    .command("reprovision")
    .argument("[id...]", "racks")
    .description("flash the default firmware on all devices that are not in use, as soon as each rack is ready")
    .option("--reference <url>", "why, such as the URL of a ticket")
    .option(FILTER_OPTION, "in place of ids: all racks that it admits, such as profile=gb200")
    .option(...YES_TO_FILTER)
    .addHelpText(
      "after",
      "\nExamples:\n  millwright rack reprovision rack-1\n  millwright rack reprovision --filter 'labels.row=7' --yes",
    )
    .action((ids: readonly string[], options: ManyOptions & { readonly reference?: string }) =>
      run(async (session) => (await load()).reprovisionRacks(session, { ...options, ids })),
    );
  rack
    .command("clear-error")
    .argument("[id...]", "racks in error")
    .description("return racks to ready after a failed activity or validation, without a retry")
    .option(FILTER_OPTION, "in place of ids: all racks that it admits, such as state=error AND cause=terminated")
    .option(...YES_TO_FILTER)
    .addHelpText(
      "after",
      "\nExamples:\n  millwright rack clear-error rack-1\n  millwright rack clear-error --filter 'state=error AND cause=terminated' --yes",
    )
    .action((ids: readonly string[], options: ManyOptions) =>
      run(async (session) => (await load()).clearErrors(session, { ...options, ids })),
    );
}
