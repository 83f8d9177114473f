import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import type { StartOptions } from "./maintenance.ts";

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
    .description("request maintenance of a rack in state ready or error; of the whole rack, unless devices are named")
    .requiredOption("-r, --rack <id>", "the rack")
    .option("--machine-ids <id...>", "only these compute trays", listed)
    .option("--switch-ids <id...>", "only these switches", listed)
    .option("--power-shelf-ids <id...>", "only these power shelves", listed)
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
    .addHelpText(
      "after",
      "\nExamples:\n  millwright rack maintenance start --rack rack-1 --dry-run\n  millwright rack maintenance start --rack rack-1\n  millwright rack maintenance start --rack rack-1 --machine-ids m1 m2 --activities firmware-upgrade --firmware-version fw-v2.1 --wait",
    )
    .action((options: StartOptions & { readonly dryRun?: boolean }) =>
      run(async (session) =>
        options.dryRun
          ? (await import("./preview.ts")).previewMaintenance(session, options)
          : (await load()).startMaintenance(session, options),
      ),
    );
  maintenance
    .command("terminate")
    .argument("[id]", "a rack")
    .option("-r, --rack <id>", "the rack, instead of the argument")
    .description(
      "stop the maintenance of a rack, or withdraw a pending request; a flash that has begun runs to its end",
    )
    .addHelpText("after", "\nExample:\n  millwright rack maintenance terminate rack-1")
    .action((id: string | undefined, options: { readonly rack?: string }) =>
      run(async (session) => (await load()).terminateMaintenance(session, id ?? options.rack)),
    );
  rack
    .command("reprovision")
    .argument("<id>", "a rack")
    .description("flash the default firmware on all devices that are not in use, as soon as the rack is ready")
    .option("--reference <url>", "why, such as the URL of a ticket")
    .addHelpText("after", "\nExample:\n  millwright rack reprovision rack-1")
    .action((id: string, options: { readonly reference?: string }) =>
      run(async (session) => (await load()).reprovisionRack(session, id, options)),
    );
  rack
    .command("clear-error")
    .argument("<id>", "a rack in error")
    .description("return a rack to ready after a failed activity or validation, without a retry")
    .addHelpText("after", "\nExample:\n  millwright rack clear-error rack-1")
    .action((id: string) => run(async (session) => (await load()).clearError(session, id)));
}
